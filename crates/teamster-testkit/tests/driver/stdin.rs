//! The prompt is written while output is read.

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::Script;

use crate::test_env::{CheckedStream, LONG, SHORT, TestEnv, agent, counted, success_end};

const PROMPT_BYTES: usize = 5 << 20;

async fn with_a_long_prompt(env: &TestEnv, script: &Script) -> CheckedStream {
    let mut request = env.request(script);
    request.prompt = format!("{}the end", "x".repeat(PROMPT_BYTES));
    request.limits.after_result = LONG;
    env.finish(request).await
}

#[tokio::test]
async fn a_prompt_of_5_megabytes_arrives_whole() {
    let env = TestEnv::new();
    let script = agent(&env).await_line("xthe end").then(success_end("Hello"));
    with_a_long_prompt(&env, &script).await.assert_success("Hello");
}

#[tokio::test]
async fn a_cli_that_writes_much_output_before_it_reads_does_not_hang() {
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(25_000).await_line("xthe end").claude_result("Hello").read_to_end();
    with_a_long_prompt(&env, &script).await.assert_success(&counted(25_000));
}

#[tokio::test]
async fn a_cli_that_exits_before_it_reads_its_prompt_fails_by_its_exit() {
    let env = TestEnv::new();
    let script = Script::new().stderr("no such model\n").exit(3);
    let stream = with_a_long_prompt(&env, &script).await;
    assert!(stream.assert_failed(&ErrorCode::CliExit).contains("no such model"));
}

#[tokio::test]
async fn a_cli_that_closes_its_stdin_and_continues_is_not_an_error() {
    let env = TestEnv::new();
    let script = Script::new().close_stdin().then(agent(&env)).claude_text("Hello").claude_result("Hello");
    with_a_long_prompt(&env, &script).await.assert_success("Hello");
}

#[tokio::test]
async fn a_cli_that_never_reads_its_stdin_is_not_an_error() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello").exit(0);
    with_a_long_prompt(&env, &script).await.assert_success("Hello");
}

#[tokio::test]
async fn stdin_stays_open_until_the_result_was_read() {
    let env = TestEnv::new();
    let ended = json!({"type": "result", "subtype": "success", "is_error": true, "result": "stdin ended too early"});
    // The real CLI discards the end of its output if stdin ends before the result was read.
    let script = agent(&env)
        .on_line("Do it", Script::new().read_to_end().line(ended).exit(1))
        .sleep(SHORT)
        .claude_text("Hello")
        .claude_result("Hello")
        .read_to_end();
    let stream = env.play(&script).await;
    assert_eq!(stream.result().text, "Hello");
}
