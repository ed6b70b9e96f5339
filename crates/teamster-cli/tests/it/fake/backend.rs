//! The fake CLIs under `Backend`, the interface of chat gateways.

use teamster::backend::{Backend, BackendConfig, QueryUpdate};

use super::{AGENTS, CLI, FAKE, ScenarioDir};

/// From the environment to the reply: configuration, registry, backend, result, recipient.
#[tokio::test]
async fn a_backend_of_each_agent_answers_and_continues_its_session() {
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ say = \"Hello.\" }]\n");
    for agent in AGENTS {
        let mut config = BackendConfig::from_variables(|name| match name {
            "AGENT_BACKEND" => Some(agent.into()),
            "BACKEND_CLI_PATH" => Some(CLI.into()),
            _ => None,
        });
        // The fake agents read no limit of turns.
        config.request.max_turns = None;
        config.request.cwd = Some(scenario.folder.path().to_owned());
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        config.request.env = [
            variable("FAKE_CLI", FAKE),
            variable("TEAMSTER", env!("CARGO_BIN_EXE_teamster")),
            variable("AGENT", agent),
            variable("SCRIPT", scenario.file("scenario").to_str().unwrap()),
            variable("HOME", scenario.folder.path().to_str().unwrap()),
        ]
        .into();
        let name = config.agent.clone();
        let backend = Backend::create(&name, config).unwrap();
        let mut printed = String::new();
        let print = async |update: QueryUpdate| {
            if let QueryUpdate::Text { text, .. } = update {
                printed.push_str(&text);
            }
        };
        let first = backend.execute("hi", Some("Be brief."), None, print).await.unwrap();
        assert_eq!((first.response_text.as_str(), first.is_error), ("Hello.", false), "{agent}: {first:?}");
        assert_eq!(printed, "Hello.", "{agent}");
        let session = first.session_id.clone();
        assert!(session.is_some(), "{agent}");
        let reply = serde_json::to_value(first.into_reply("chat-1")).unwrap();
        assert_eq!((&reply["text"], &reply["target"]), (&"Hello.".into(), &"chat-1".into()), "{agent}: {reply}");
        let second = backend.execute("and?", None, session.clone(), async |_| {}).await.unwrap();
        assert_eq!((second.session_id, second.is_error), (session, false), "{agent}: {}", second.response_text);
    }
}
