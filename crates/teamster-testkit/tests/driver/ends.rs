//! How a CLI ends, and what becomes of the run.

use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster_testkit::fake::{Script, Signal};

use crate::lab::{Lab, SHORT, agent, block_until, counted, good_end, is_alive, rest_of};

#[tokio::test]
async fn a_turn_that_goes_well_is_told_whole() {
    let lab = Lab::new();
    let script = agent(&lab)
        .claude_text("Let me look. ")
        .claude_tool("toolu_1", "Bash", &json!({"command": "ls"}))
        .claude_tool_result("toolu_1", "two files")
        .then(good_end("Two files."));
    let told = lab.play(&script).await;
    told.is_good("Let me look. Two files.");
    assert_eq!(told.result().final_text, "Two files.");
    assert_eq!(told.result().exit_code, Some(0));
    assert_eq!(told.tool_results()[0].output, "two files");
}

#[tokio::test]
async fn a_cli_that_never_exits_after_its_result_is_ended_and_the_success_stands() {
    let lab = Lab::new();
    let mut request = lab.request(&agent(&lab).claude_text("Hello").claude_result("Hello").hang());
    request.limits.after_result = SHORT;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::ExitForced).len(), 1);
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_cli_that_refuses_to_exit_after_its_result_is_killed_and_the_success_stands() {
    let lab = Lab::new();
    let script = agent(&lab).ignore(Signal::Term).claude_text("Hello").claude_result("Hello").hang();
    let mut request = lab.request(&script);
    request.limits.after_result = SHORT;
    request.limits.grace = SHORT;
    let told = lab.finish(request).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::ExitForced).len(), 1);
    assert_eq!(told.result().signal.as_deref(), Some("SIGKILL"));
    lab.assert_all_dead();
}

#[tokio::test]
async fn an_error_code_after_a_result_that_went_well_does_not_spoil_it() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).claude_text("Hello").claude_result("Hello").exit(1)).await;
    told.is_good("Hello");
    assert_eq!(told.result().exit_code, Some(1));
}

#[tokio::test]
async fn an_exit_with_0_and_no_result_is_no_success() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).claude_text("Hel").exit(0)).await;
    told.failed(&ErrorCode::Protocol);
    assert_eq!(told.result().text, "Hel");
    assert_eq!(told.result().exit_code, Some(0));
}

#[tokio::test]
async fn an_exit_with_an_error_tells_the_code_and_the_end_of_stderr() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).stderr("first\nthe disk is on fire\n").exit(3)).await;
    let message = told.failed(&ErrorCode::CliExit);
    assert!(message.contains('3') && message.contains("the disk is on fire"), "{message}");
    assert_eq!(told.result().exit_code, Some(3));
    assert_eq!(told.result().stderr.as_deref(), Some("first\nthe disk is on fire\n"));
}

#[tokio::test]
async fn a_signal_that_ends_the_cli_is_named() {
    for (signal, name) in [(Signal::Kill, "SIGKILL"), (Signal::Abrt, "SIGABRT"), (Signal::Term, "SIGTERM")] {
        let lab = Lab::new();
        let told = lab.play(&agent(&lab).raise(signal)).await;
        let message = told.failed(&ErrorCode::CliSignaled);
        assert!(message.contains(name), "{message}");
        assert_eq!(told.result().signal.as_deref(), Some(name));
        assert_eq!(told.result().exit_code, None);
    }
}

#[tokio::test]
async fn a_tool_that_was_running_when_the_cli_died_is_closed() {
    let lab = Lab::new();
    let script = agent(&lab).claude_tool("toolu_1", "Bash", &json!({"command": "make"})).raise(Signal::Kill);
    let told = lab.play(&script).await;
    told.failed(&ErrorCode::CliSignaled);
    let closed = &told.tool_results()[0];
    assert_eq!((closed.output.as_str(), closed.is_error), ("interrupted", Some(true)));
}

#[tokio::test]
async fn a_result_that_is_cut_in_half_is_no_success() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).claude_text("Hello").claude_result_truncated("Hello").exit(0)).await;
    told.failed(&ErrorCode::Protocol);
    assert_eq!(told.warnings(&WarningCode::MalformedLine).len(), 1);
    assert_eq!(told.result().text, "Hello");
}

#[tokio::test]
async fn a_result_without_a_newline_is_read() {
    let lab = Lab::new();
    let told = lab.play(&agent(&lab).claude_text("Hello").claude_result_unterminated("Hello").exit(0)).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::MalformedLine).len(), 0);
}

#[tokio::test]
async fn stdout_closed_long_before_the_exit_loses_nothing() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").claude_result("Hello").close_stdout().sleep(SHORT).exit(0);
    let told = lab.play(&script).await;
    told.is_good("Hello");
    assert_eq!(told.result().exit_code, Some(0));
}

/// The driver and this test share one thread, so that nothing is read while the test blocks it: all of it lies in the
/// pipe when the CLI is gone.
#[tokio::test(flavor = "current_thread")]
async fn what_lies_in_the_pipe_when_the_cli_exits_is_read() {
    const DELTAS: u64 = 4000;
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(DELTAS).claude_result("all of it").exit(0);
    let mut run = lab.start(lab.request(&script));
    let agent = lab.pid("agent").await;
    block_until("the agent has exited", || !is_alive(agent));
    rest_of(&mut run).await.is_good(&counted(DELTAS));
}

#[tokio::test]
async fn a_run_without_any_output_ends_too() {
    let lab = Lab::new();
    lab.play(&Script::new()).await.failed(&ErrorCode::Protocol);
}
