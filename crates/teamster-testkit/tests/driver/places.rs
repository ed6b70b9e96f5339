//! Limits on turns and processes: which turns wait, which processes are closed for others, and what a host can read of it.

use std::num::NonZeroUsize;

use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::{Answer, Background};
use teamster::{RunError, RunRequest, Runtime, Session};
use teamster_testkit::fake::{Child, Script};

use crate::lab::{
    LONG, Lab, SHORT, agent as any_agent, bounded, eventually, is_alive, is_init, read_until, rest_after, rest_of,
};

fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// An agent that writes its number under this name, and answers each of some turns with it.
fn agent(lab: &Lab, name: &str) -> Script {
    let turn = || Script::new().await_line("go").claude_init().claude_text(name).claude_result(name);
    let turns = Script::new().write_pid(&lab.pid_file(), name).then(turn()).then(turn()).then(turn());
    turns.read_to_end()
}

/// An agent that asks for leave in its turn.
fn asking(lab: &Lab, name: &str) -> Script {
    let request = json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1"},
    });
    Script::new()
        .write_pid(&lab.pid_file(), name)
        .await_line("go")
        .claude_init()
        .line(request)
        .await_line("r1")
        .claude_text(name)
        .claude_result(name)
        .read_to_end()
}

fn open(lab: &Lab, script: &Script) -> Session {
    let mut frame: RunRequest = lab.request(script);
    frame.prompt.clear();
    frame.limits.startup = LONG;
    frame.limits.silence = LONG;
    lab.runtime.open("claude", frame).unwrap()
}

async fn answers(session: &Session, with: &str) {
    let told = rest_of(&mut session.send("go").unwrap()).await;
    told.is_good(with);
    assert!(told.warnings(&WarningCode::SessionReopened).is_empty(), "it is nothing that the caller has to know");
}

fn is_request(event: &Event) -> bool {
    matches!(event, Event::PermissionRequest(_))
}

#[tokio::test]
async fn no_more_processes_live_than_were_allowed_and_each_session_goes_on() {
    let lab = Lab::with_runtime(Runtime::new().max_live_processes(number(2)));
    let names = ["1", "2", "3", "4", "5"];
    let sessions = names.map(|name| open(&lab, &agent(&lab, name)));
    for _ in 0..2 {
        for (session, name) in sessions.iter().zip(names) {
            answers(session, name).await;
            let living = lab.pids().values().filter(|pid| is_alive(**pid)).count();
            assert!(living <= 2 && lab.runtime.stats().total.live_processes <= 2, "{living} live");
        }
    }
    for session in &sessions {
        bounded("the end", session.close()).await;
    }
    lab.assert_all_dead();
    assert_eq!(lab.runtime.stats().total.live_processes, 0);
}

#[tokio::test]
async fn the_session_that_was_used_least_recently_gives_its_process() {
    let lab = Lab::with_runtime(Runtime::new().max_live_processes(number(2)));
    let (one, two, three) =
        (open(&lab, &agent(&lab, "1")), open(&lab, &agent(&lab, "2")), open(&lab, &agent(&lab, "3")));
    answers(&one, "1").await;
    answers(&two, "2").await;
    answers(&one, "1").await;
    let (first, second) = (lab.pids()["1"], lab.pids()["2"]);
    answers(&three, "3").await;
    assert!(is_alive(first) && !is_alive(second));
}

#[tokio::test]
async fn a_process_that_waits_too_long_for_a_turn_is_closed_and_the_next_turn_resumes_the_conversation() {
    let lab = Lab::with_runtime(Runtime::new().idle_process_timeout(SHORT));
    let session = open(&lab, &agent(&lab, "1"));
    answers(&session, "1").await;
    let pid = lab.pids()["1"];
    eventually("the idle process is closed", || !is_alive(pid)).await;
    let conversation = session.id();
    answers(&session, "1").await;
    assert_ne!(lab.pids()["1"], pid);
    assert_eq!(session.id(), conversation);
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_delays_no_other_turn() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let (asks, other) = (open(&lab, &asking(&lab, "asks")), open(&lab, &agent(&lab, "other")));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    answers(&other, "other").await;
    assert_eq!(lab.runtime.stats().total.awaiting_answers, 1);
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut turn).await.is_good("asks");
}

#[tokio::test]
async fn an_answered_turn_waits_for_its_place_but_not_behind_new_turns() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let asks = open(&lab, &asking(&lab, "asks"));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    let go = lab.path("go");
    let mut busy = lab.start(lab.request(&any_agent(&lab).await_file(&go).claude_result("busy").read_to_end()));
    let begun = read_until(&mut busy, is_init).await;
    let mut new = lab.start(lab.request(&any_agent(&lab).claude_result("new").read_to_end()));
    let queued = read_until(&mut new, |event| matches!(event, Event::Queued(_))).await;
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    let stats = lab.runtime.stats().total;
    assert_eq!((stats.running_turns, stats.waiting_turns), (1, 2), "{stats:?}");
    std::fs::write(&go, "").unwrap();
    rest_after(begun, &mut busy).await.is_good("busy");
    rest_after(events, &mut turn).await.is_good("asks");
    rest_after(queued, &mut new).await.is_good("new");
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_and_one_that_waits_for_its_process_do_not_wait_for_each_other() {
    let runtime = Runtime::new().max_concurrent_turns(NonZeroUsize::MIN).max_live_processes(NonZeroUsize::MIN);
    let lab = Lab::with_runtime(runtime);
    let (asks, other) = (open(&lab, &asking(&lab, "asks")), open(&lab, &agent(&lab, "other")));
    let mut turn = asks.send("go").unwrap();
    let events = read_until(&mut turn, is_request).await;
    let mut waiting = other.send("go").unwrap();
    let queued = read_until(&mut waiting, |event| matches!(event, Event::Queued(_))).await;
    asks.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut turn).await.is_good("asks");
    rest_after(queued, &mut waiting).await.is_good("other");
}

#[tokio::test]
async fn a_turn_whose_request_nobody_answers_goes_on_with_a_place() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let mut frame = lab.request(&asking(&lab, "asks"));
    frame.prompt.clear();
    frame.limits.answer = SHORT;
    let session = lab.runtime.open("claude", frame).unwrap();
    let told = rest_of(&mut session.send("go").unwrap()).await;
    told.is_good("asks");
    assert_eq!(told.warnings(&WarningCode::Unanswered).len(), 1);
    assert_eq!(lab.runtime.stats().total.awaiting_answers, 0);
}

#[tokio::test]
async fn one_user_with_many_runs_does_not_delay_another_user() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let run = |key: &str| {
        let mut request =
            lab.request(&Script::new().claude_init().claude_result(key).write_pid(&lab.pid_file(), key).read_to_end());
        request.queue_key = Some(key.to_owned());
        lab.start(request)
    };
    let mut runs = vec![run("a"), run("a"), run("a"), run("a"), run("b")];
    for run in &mut runs {
        assert!(!rest_of(run).await.result().is_error);
    }
    let diary = std::fs::read_to_string(lab.pid_file()).unwrap();
    let order: String = diary.lines().filter_map(|line| line.chars().next()).collect();
    // When the second key came, one run of the first was running and one was next.
    assert_eq!(order, "aabaa");
}

#[tokio::test]
async fn a_run_beyond_the_queues_limit_is_refused_and_so_is_a_turn() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN).max_queued_turns(1));
    let busy = || any_agent(&lab).hang();
    let mut running = lab.start(lab.request(&busy()));
    read_until(&mut running, is_init).await;
    let session = open(&lab, &agent(&lab, "1"));
    let waiting = lab.start(lab.request(&busy()));
    let refused = lab.runtime.run("claude", lab.request(&busy())).unwrap_err();
    assert!(matches!(refused, RunError::QueueFull { limit: 1 }), "{refused:?}");
    let told = rest_of(&mut session.send("go").unwrap()).await;
    told.failed(&ErrorCode::QueueFull);
    drop((running, waiting));
    answers(&session, "1").await;
}

#[tokio::test]
async fn a_run_that_waits_tells_its_position_and_when_that_changes() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let run = |name: &str| {
        lab.start(lab.request(&any_agent(&lab).await_file(&lab.path(name)).claude_result(name).read_to_end()))
    };
    let (mut one, mut two, mut three) = (run("1"), run("2"), run("3"));
    let at = |wanted: u64| move |event: &Event| matches!(event, Event::Queued(queued) if queued.position == wanted);
    let mut events = read_until(&mut three, at(2)).await;
    std::fs::write(lab.path("1"), "").unwrap();
    rest_of(&mut one).await.is_good("1");
    events.extend(read_until(&mut three, at(1)).await);
    for name in ["2", "3"] {
        std::fs::write(lab.path(name), "").unwrap();
    }
    rest_of(&mut two).await.is_good("2");
    let told = rest_after(events, &mut three).await;
    told.is_good("3");
    assert_eq!(told.events.iter().filter(|event| matches!(event, Event::Queued(_))).count(), 2);
}

#[tokio::test]
async fn a_host_can_read_what_lives_runs_and_waits_by_agent() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let idle = open(&lab, &agent(&lab, "1"));
    answers(&idle, "1").await;
    let mut running = lab.start(lab.request(&any_agent(&lab).hang()));
    read_until(&mut running, is_init).await;
    let waiting = lab.start(lab.request(&any_agent(&lab).hang()));
    let stats = lab.runtime.stats();
    let claude = stats.agents["claude"];
    assert_eq!(claude, stats.total);
    assert_eq!((claude.live_processes, claude.idle_processes), (2, 1), "{stats:?}");
    assert_eq!((claude.running_turns, claude.waiting_turns, claude.awaiting_answers), (1, 1, 0), "{stats:?}");
    drop((running, waiting));
    bounded("the end", idle.close()).await;
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert!(lab.runtime.stats().agents.is_empty(), "{:?}", lab.runtime.stats());
}

#[tokio::test]
async fn what_is_ordered_while_a_turn_waits_for_its_place_holds_for_that_turn() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let go = lab.path("go");
    let mut busy = lab.start(lab.request(&any_agent(&lab).await_file(&go).claude_result("busy").read_to_end()));
    let begun = read_until(&mut busy, is_init).await;
    // Were the prompt first, it would be passed over here, and the agent would wait for ever.
    let turn =
        Script::new().await_line("another-model").await_line("go").claude_init().claude_text("1").claude_result("1");
    let session = open(&lab, &turn.read_to_end());
    let mut one = session.send("go").unwrap();
    let queued = read_until(&mut one, |event| matches!(event, Event::Queued(_))).await;
    session.set_model("another-model").unwrap();
    std::fs::write(&go, "").unwrap();
    rest_after(begun, &mut busy).await.is_good("busy");
    rest_after(queued, &mut one).await.is_good("1");
}

#[tokio::test]
async fn what_is_ordered_while_a_turn_waits_for_its_place_holds_though_that_turn_is_cancelled() {
    let lab = Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::MIN));
    let turn = |answer: &str| Script::new().await_line("go").claude_init().claude_text(answer).claude_result(answer);
    // Were the prompt first, it would be passed over here, and the agent would wait for ever.
    let session = open(&lab, &turn("1").await_line("another-model").then(turn("2")).read_to_end());
    answers(&session, "1").await;
    let go = lab.path("go");
    let mut busy = lab.start(lab.request(&any_agent(&lab).await_file(&go).claude_result("busy").read_to_end()));
    let begun = read_until(&mut busy, is_init).await;
    let mut one = session.send("go").unwrap();
    let queued = read_until(&mut one, |event| matches!(event, Event::Queued(_))).await;
    session.set_model("another-model").unwrap();
    // The answer comes when all that was ordered before it has been taken.
    let answer = Answer::Deny { message: None };
    bounded("the answer", session.answer(RequestId::from("none"), answer)).await.unwrap_err();
    one.control().interrupt();
    rest_after(queued, &mut one).await;
    std::fs::write(&go, "").unwrap();
    rest_after(begun, &mut busy).await.is_good("busy");
    answers(&session, "2").await;
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn what_outlives_a_process_that_was_closed_between_turns_is_in_the_next_turns_result() {
    let lab = Lab::with_runtime(Runtime::new().idle_process_timeout(SHORT));
    let child = Child::new(Script::new().write_pid(&lab.pid_file(), "child").ready().hang()).session().without_stdout();
    let turn =
        |before: Script| Script::new().await_line("go").then(before).claude_init().claude_result("1").read_to_end();
    let scripts = [turn(Script::new().spawn(child)), turn(Script::new())];
    let mut frame = lab.request(&Script::new().play_next(&lab.path("starts"), scripts));
    frame.prompt.clear();
    frame.background = Background::Keep;
    let session = lab.runtime.open("claude", frame).unwrap();
    answers(&session, "1").await;
    let child = lab.pids()["child"];
    eventually("the idle process is closed", || lab.runtime.stats().total.live_processes == 0).await;
    assert!(is_alive(child));
    let told = rest_of(&mut session.send("go").unwrap()).await;
    let left: Vec<_> = told.is_good("1").result().left_processes.iter().map(|process| process.pid).collect();
    assert_eq!(left, [child]);
    kill(child);
    bounded("the end", session.close()).await;
}

fn kill(pid: u32) {
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.cast_signed()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
