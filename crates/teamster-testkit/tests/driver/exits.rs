//! The ways in which a CLI ends, and the result of the run.

use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster_testkit::fake::{Script, Signal};

use crate::test_env::{SHORT, TestEnv, agent, block_until, counted, is_alive, rest_of, success_end};

#[tokio::test]
async fn a_successful_turn_is_reported_completely() {
    let env = TestEnv::new();
    let script = agent(&env)
        .claude_text("Let me look. ")
        .claude_tool("toolu_1", "Bash", &json!({"command": "ls"}))
        .claude_tool_result("toolu_1", "two files")
        .then(success_end("Two files."));
    let stream = env.play(&script).await;
    stream.assert_success("Let me look. \n\nTwo files.");
    assert_eq!(stream.result().final_text, "Two files.");
    assert_eq!(stream.result().exit_code, Some(0));
    assert_eq!(stream.tool_results()[0].output, "two files");
}

#[tokio::test]
async fn a_cli_that_does_not_exit_after_its_result_is_terminated_and_the_run_succeeds() {
    let env = TestEnv::new();
    let mut request = env.request(&agent(&env).claude_text("Hello").claude_result("Hello").hang());
    request.limits.after_result = SHORT;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::ExitForced).len(), 1);
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
    env.assert_all_dead();
}

#[tokio::test]
async fn a_cli_that_ignores_sigterm_after_its_result_is_killed_and_the_run_succeeds() {
    let env = TestEnv::new();
    let script = agent(&env).ignore(Signal::Term).claude_text("Hello").claude_result("Hello").hang();
    let mut request = env.request(&script);
    request.limits.after_result = SHORT;
    request.limits.grace = SHORT;
    let stream = env.finish(request).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::ExitForced).len(), 1);
    assert_eq!(stream.result().signal.as_deref(), Some("SIGKILL"));
    env.assert_all_dead();
}

#[tokio::test]
async fn a_success_is_kept_when_the_exit_code_is_not_zero() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello").stderr("the disk is full\n").exit(1);
    let stream = env.play(&script).await;
    stream.assert_success("Hello");
    assert_eq!(stream.result().exit_code, Some(1));
    let warnings = stream.warnings(&WarningCode::ExitFailed);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].message, "the CLI exited with code 1 after its result: the disk is full");
    assert_eq!(warnings[0].data.as_ref().unwrap()["exitCode"], 1);
}

#[tokio::test]
async fn a_signal_after_the_result_is_a_warning() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).claude_text("Hello").claude_result("Hello").raise(Signal::Kill)).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::ExitFailed)[0].message, "SIGKILL ended the CLI after its result");
}

#[tokio::test]
async fn an_exit_code_0_after_the_result_is_no_warning() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).claude_text("Hello").claude_result("Hello").exit(0)).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::ExitFailed).len(), 0);
}

#[tokio::test]
async fn exit_code_0_without_a_result_is_an_error() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).claude_text("Hel").exit(0)).await;
    stream.assert_failed(&ErrorCode::Protocol);
    assert_eq!(stream.result().text, "Hel");
    assert_eq!(stream.result().exit_code, Some(0));
}

#[tokio::test]
async fn an_error_exit_reports_the_code_and_the_end_of_stderr() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).stderr("first\nthe disk is on fire\n").exit(3)).await;
    let message = stream.assert_failed(&ErrorCode::CliExit);
    assert!(message.contains('3') && message.contains("the disk is on fire"), "{message}");
    assert_eq!(stream.result().exit_code, Some(3));
    assert_eq!(stream.result().stderr.as_deref(), Some("first\nthe disk is on fire\n"));
}

#[tokio::test]
async fn the_signal_that_kills_the_cli_is_reported() {
    for (signal, name) in [(Signal::Kill, "SIGKILL"), (Signal::Abrt, "SIGABRT"), (Signal::Term, "SIGTERM")] {
        let env = TestEnv::new();
        let stream = env.play(&agent(&env).raise(signal)).await;
        let message = stream.assert_failed(&ErrorCode::CliSignaled);
        assert!(message.contains(name), "{message}");
        assert_eq!(stream.result().signal.as_deref(), Some(name));
        assert_eq!(stream.result().exit_code, None);
    }
}

#[tokio::test]
async fn a_tool_call_that_is_running_when_the_cli_dies_gets_a_result() {
    let env = TestEnv::new();
    let script = agent(&env).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).raise(Signal::Kill);
    let stream = env.play(&script).await;
    stream.assert_failed(&ErrorCode::CliSignaled);
    let closed = &stream.tool_results()[0];
    assert_eq!((closed.output.as_str(), closed.is_error), ("interrupted", Some(true)));
}

#[tokio::test]
async fn a_truncated_result_is_not_a_success() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).claude_text("Hello").claude_result_truncated("Hello").exit(0)).await;
    stream.assert_failed(&ErrorCode::Protocol);
    assert_eq!(stream.warnings(&WarningCode::MalformedLine).len(), 1);
    assert_eq!(stream.result().text, "Hello");
}

#[tokio::test]
async fn a_result_without_a_newline_is_read() {
    let env = TestEnv::new();
    let stream = env.play(&agent(&env).claude_text("Hello").claude_result_unterminated("Hello").exit(0)).await;
    stream.assert_success("Hello");
    assert_eq!(stream.warnings(&WarningCode::MalformedLine).len(), 0);
}

#[tokio::test]
async fn stdout_closed_long_before_the_exit_loses_nothing() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").claude_result("Hello").close_stdout().sleep(SHORT).exit(0);
    let stream = env.play(&script).await;
    stream.assert_success("Hello");
    assert_eq!(stream.result().exit_code, Some(0));
}

/// The driver and this test share one thread, so nothing is read while the test blocks it: all
/// output is in the pipe when the CLI has exited.
#[tokio::test(flavor = "current_thread")]
async fn output_in_the_pipe_at_the_exit_of_the_cli_is_read() {
    const DELTAS: u64 = 4000;
    let env = TestEnv::new();
    let script = agent(&env).claude_burst(DELTAS).claude_result("all of it").exit(0);
    let mut run = env.start(env.request(&script));
    let agent = env.pid("agent").await;
    block_until("the agent has exited", || !is_alive(agent));
    rest_of(&mut run).await.assert_success(&counted(DELTAS));
}

#[tokio::test]
async fn a_run_without_output_ends() {
    let env = TestEnv::new();
    env.play(&Script::new()).await.assert_failed(&ErrorCode::Protocol);
}
