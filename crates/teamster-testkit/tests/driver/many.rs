//! Many runs at once, each with its own fate.

use std::fs::File;
use std::sync::Arc;

use serde_json::json;
use teamster::event::ErrorCode;
use teamster_testkit::fake::{Child, Script, Signal};
use tokio::task::JoinSet;

use crate::lab::{Lab, SHORT, Told, agent, counted, good_end, is_alive, is_init, read_until, rest_after, rest_of};

const RUNS: usize = 20;

fn fate(lab: &Lab, number: usize) -> Script {
    let own = format!("run {number}");
    let said = agent(lab).claude_text(&own);
    match number % 10 {
        0 => said.claude_result(&own).read_to_end(),
        1 => said.claude_result(&own).hang(),
        2 => said.exit(3),
        3 => said.raise(Signal::Kill),
        4 => said.hang(),
        5 => said.claude_burst(2000).claude_result(&own).exit(0),
        6 => said.spawn(Child::new(Script::new().ready().hang()).session()).claude_result(&own).read_to_end(),
        7 => said.claude_result_truncated(&own).exit(0),
        8 => said.claude_tool("toolu_1", "Bash", &json!({"command": own})).ignore(Signal::Term).hang(),
        _ => said.text("noise\n").stderr_lines(10_000, "noise").claude_result(&own).read_to_end(),
    }
}

fn assert_own_fate(number: usize, told: &Told) {
    let own = format!("run {number}");
    let text = &told.result().text;
    match number % 10 {
        0 | 1 | 6 | 9 => _ = told.is_good(&own),
        2 => _ = told.failed(&ErrorCode::CliExit),
        3 => _ = told.failed(&ErrorCode::CliSignaled),
        4 | 8 => _ = told.failed(&ErrorCode::WatchdogTimeout),
        5 => _ = told.is_good(&format!("{own}{}", counted(2000))),
        _ => _ = told.failed(&ErrorCode::Protocol),
    }
    assert!(text.starts_with(&own), "{text:?} of run {number}");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_runs_with_different_faults_do_not_touch_each_other() {
    let lab = Arc::new(Lab::new());
    let mut runs = JoinSet::new();
    for number in 0..RUNS {
        let mut request = lab.request(&fate(&lab, number));
        request.limits.silence = SHORT * 10;
        request.limits.tool = SHORT * 10;
        request.limits.after_result = SHORT * 5;
        request.limits.grace = SHORT;
        let lab = Arc::clone(&lab);
        runs.spawn(async move { (number, lab.finish(request).await) });
    }
    let told = runs.join_all().await;
    assert_eq!(told.len(), RUNS);
    for (number, told) in &told {
        assert_own_fate(*number, told);
    }
    lab.assert_all_dead();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_on_while_others_are_aborted() {
    let lab = Lab::new();
    let end = lab.path("end");
    let child = Script::new().write_pid(&lab.pid_file(), "child").ready().await_file(&end);
    let script = agent(&lab).spawn(Child::new(child).session()).await_file(&end).then(good_end("Hello"));
    let mut run = lab.start(lab.request(&script));
    lab.pid("child").await;
    for _ in 0..5 {
        let mut other = lab.start(lab.request(&Script::new().claude_init().hang()));
        let events = read_until(&mut other, is_init).await;
        other.control().abort();
        rest_after(events, &mut other).await.is_aborted();
    }
    assert!(lab.pids().values().all(|&pid| is_alive(pid)));
    File::create(&end).unwrap();
    rest_of(&mut run).await.is_good("Hello");
}
