//! Many runs at the same time, each with a different fault.

use std::fs::File;
use std::sync::Arc;

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::{Child, Script, Signal};
use tokio::task::JoinSet;

use crate::test_env::{
    CheckedStream, SHORT, TestEnv, agent, counted, is_alive, is_init, read_until, rest_after, rest_of, success_end,
};

const RUNS: usize = 20;

fn script_with_fault(env: &TestEnv, number: usize) -> Script {
    let text_of_run = format!("run {number}");
    let script = agent(env).claude_text(&text_of_run);
    match number % 10 {
        0 => script.claude_result(&text_of_run).read_to_end(),
        1 => script.claude_result(&text_of_run).hang(),
        2 => script.exit(3),
        3 => script.raise(Signal::Kill),
        4 => script.hang(),
        5 => script.claude_burst(2000).claude_result(&text_of_run).exit(0),
        6 => script.spawn(Child::new(Script::new().ready().hang()).session()).claude_result(&text_of_run).read_to_end(),
        7 => script.claude_result_truncated(&text_of_run).exit(0),
        8 => script.claude_tool("toolu_1", "Bash", &json!({"command": text_of_run})).ignore(Signal::Term).hang(),
        _ => script.text("noise\n").stderr_lines(10_000, "noise").claude_result(&text_of_run).read_to_end(),
    }
}

fn assert_expected_result(number: usize, stream: &CheckedStream) {
    let text_of_run = format!("run {number}");
    let text = &stream.result().text;
    match number % 10 {
        0 | 1 | 6 | 9 => _ = stream.assert_success(&text_of_run),
        2 => _ = stream.assert_failed(&ErrorCode::CliExit),
        3 => _ = stream.assert_failed(&ErrorCode::CliSignaled),
        4 | 8 => _ = stream.assert_failed(&ErrorCode::WatchdogTimeout),
        5 => _ = stream.assert_success(&format!("{text_of_run}\n\n{}", counted(2000))),
        _ => _ = stream.assert_failed(&ErrorCode::Protocol),
    }
    assert!(text.starts_with(&text_of_run), "{text:?} of run {number}");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_runs_with_different_faults_do_not_affect_each_other() {
    let env = Arc::new(TestEnv::new());
    let mut runs = JoinSet::new();
    for number in 0..RUNS {
        let mut request = env.request(&script_with_fault(&env, number));
        request.limits.silence = SHORT * 10;
        request.limits.tool = SHORT * 10;
        request.limits.after_result = SHORT * 5;
        request.limits.grace = SHORT;
        let env = Arc::clone(&env);
        runs.spawn(async move { (number, env.finish(request).await) });
    }
    let stream = runs.join_all().await;
    assert_eq!(stream.len(), RUNS);
    for (number, stream) in &stream {
        assert_expected_result(*number, stream);
    }
    env.assert_all_dead();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_while_others_are_aborted() {
    let env = TestEnv::new();
    let end = env.path("end");
    let child = Script::new().write_pid(&env.pid_file(), "child").ready().await_file(&end);
    let script = agent(&env).spawn(Child::new(child).session()).await_file(&end).then(success_end("Hello"));
    let mut run = env.start(env.request(&script));
    env.pid("child").await;
    for _ in 0..5 {
        let mut other = env.start(env.request(&Script::new().claude_init().hang()));
        let events = read_until(&mut other, is_init).await;
        other.control().abort();
        rest_after(events, &mut other).await.assert_aborted();
    }
    assert!(env.pids().values().all(|&pid| is_alive(pid)));
    File::create(&end).unwrap();
    rest_of(&mut run).await.assert_success("Hello");
}
