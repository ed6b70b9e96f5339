//! One question, one answer, as chat gateways ask. A shell script plays Claude Code's CLI.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::sync::Arc;
use std::time::Duration;

use teamster::{Backend, QueryResult, RunRequest, Runtime};

/// Takes the opening of a session and the prompt.
const LISTEN: &str = "read -r opening; read -r prompt;";

fn backend(script: &str) -> Backend {
    let mut template = RunRequest::default();
    template.cli_path = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-cli.sh").into());
    template.env.insert("FAKE_CLI".to_owned(), script.to_owned());
    template.limits.startup = Duration::from_secs(20);
    Backend::new(Arc::new(Runtime::new()), "claude", template)
}

async fn ask(script: &str) -> (QueryResult, String) {
    let mut heard = String::new();
    let answer = backend(script).query("hi", None, None, |text| heard.push_str(text)).await.unwrap();
    (answer, heard)
}

#[tokio::test]
async fn an_answer_is_the_last_message_and_is_heard_while_it_comes() {
    let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/../teamster-protocol/tests/captures/claude");
    let (answer, heard) = ask(&format!("{LISTEN} cat {captures}/tool_bash/stdout.ndjson; cat >/dev/null")).await;
    assert!(!answer.is_error);
    assert_eq!(answer.response_text, "The command printed hello.");
    assert_eq!(heard, "Let me run that.The command printed hello.");
    assert!(answer.session_id.is_some());
}

#[tokio::test]
async fn what_a_dying_cli_says_last_is_quoted_in_500_characters() {
    let (answer, _) = ask("head -c 2000 /dev/zero | tr '\\0' 'x' >&2; echo 'the reason' >&2; exit 3").await;
    assert!(answer.is_error);
    assert_eq!(answer.response_text.chars().count(), 500);
    assert!(answer.response_text.ends_with("the reason"));
}

#[tokio::test]
async fn an_end_without_a_result_is_said_in_one_way() {
    let (answer, _) = ask(&format!("{LISTEN} echo 'no json'; exit 0")).await;
    assert_eq!((answer.response_text.as_str(), answer.is_error), ("Failed to parse CLI output", true));
}

#[tokio::test]
async fn silence_is_said_in_one_way() {
    let mut template = RunRequest::default();
    template.cli_path = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-cli.sh").into());
    template.env.insert("FAKE_CLI".to_owned(), "sleep 300".to_owned());
    template.limits.startup = Duration::from_millis(200);
    template.limits.grace = Duration::from_millis(200);
    let backend = Backend::new(Arc::new(Runtime::new()), "claude", template);
    let answer = backend.query("hi", None, None, |_| {}).await.unwrap();
    assert_eq!((answer.response_text.as_str(), answer.is_error), ("Query timed out", true));
}

#[tokio::test]
async fn a_session_that_cannot_be_resumed_is_cleared() {
    let id = "00000000-0000-4000-8000-000000000000";
    let script = format!("echo 'No conversation found with session ID: {id}' >&2; exit 1");
    let answer = backend(&script).query("hi", None, Some(id.into()), |_| {}).await.unwrap();
    assert!(answer.is_error);
    assert_eq!(answer.session_id, None);
    assert!(answer.response_text.contains("No conversation found"));
}

#[tokio::test]
async fn a_wrong_question_starts_nothing() {
    assert!(backend("exit 0").query("  ", None, None, |_| {}).await.is_err());
}
