//! Limits on turns and processes: which turns wait, which processes are closed to make room, and
//! what a host can read about it.

use std::num::NonZeroUsize;

use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::{Answer, OrphanPolicy};
use teamster::{RunError, RunRequest, Runtime, Session};
use teamster_testkit::fake::{Child, Script};

use crate::test_env::{
    LONG, SHORT, TestEnv, agent as any_agent, bounded, is_alive, is_init, kill, read_until, rest_after, rest_of,
    wait_until,
};

fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// An agent that records its pid under this name, and answers three turns with it.
fn agent(env: &TestEnv, name: &str) -> Script {
    let turn = || Script::new().await_line("go").claude_init().claude_text(name).claude_result(name);
    let turns = Script::new().write_pid(&env.pid_file(), name).then(turn()).then(turn()).then(turn());
    turns.read_to_end()
}

/// An agent that requests permission in its turn.
fn asking(env: &TestEnv, name: &str) -> Script {
    let request = json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1"},
    });
    Script::new()
        .write_pid(&env.pid_file(), name)
        .await_line("go")
        .claude_init()
        .line(request)
        .await_line("r1")
        .claude_text(name)
        .claude_result(name)
        .read_to_end()
}

fn open(env: &TestEnv, script: &Script) -> Session {
    let mut request: RunRequest = env.request(script);
    request.prompt.clear();
    request.limits.startup = LONG;
    request.limits.silence = LONG;
    env.runtime.open("claude", request).unwrap()
}

async fn answers(session: &Session, with: &str) {
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    stream.assert_success(with);
    assert!(stream.warnings(&WarningCode::SessionReopened).is_empty(), "the caller does not have to know");
}

fn is_request(event: &Event) -> bool {
    matches!(event, Event::PermissionRequest(_))
}

#[tokio::test]
async fn the_limit_of_live_processes_holds_and_each_session_continues() {
    let env = TestEnv::with_runtime(Runtime::builder().max_live_processes(number(2)).build());
    let names = ["1", "2", "3", "4", "5"];
    let sessions = names.map(|name| open(&env, &agent(&env, name)));
    for _ in 0..2 {
        for (session, name) in sessions.iter().zip(names) {
            answers(session, name).await;
            let living = env.pids().values().filter(|pid| is_alive(**pid)).count();
            assert!(living <= 2 && env.runtime.stats().total.live_processes <= 2, "{living} live");
        }
    }
    for session in &sessions {
        bounded("the end", session.close()).await;
    }
    env.assert_all_dead();
    assert_eq!(env.runtime.stats().total.live_processes, 0);
}

#[tokio::test]
async fn the_least_recently_used_session_loses_its_process() {
    let env = TestEnv::with_runtime(Runtime::builder().max_live_processes(number(2)).build());
    let (one, two, three) =
        (open(&env, &agent(&env, "1")), open(&env, &agent(&env, "2")), open(&env, &agent(&env, "3")));
    answers(&one, "1").await;
    answers(&two, "2").await;
    answers(&one, "1").await;
    let (first, second) = (env.pids()["1"], env.pids()["2"]);
    answers(&three, "3").await;
    assert!(is_alive(first) && !is_alive(second));
}

#[tokio::test]
async fn a_process_that_is_idle_too_long_is_closed_and_the_next_turn_resumes_the_conversation() {
    let env = TestEnv::with_runtime(Runtime::builder().idle_process_timeout(SHORT).build());
    let session = open(&env, &agent(&env, "1"));
    answers(&session, "1").await;
    let pid = env.pids()["1"];
    wait_until("the idle process is closed", || !is_alive(pid)).await;
    let conversation = session.id();
    answers(&session, "1").await;
    assert_ne!(env.pids()["1"], pid);
    assert_eq!(session.id(), conversation);
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn a_turn_that_waits_for_an_answer_delays_no_other_turn() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let (asks, other) = (open(&env, &asking(&env, "asks")), open(&env, &agent(&env, "other")));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    answers(&other, "other").await;
    assert_eq!(env.runtime.stats().total.awaiting_answers, 1);
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut turn).await.assert_success("asks");
}

#[tokio::test]
async fn an_answered_turn_waits_for_a_permit_but_not_behind_new_turns() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let asks = open(&env, &asking(&env, "asks"));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    let go = env.path("go");
    let mut busy = env.start(env.request(&any_agent(&env).await_file(&go).claude_result("busy").read_to_end()));
    let first_events = read_until(&mut busy, is_init).await;
    let mut new = env.start(env.request(&any_agent(&env).claude_result("new").read_to_end()));
    let queued = read_until(&mut new, |event| matches!(event, Event::Queued(_))).await;
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    let stats = env.runtime.stats().total;
    assert_eq!((stats.running_turns, stats.waiting_turns), (1, 2), "{stats:?}");
    std::fs::write(&go, "").unwrap();
    rest_after(first_events, &mut busy).await.assert_success("busy");
    rest_after(events, &mut turn).await.assert_success("asks");
    rest_after(queued, &mut new).await.assert_success("new");
}

#[tokio::test]
async fn a_turn_that_waits_for_an_answer_and_one_that_waits_for_its_process_do_not_deadlock() {
    let runtime =
        Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).max_live_processes(NonZeroUsize::MIN).build();
    let env = TestEnv::with_runtime(runtime);
    let (asks, other) = (open(&env, &asking(&env, "asks")), open(&env, &agent(&env, "other")));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    let mut waiting = other.send("go").unwrap();
    let queued = read_until(&mut waiting, |event| matches!(event, Event::Queued(_))).await;
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut turn).await.assert_success("asks");
    rest_after(queued, &mut waiting).await.assert_success("other");
}

#[tokio::test]
async fn a_turn_whose_request_times_out_continues_with_a_permit() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let mut request = env.request(&asking(&env, "asks"));
    request.prompt.clear();
    request.limits.answer = SHORT;
    let session = env.runtime.open("claude", request).unwrap();
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    stream.assert_success("asks");
    assert_eq!(stream.warnings(&WarningCode::Unanswered).len(), 1);
    assert_eq!(env.runtime.stats().total.awaiting_answers, 0);
}

#[tokio::test]
async fn one_user_with_many_runs_does_not_delay_another_user() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let run = |key: &str| {
        let mut request =
            env.request(&Script::new().claude_init().claude_result(key).write_pid(&env.pid_file(), key).read_to_end());
        request.queue_key = Some(key.to_owned());
        env.start(request)
    };
    let mut runs = vec![run("a"), run("a"), run("a"), run("a"), run("b")];
    for run in &mut runs {
        assert!(!rest_of(run).await.result().is_error);
    }
    let records = std::fs::read_to_string(env.pid_file()).unwrap();
    let order: String = records.lines().filter_map(|line| line.chars().next()).collect();
    // When the run with the second key was queued, one run of the first key was running and one was
    // next.
    assert_eq!(order, "aabaa");
}

#[tokio::test]
async fn a_run_and_a_turn_beyond_the_queue_limit_are_rejected() {
    let env =
        TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).max_queued_turns(1).build());
    let busy = || any_agent(&env).hang();
    let mut running = env.start(env.request(&busy()));
    read_until(&mut running, is_init).await;
    let session = open(&env, &agent(&env, "1"));
    let waiting = env.start(env.request(&busy()));
    let refused = env.runtime.run("claude", env.request(&busy())).unwrap_err();
    assert!(matches!(refused, RunError::QueueFull { limit: 1 }), "{refused:?}");
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    stream.assert_failed(&ErrorCode::QueueFull);
    drop((running, waiting));
    wait_until("both have left", || {
        let total = env.runtime.stats().total;
        total.running_turns + total.waiting_turns == 0
    })
    .await;
    answers(&session, "1").await;
}

#[tokio::test]
async fn a_waiting_run_reports_its_position_and_each_change() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let run = |name: &str| {
        env.start(env.request(&any_agent(&env).await_file(&env.path(name)).claude_result(name).read_to_end()))
    };
    let (mut one, mut two, mut three) = (run("1"), run("2"), run("3"));
    let at = |wanted: u64| move |event: &Event| matches!(event, Event::Queued(queued) if queued.position == wanted);
    let mut events = read_until(&mut three, at(2)).await;
    std::fs::write(env.path("1"), "").unwrap();
    rest_of(&mut one).await.assert_success("1");
    events.extend(read_until(&mut three, at(1)).await);
    for name in ["2", "3"] {
        std::fs::write(env.path(name), "").unwrap();
    }
    rest_of(&mut two).await.assert_success("2");
    let stream = rest_after(events, &mut three).await;
    stream.assert_success("3");
    assert_eq!(stream.events.iter().filter(|event| matches!(event, Event::Queued(_))).count(), 2);
}

#[tokio::test]
async fn statistics_report_live_running_and_waiting_by_agent() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let idle = open(&env, &agent(&env, "1"));
    answers(&idle, "1").await;
    let mut running = env.start(env.request(&any_agent(&env).hang()));
    read_until(&mut running, is_init).await;
    let waiting = env.start(env.request(&any_agent(&env).hang()));
    let stats = env.runtime.stats();
    let claude = stats.agents["claude"];
    assert_eq!(claude, stats.total);
    assert_eq!((claude.live_processes, claude.idle_processes), (2, 1), "{stats:?}");
    assert_eq!((claude.running_turns, claude.waiting_turns, claude.awaiting_answers), (1, 1, 0), "{stats:?}");
    drop((running, waiting));
    bounded("the end", idle.close()).await;
    bounded("shutdown", env.runtime.wait_idle()).await;
    assert!(env.runtime.stats().agents.is_empty(), "{:?}", env.runtime.stats());
}

#[tokio::test]
async fn a_setting_changed_while_a_turn_waits_for_a_permit_applies_to_that_turn() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let go = env.path("go");
    let mut busy = env.start(env.request(&any_agent(&env).await_file(&go).claude_result("busy").read_to_end()));
    let first_events = read_until(&mut busy, is_init).await;
    // If the prompt came first, it would be skipped here, and the agent would wait forever.
    let turn =
        Script::new().await_line("another-model").await_line("go").claude_init().claude_text("1").claude_result("1");
    let session = open(&env, &turn.read_to_end());
    let mut one = session.send("go").unwrap();
    let queued = read_until(&mut one, |event| matches!(event, Event::Queued(_))).await;
    session.set_model("another-model").unwrap();
    std::fs::write(&go, "").unwrap();
    rest_after(first_events, &mut busy).await.assert_success("busy");
    rest_after(queued, &mut one).await.assert_success("1");
}

#[tokio::test]
async fn a_setting_changed_while_a_turn_waits_for_a_permit_applies_even_if_that_turn_is_cancelled() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let turn = |answer: &str| Script::new().await_line("go").claude_init().claude_text(answer).claude_result(answer);
    // If the prompt came first, it would be skipped here, and the agent would wait forever.
    let session = open(&env, &turn("1").await_line("another-model").then(turn("2")).read_to_end());
    answers(&session, "1").await;
    let go = env.path("go");
    let mut busy = env.start(env.request(&any_agent(&env).await_file(&go).claude_result("busy").read_to_end()));
    let first_events = read_until(&mut busy, is_init).await;
    let mut one = session.send("go").unwrap();
    let queued = read_until(&mut one, |event| matches!(event, Event::Queued(_))).await;
    session.set_model("another-model").unwrap();
    // The answer arrives when all earlier commands have been handled.
    let answer = Answer::Deny { message: None };
    bounded("the answer", session.answer(RequestId::from("none"), answer)).await.unwrap_err();
    one.control().interrupt();
    rest_after(queued, &mut one).await;
    std::fs::write(&go, "").unwrap();
    rest_after(first_events, &mut busy).await.assert_success("busy");
    answers(&session, "2").await;
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn processes_that_outlive_a_process_closed_between_turns_are_in_the_next_result() {
    let env = TestEnv::with_runtime(Runtime::builder().idle_process_timeout(SHORT).build());
    let child = Child::new(Script::new().write_pid(&env.pid_file(), "child").ready().hang()).session().without_stdout();
    let turn =
        |before: Script| Script::new().await_line("go").then(before).claude_init().claude_result("1").read_to_end();
    let scripts = [turn(Script::new().spawn(child)), turn(Script::new())];
    let mut request = env.request(&Script::new().play_next(&env.path("starts"), scripts));
    request.prompt.clear();
    request.orphans = OrphanPolicy::Keep;
    let session = env.runtime.open("claude", request).unwrap();
    answers(&session, "1").await;
    let child = env.pids()["child"];
    wait_until("the idle process is closed", || env.runtime.stats().total.live_processes == 0).await;
    assert!(is_alive(child));
    let stream = rest_of(&mut session.send("go").unwrap()).await;
    let left: Vec<_> = stream.assert_success("1").result().left_processes.iter().map(|process| process.pid).collect();
    assert_eq!(left, [child]);
    kill(child);
    bounded("the end", session.close()).await;
}
