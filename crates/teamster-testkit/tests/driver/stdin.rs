//! The prompt goes in while the output comes out.

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::Script;

use crate::lab::{LONG, Lab, SHORT, Told, agent, counted, good_end};

const PROMPT_BYTES: usize = 5 << 20;

async fn with_a_long_prompt(lab: &Lab, script: &Script) -> Told {
    let mut request = lab.request(script);
    request.prompt = format!("{}the end", "x".repeat(PROMPT_BYTES));
    request.limits.after_result = LONG;
    lab.finish(request).await
}

#[tokio::test]
async fn a_prompt_of_5_megabytes_arrives_whole() {
    let lab = Lab::new();
    let script = agent(&lab).await_line("xthe end").then(good_end("Hello"));
    with_a_long_prompt(&lab, &script).await.is_good("Hello");
}

#[tokio::test]
async fn a_cli_that_writes_much_before_it_reads_does_not_hang() {
    let lab = Lab::new();
    let script = agent(&lab).claude_burst(25_000).await_line("xthe end").claude_result("Hello").read_to_end();
    with_a_long_prompt(&lab, &script).await.is_good(&counted(25_000));
}

#[tokio::test]
async fn a_cli_that_exits_before_it_reads_its_prompt_fails_by_its_exit() {
    let lab = Lab::new();
    let script = Script::new().stderr("no such model\n").exit(3);
    let told = with_a_long_prompt(&lab, &script).await;
    assert!(told.failed(&ErrorCode::CliExit).contains("no such model"));
}

#[tokio::test]
async fn a_cli_that_closes_its_stdin_and_works_on_is_no_error() {
    let lab = Lab::new();
    let script = Script::new().close_stdin().then(agent(&lab)).claude_text("Hello").claude_result("Hello");
    with_a_long_prompt(&lab, &script).await.is_good("Hello");
}

#[tokio::test]
async fn a_cli_that_never_reads_its_stdin_is_no_error() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").claude_result("Hello").exit(0);
    with_a_long_prompt(&lab, &script).await.is_good("Hello");
}

#[tokio::test]
async fn stdin_stays_open_until_the_result_has_come() {
    let lab = Lab::new();
    let ended = json!({"type": "result", "subtype": "success", "is_error": true, "result": "stdin ended too early"});
    // The real CLI drops the end of its output when its stdin ends before the result was read.
    let script = agent(&lab)
        .on_line("Do it", Script::new().read_to_end().line(ended).exit(1))
        .sleep(SHORT)
        .claude_text("Hello")
        .claude_result("Hello")
        .read_to_end();
    let told = lab.play(&script).await;
    assert_eq!(told.result().text, "Hello");
}
