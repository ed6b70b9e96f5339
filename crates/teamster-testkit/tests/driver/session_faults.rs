//! Faults of sessions at the border of two turns: late answers, late settings, prompts that are sent again, processes that do
//! not exit.

use std::fs;
use std::num::{NonZeroU64, NonZeroUsize};
use std::time::Duration;

use serde_json::{Value, json};
use teamster::event::{Event, WarningCode};
use teamster::request::{Answer, OrphanPolicy, PermissionMode};
use teamster::{Ledger, Runtime, Sent, SessionOptions};
use teamster_testkit::fake::Script;

use crate::agent_turns;
use crate::sessions::{agent, open, session_request, turn};
use crate::steering::sent_as_a_turn;
use crate::test_env::{
    INTERRUPT, SHORT, TestEnv, bounded, is_alive, is_text, read_until, rest_after, rest_of, wait_until,
};

#[tokio::test]
async fn a_crash_in_a_turn_of_late_steering_prompts_sends_nothing_again() {
    let env = TestEnv::new();
    let go = env.path("go");
    let crash = Script::new().claude_init().claude_echo().claude_partial_text("2").await_file(&go).exit(3);
    let first_turn = agent(&env).await_line("one").claude_init().claude_text("1").await_line("more").claude_result("1");
    let other = agent(&env).then(turn("more", "3")).read_to_end();
    let script = Script::new().play_next(&env.path("starts"), [first_turn.then(crash), other]);
    let session = open(&env, &script);
    let mut first = session.send("one").unwrap();
    let events = read_until(&mut first, is_text).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await;
    let events = read_until(&mut second, is_text).await;
    fs::write(&go, "").unwrap();
    let stream = rest_after(events, &mut second).await;
    assert!(stream.result().is_error, "the agent had worked on the prompt: {:#?}", stream.events);
}

#[tokio::test]
async fn a_cli_that_does_not_exit_is_killed_although_orphans_are_kept() {
    for end in ["close", "drop", "restart"] {
        let env = TestEnv::new();
        let mut request = session_request(&env, &agent(&env).then(turn("one", "1")).hang());
        request.orphans = OrphanPolicy::Keep;
        request.limits.grace = SHORT;
        let session = env.runtime.open("claude", request).unwrap();
        rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
        let pid = env.pid("agent").await;
        match end {
            "close" => session.close().await,
            "drop" => drop(session),
            _ => session.set_permission_mode(PermissionMode::Full).unwrap(),
        }
        wait_until("the CLI is killed", || !is_alive(pid)).await;
    }
}

#[tokio::test]
async fn a_turn_of_late_steering_prompts_beyond_the_budget_is_interrupted() {
    let env = TestEnv::new();
    let late = Script::new().claude_init().claude_echo().claude_partial_text("2").await_line(INTERRUPT);
    let late = late.write_pid(&env.pid_file(), "interrupted").claude_interrupted().read_to_end();
    let script = agent(&env).await_line("one").claude_init().claude_text("1").await_line("more").claude_result("1");
    let mut request = session_request(&env, &script.then(late));
    request.max_session_budget_usd = Some(0.001);
    let session = env.runtime.open("claude", request).unwrap();
    let mut first = session.send("one").unwrap();
    let events = read_until(&mut first, is_text).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await;
    assert!(rest_of(&mut second).await.result().is_error);
    wait_until("the agent is interrupted", || env.pids().contains_key("interrupted")).await;
}

#[tokio::test]
async fn a_mode_that_is_set_while_a_late_steering_prompt_waits_applies_to_the_turn_after_it() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let late = Script::new().claude_init().claude_echo().claude_text("2").claude_result("2");
    let old = agent(&env).await_line("one").claude_init().claude_text("1").await_line("more");
    let old =
        old.await_file(&env.path("end-one")).claude_result("1").then(late).then(turn("three", "old")).read_to_end();
    let new = agent(&env).then(turn("three", "new")).read_to_end();
    let session = open(&env, &Script::new().play_next(&env.path("starts"), [old, new]));
    let mut first = session.send("one").unwrap();
    let events = read_until(&mut first, is_text).await;
    // This run takes the only permit between the two turns.
    let script = Script::new().write_pid(&env.pid_file(), "other").claude_init().await_file(&env.path("end-other"));
    let mut other = env.start(env.request(&script.claude_text("o").claude_result("o").read_to_end()));
    let more = session.send_now("more");
    let end_first = async {
        let written = fs::write(env.path("end-one"), "");
        rest_after(events, &mut first).await;
        written
    };
    let (sent, written) = tokio::join!(more, end_first);
    written.unwrap();
    let Sent::Turn(mut second) = sent.unwrap() else { panic!("the prompt was steered") };
    env.pid("other").await;
    session.set_permission_mode(PermissionMode::ReadOnly).unwrap();
    fs::write(env.path("end-other"), "").unwrap();
    rest_of(&mut other).await;
    rest_of(&mut second).await;
    rest_of(&mut session.send("three").unwrap()).await.assert_success("new");
    session.close().await;
}

#[tokio::test]
async fn a_late_answer_of_a_handler_does_not_answer_another_request_with_the_same_id() {
    let env = TestEnv::new();
    let ask = |command: &str| -> Value {
        json!({"type": "control_request", "request_id": "r1",
               "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}, "tool_use_id": "t1"}})
    };
    let script = agent(&env).await_line("one").claude_init().line(ask("harmless"));
    let script = script.line(json!({"type": "control_cancel_request", "request_id": "r1"})).line(ask("dangerous"));
    let script =
        script.await_line("behavior").write_pid(&env.pid_file(), "answered").claude_text("x").claude_result("x");
    let release = env.path("release");
    let waiting = release.clone();
    let handler = move |event: Event| {
        let release = waiting.clone();
        async move {
            let Event::PermissionRequest(request) = event else { return Answer::Deny { message: None } };
            if request.input.as_str().contains("dangerous") {
                return std::future::pending().await;
            }
            wait_until("the answer is released", || release.exists()).await;
            Answer::Allow { input: None }
        }
    };
    let mut request = session_request(&env, &script.read_to_end());
    request.limits.answer = Duration::from_secs(1);
    let options = SessionOptions::new(request).with_handler(handler);
    let session = env.runtime.open("claude", options).unwrap();
    let mut run = session.send("one").unwrap();
    let is_dangerous = |event: &Event| match event {
        Event::PermissionRequest(request) => request.input.as_str().contains("dangerous"),
        _ => false,
    };
    let events = read_until(&mut run, is_dangerous).await;
    fs::write(&release, "").unwrap();
    let stream = rest_after(events, &mut run).await;
    let allowed = stream.events.iter().any(|event| match event {
        Event::PermissionAnswered(answered) => {
            answered.request_id.as_str() == "r1" && answered.decision.as_str() == "allow"
        }
        _ => false,
    });
    assert!(!allowed, "{:#?}", stream.events);
}

#[tokio::test]
async fn a_session_reports_that_the_ledger_is_unavailable_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "x").unwrap();
    let env = TestEnv::with_runtime(Runtime::builder().ledger(Ledger::in_directory(file.join("ledger"))).build());
    let session = open(&env, &agent(&env).then(turn("one", "1")).then(turn("two", "2")).read_to_end());
    for (prompt, expected) in [("one", 1), ("two", 0)] {
        let stream = rest_of(&mut session.send(prompt).unwrap()).await;
        assert_eq!(stream.warnings(&WarningCode::LedgerUnavailable).len(), expected, "{prompt}");
    }
    session.close().await;
}

#[tokio::test]
async fn a_prompt_that_is_never_accepted_ends_with_the_deadline() {
    let env = agent_turns::test_env();
    // The agent removes the prompt from its queue for much longer than the deadline.
    let rejects = |script: Script, _| script.await_line("one").sleep(SHORT / 4).text("not-accepted\n");
    let script = (0..100).fold(Script::new(), rejects);
    let mut request = agent_turns::session_request(&env, &script.read_to_end());
    (request.limits.deadline, request.limits.grace) = (SHORT, SHORT);
    let options = SessionOptions::new(request).with_background_tasks();
    let session = env.runtime.open(agent_turns::NAME, options).unwrap();
    let mut run = session.send("one").unwrap();
    let stream = bounded("the deadline", rest_of(&mut run)).await;
    assert!(stream.result().is_error);
}

#[tokio::test]
async fn tokens_of_an_agent_turn_that_precedes_the_prompt_count() {
    let env = agent_turns::test_env();
    let script = Script::new().await_line("one").text("not-accepted agent-turn\nused mine\nend\n");
    let script = script.await_line("one").text("1\nend\n").read_to_end();
    let mut request = agent_turns::session_request(&env, &script);
    request.max_session_tokens = NonZeroU64::new(1);
    let options = SessionOptions::new(request).with_background_tasks();
    let session = env.runtime.open(agent_turns::NAME, options).unwrap();
    let stream = rest_of(&mut session.send("one").unwrap()).await;
    assert!(stream.result().is_error, "the agent's turn has used the budget");
    session.close().await;
}
