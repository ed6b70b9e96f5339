//! A conversation that is continued by another agent, and again by the first one.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use teamster::request::ProjectTrust;
use teamster::{Ledger, RunResult, Runtime};
use teamster_gateway::config::Config;
use teamster_gateway::{Clock, ConversationChange, Gateway, Parts};
use teamster_store::{ConversationId, HostId, SqliteOptions, SqliteStore};

use crate::test_gateway::{TestGateway, write_agent, write_program};

const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

/// Starts a gateway that finds a fake Codex beside the fake Claude Code.
async fn with_codex() -> TestGateway {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let path = directory.path();
    write_agent(path, ECHO);
    let bin = path.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = format!(
        "#!/bin/sh\nTEAMSTER_FAKE_SCENARIO='{}' TEAMSTER_FAKE_CLI=codex exec '{}' \"$@\"\n",
        path.join("scenario.toml").display(),
        env!("CARGO_BIN_EXE_teamster-fake-agent"),
    );
    std::fs::write(bin.join("codex"), program).unwrap();
    std::fs::set_permissions(bin.join("codex"), PermissionsExt::from_mode(0o755)).unwrap();
    let mut config = Config::default();
    config.data_dir = path.join("data");
    config.turn.directory = path.join("work");
    config.turn.cli_path = Some(path.join("agent"));
    let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let environment = std::env::vars_os().filter(|(name, _)| name != "PATH").chain([("PATH".into(), search.into())]);
    let runtime = Runtime::builder().environment(environment).ledger(Ledger::in_directory(path.join("ledger")));
    let store = SqliteStore::open(path.join("store.db"), SqliteOptions::default()).await.unwrap();
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(store),
        runtime: Arc::new(runtime.build()),
        channels: Vec::new(),
        host: HostId::new("test"),
        clock: Clock::system(),
    });
    TestGateway::of(gateway, directory).await
}

async fn answer(test: &TestGateway, conversation: ConversationId, agent: &str, message: &str) -> String {
    let change = ConversationChange { agent: Some(agent.to_owned()), ..ConversationChange::default() };
    test.gateway.update_conversation(conversation, change).await.unwrap();
    let ended = test.ended(test.send(conversation, message).await.turn).await;
    assert_eq!(ended.error_code, None, "{:?}", ended.result.map(|result| result.as_str().to_owned()));
    let result: RunResult = ended.result.unwrap().to().unwrap();
    result.final_text.as_str().to_owned()
}

#[tokio::test]
async fn each_agent_of_a_conversation_knows_what_the_others_have_answered() {
    let test = with_codex().await;
    let conversation = test.conversation().await;
    answer(&test, conversation, "claude", "one").await;
    let second = answer(&test, conversation, "codex", "two").await;
    assert!(second.contains(r#""text":"one""#) && second.ends_with("two"), "{second}");
    let third = answer(&test, conversation, "claude", "three").await;
    assert!(third.contains(r#""text":"two""#) && third.ends_with("three"), "{third}");
    assert!(!third.contains(r#""text":"one""#), "its session knows it: {third}");
    let fourth = answer(&test, conversation, "claude", "four").await;
    assert_eq!(fourth, "You said: four");
    assert!(!test.log(conversation).await.contains(&"session_reset".to_owned()), "nothing is lost");
}

#[tokio::test]
async fn a_history_that_is_too_long_for_another_agent_is_reported() {
    let test = with_codex().await;
    let conversation = test.conversation().await;
    for _ in 0..4 {
        answer(&test, conversation, "claude", &"long ".repeat(2000)).await;
    }
    answer(&test, conversation, "codex", "short").await;
    let reset = test.event(conversation, "session_reset").await;
    assert!(reset["reason"].as_str().unwrap().contains("last messages"), "{reset}");
}

#[tokio::test]
async fn an_agent_that_speaks_acp_answers_if_the_operator_names_it() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    write_agent(directory.path(), ECHO);
    let program = format!(
        "#!/bin/sh\nTEAMSTER_FAKE_SCENARIO='{}' TEAMSTER_FAKE_CLI=gemini exec '{}' --acp \"$@\"\n",
        directory.path().join("scenario.toml").display(),
        env!("CARGO_BIN_EXE_teamster-fake-agent"),
    );
    write_program(directory.path(), &program);
    let test = TestGateway::in_directory(directory, |config| {
        config.turn.agent = "acp".to_owned();
        config.turn.project_trust = ProjectTrust::Trusted;
        config.turn.keep_keys = vec!["ACME_KEY".to_owned()];
        config.turn.allow_tools = vec!["Bash(git *)".to_owned()];
        config.instructions.text = Some("Be brief.".to_owned());
    })
    .await;
    let conversation = test.conversation().await;
    let ended = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!(ended.error_code, None, "{:?}", ended.result.map(|result| result.as_str().to_owned()));
    let result: RunResult = ended.result.unwrap().to().unwrap();
    let answer = result.final_text.as_str();
    assert!(answer.contains("Be brief.") && answer.ends_with("hello"), "{answer}");
    // The process knows its instructions.
    let ended = test.ended(test.send(conversation, "again").await.turn).await;
    let result: RunResult = ended.result.unwrap().to().unwrap();
    assert_eq!(result.final_text.as_str(), "You said: again");
}
