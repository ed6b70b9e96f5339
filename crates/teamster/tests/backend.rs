//! The query interface of chat gateways. A shell script imitates Claude Code's CLI.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::time::Duration;

use proptest::prelude::*;
use teamster::backend::{Backend, BackendConfig, BackendError, QueryResult, QueryUpdate, variables};
use teamster::{Registry, RunError, RunRequest};

/// Reads the first line of a session and the prompt.
const LISTEN: &str = "read -r opening; read -r prompt;";

fn backend(script: &str) -> Backend {
    backend_of("claude", script)
}

fn backend_of(agent: &str, script: &str) -> Backend {
    let mut template = RunRequest::default();
    template.cli_path = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-cli.sh").into());
    template.env.insert("FAKE_CLI".to_owned(), script.to_owned());
    template.limits.startup = Duration::from_secs(20);
    Backend::create(agent, BackendConfig::new(template)).unwrap()
}

async fn ask(script: &str) -> (QueryResult, String) {
    let mut printed = String::new();
    let print = async |update: QueryUpdate| {
        if let QueryUpdate::Text { text, .. } = update {
            printed.push_str(&text);
        }
    };
    let answer = backend(script).execute("hi", None, None, print).await.unwrap();
    (answer, printed)
}

#[tokio::test]
async fn the_answer_is_the_last_message_and_all_text_is_streamed() {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../teamster-agents/tests/captures/claude");
    let (answer, printed) = ask(&format!("{LISTEN} cat {captures}/tool_bash/stdout.ndjson; cat >/dev/null")).await;
    assert!(!answer.is_error);
    assert_eq!(answer.response_text, "The command printed hello.");
    assert_eq!(printed, "Let me run that.The command printed hello.");
    assert!(answer.session_id.is_some());
}

#[tokio::test]
async fn an_error_quotes_the_last_500_characters_of_stderr() {
    let (answer, _) = ask("head -c 2000 /dev/zero | tr '\\0' 'x' >&2; echo 'the reason' >&2; exit 3").await;
    assert!(answer.is_error);
    assert_eq!(answer.response_text.chars().count(), 500);
    assert!(answer.response_text.ends_with("the reason"));
}

#[tokio::test]
async fn property_8_a_failed_start_of_each_agent_is_an_error_with_at_most_500_characters() {
    let script = "head -c 2000 /dev/zero | tr '\\0' 'x' >&2; echo 'the reason' >&2; exit 3";
    for agent in ["claude", "codex", "gemini", "opencode"] {
        let answer = backend_of(agent, script).execute("hi", None, None, async |_| {}).await.unwrap();
        assert!(answer.is_error && answer.response_text.contains("the reason"), "{agent}: {answer:?}");
        assert!(answer.response_text.chars().count() <= 600, "{agent}: {answer:?}");
    }
}

#[tokio::test]
async fn an_exit_without_a_result_is_a_parse_error() {
    let (answer, _) = ask(&format!("{LISTEN} echo 'no json'; exit 0")).await;
    assert_eq!((answer.response_text.as_str(), answer.is_error), ("Failed to parse CLI output", true));
}

#[tokio::test]
async fn a_silent_cli_is_a_timeout() {
    let mut template = RunRequest::default();
    template.cli_path = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-cli.sh").into());
    template.env.insert("FAKE_CLI".to_owned(), "sleep 300".to_owned());
    template.limits.startup = Duration::from_millis(200);
    template.limits.grace = Duration::from_millis(200);
    let backend = Backend::create("claude", BackendConfig::new(template)).unwrap();
    let answer = backend.execute("hi", None, None, async |_| {}).await.unwrap();
    assert_eq!((answer.response_text.as_str(), answer.is_error), ("Query timed out", true));
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_not_returned() {
    let id = "00000000-0000-4000-8000-000000000000";
    let script = format!("echo 'No conversation found with session ID: {id}' >&2; exit 1");
    let answer = backend(&script).execute("hi", None, Some(id.into()), async |_| {}).await.unwrap();
    assert!(answer.is_error);
    assert_eq!(answer.session_id, None);
    assert!(answer.response_text.contains("No conversation found"));
}

#[tokio::test]
async fn an_invalid_prompt_starts_nothing() {
    assert!(backend("exit 0").execute("  ", None, None, async |_| {}).await.is_err());
}

#[test]
fn an_unknown_agent_is_an_error_at_creation_that_lists_the_agents() {
    let error = Backend::create("copilot", BackendConfig::new(RunRequest::default())).unwrap_err();
    assert_eq!(error.to_string(), "there is no agent \"copilot\"; there are: acp, claude, codex, gemini, opencode");
    for (name, expected) in [("claude", "claude"), ("CODEX", "codex"), ("Gemini", "gemini"), ("opencode", "opencode")] {
        let backend = Backend::create(name, BackendConfig::new(RunRequest::default())).unwrap();
        assert_eq!(backend.name(), expected);
    }
}

#[test]
fn allowed_tools_that_an_agent_cannot_filter_are_a_warning_and_deny_rules_are_never_dropped() {
    let mut request = RunRequest::default();
    request.permissions.allow = vec!["Read".to_owned()];
    for (agent, warns) in [("claude", false), ("codex", true)] {
        let backend = Backend::create(agent, BackendConfig::new(request.clone())).unwrap();
        assert_eq!(backend.warnings().len(), usize::from(warns), "{agent}: {:?}", backend.warnings());
    }
    request.permissions.deny = vec!["Bash(rm:*)".to_owned()];
    assert!(Backend::create("claude", BackendConfig::new(request.clone())).is_ok());
    let error = Backend::create("codex", BackendConfig::new(request)).unwrap_err();
    assert!(matches!(error, BackendError::Invalid(_)) && error.to_string().contains("permissions.deny"), "{error}");
}

#[tokio::test]
async fn validation_names_the_program_that_cannot_run() {
    let mut request = RunRequest::default();
    request.cli_path = Some("/nonexistent/claude".into());
    let error = Backend::create("claude", BackendConfig::new(request)).unwrap().validate().await.unwrap_err();
    assert!(error.to_string().contains("/nonexistent/claude"), "{error}");
}

#[test]
fn a_reply_is_an_error_or_an_answer_for_its_target_and_names_a_session_only_if_there_is_one() {
    let result = |session: Option<&str>, is_error| {
        let mut result: QueryResult = serde_json::from_value(serde_json::json!({
            "responseText": "words", "sessionId": session, "isError": is_error,
        }))
        .unwrap();
        result.response_text.push('!');
        serde_json::to_value(result.into_reply("chat-7")).unwrap()
    };
    assert_eq!(result(Some("s"), false), serde_json::json!({"text": "words!", "session": "s", "target": "chat-7"}));
    assert_eq!(result(None, false), serde_json::json!({"text": "words!", "target": "chat-7"}));
    assert_eq!(result(Some("s"), true), serde_json::json!({"error": "words!", "target": "chat-7"}));
}

proptest! {
    #[test]
    fn property_7_a_backend_is_created_for_the_name_of_an_agent_in_any_case_and_for_no_other_name(
        name in prop_oneof![
            "[a-zA-Z]{0,10}",
            "(?i:claude|codex|gemini|opencode)",
        ],
    ) {
        let known = ["acp", "claude", "codex", "gemini", "opencode"];
        let config = || {
            let mut request = RunRequest::default();
            request.cli_path = Some("/opt/agent".into());
            BackendConfig::new(request)
        };
        let lowercase = name.to_lowercase();
        match Backend::create(&name, config()) {
            Ok(backend) => prop_assert_eq!(backend.name(), lowercase),
            Err(BackendError::UnknownAgent(unknown)) => {
                prop_assert!(!known.contains(&lowercase.as_str()));
                let registry = Registry::default();
                prop_assert_eq!(unknown.known, registry.names().collect::<Vec<_>>());
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

proptest! {
    #[test]
    fn property_7_the_agent_of_the_environment_is_created_and_without_one_it_is_claude(
        name in proptest::option::of("(?i:claude|codex|gemini|opencode)"),
    ) {
        let config = BackendConfig::from_variables(|variable| {
            name.as_deref().filter(|_| variable == variables::AGENT).map(Into::into)
        });
        let agent = config.agent.clone();
        let backend = Backend::create(&agent, config).unwrap();
        prop_assert_eq!(backend.name(), name.as_deref().unwrap_or("claude").to_lowercase());
    }
}

#[test]
fn every_agent_accepts_the_configuration_of_an_empty_environment() {
    for name in ["claude", "codex", "gemini", "opencode"] {
        let backend = Backend::create(name, BackendConfig::from_variables(|_| None)).unwrap();
        assert!(backend.warnings().is_empty(), "{name}: {:?}", backend.warnings());
    }
}

#[tokio::test]
async fn a_shutdown_of_its_runtime_ends_a_query_and_rejects_further_ones() {
    let backend = backend(&format!("{LISTEN} sleep 600"));
    let runtime = backend.runtime().clone();
    let query = backend.execute("hi", None, None, async |_| {});
    let shutdown = async {
        while runtime.stats().total.live_processes == 0 {
            tokio::task::yield_now().await;
        }
        runtime.shutdown(Duration::from_millis(200)).await
    };
    let (answer, report) = tokio::join!(query, shutdown);
    assert!(answer.unwrap().is_error);
    assert_eq!((report.interrupted_turns, report.unfinished), (1, vec![]));
    let error = backend.execute("hi", None, None, async |_| {}).await.unwrap_err();
    assert!(matches!(error, BackendError::Invalid(RunError::ShutDown)), "{error}");
}
