//! Sessions: one process, many turns, and what becomes of them when something goes wrong.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::Answer;
use teamster::{AnswerError, Run, RunError, RunRequest, SendError, Sent, Session};
use teamster_testkit::fake::{Child, Script};

use crate::lab::{
    INTERRUPT, LONG, Lab, SHORT, bounded, eventually, is_alive, is_text, read_until, rest_after, rest_of, state,
};

/// A turn of the fake agent: it hears this, and says that.
fn turn(hears: &str, says: &str) -> Script {
    Script::new().await_line(hears).claude_init().claude_text(says).claude_result(says)
}

/// An agent that writes its number as soon as it runs.
fn agent(lab: &Lab) -> Script {
    Script::new().write_pid(&lab.pid_file(), "agent")
}

/// A request for permission to make a file.
fn asks(id: &str) -> Script {
    Script::new().line(json!({
        "type": "control_request", "request_id": id,
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1"},
    }))
}

fn frame(lab: &Lab, script: &Script) -> RunRequest {
    let mut frame = lab.request(script);
    frame.prompt.clear();
    frame.limits.startup = LONG;
    frame.limits.silence = LONG;
    frame
}

fn open(lab: &Lab, script: &Script) -> Session {
    lab.runtime.open("claude", frame(lab, script)).unwrap()
}

async fn close(lab: &Lab, session: Session) {
    bounded("the session's end", session.close()).await;
    lab.assert_all_dead();
}

fn is_request(event: &Event) -> bool {
    matches!(event, Event::PermissionRequest(_))
}

async fn asked(run: &mut Run) -> Vec<Event> {
    read_until(run, is_request).await
}

#[tokio::test]
async fn turns_are_taken_in_order_by_one_process_that_was_there_before_the_first() {
    let lab = Lab::new();
    let session =
        open(&lab, &agent(&lab).then(turn("one", "1")).then(turn("two", "2")).then(turn("three", "3")).read_to_end());
    let first = lab.pid("agent").await;
    let turns = ["one", "two", "three"].map(|prompt| session.send(prompt).unwrap());
    for (mut run, answer) in turns.into_iter().zip(["1", "2", "3"]) {
        rest_of(&mut run).await.is_good(answer);
        assert!(run.next().await.is_none());
    }
    assert_eq!(lab.pids()["agent"], first);
    assert!(is_alive(first), "it waits for more");
    close(&lab, session).await;
}

#[tokio::test]
async fn closing_waits_for_the_turns_that_were_sent() {
    let lab = Lab::new();
    let session = open(&lab, &agent(&lab).then(turn("one", "1")).then(turn("two", "2")).read_to_end());
    let turns = ["one", "two"].map(|prompt| session.send(prompt).unwrap());
    close(&lab, session).await;
    for (mut run, answer) in turns.into_iter().zip(["1", "2"]) {
        rest_of(&mut run).await.is_good(answer);
    }
}

#[tokio::test]
async fn a_process_that_does_not_exit_when_it_is_asked_to_is_ended() {
    let lab = Lab::new();
    let mut frame =
        frame(&lab, &agent(&lab).ignore(teamster_testkit::fake::Signal::Term).then(turn("one", "1")).hang());
    frame.limits.grace = SHORT;
    let session = lab.runtime.open("claude", frame).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    close(&lab, session).await;
}

#[tokio::test]
async fn dropping_a_session_aborts_its_turn_and_those_that_wait_and_ends_the_tree() {
    let lab = Lab::new();
    let session = open(&lab, &agent(&lab).await_line("one").claude_init().claude_partial_text("Hel").hang());
    let mut first = session.send("one").unwrap();
    let mut second = session.send("two").unwrap();
    let events = read_until(&mut first, is_text).await;
    drop(session);
    rest_after(events, &mut first).await.is_aborted();
    rest_of(&mut second).await.is_aborted();
    bounded("the end of all", lab.runtime.shutdown()).await;
    lab.assert_all_dead();
}

#[tokio::test]
async fn dropping_a_turn_ends_its_process_and_the_next_one_goes_on_in_another() {
    let lab = Lab::new();
    let scripts = [
        agent(&lab).await_line("one").claude_init().claude_partial_text("Hel").hang(),
        agent(&lab).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    let mut first = session.send("one").unwrap();
    read_until(&mut first, is_text).await;
    let pid = lab.pid("agent").await;
    drop(first);
    let told = rest_of(&mut session.send("two").unwrap()).await;
    told.is_good("2");
    assert!(!is_alive(pid));
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&lab, session).await;
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_the_same_process_takes_the_next() {
    let lab = Lab::new();
    let stopped = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
    });
    let first =
        Script::new().await_line("one").claude_init().claude_partial_text("Hel").await_line(INTERRUPT).line(stopped);
    let session = open(&lab, &agent(&lab).then(first).then(turn("two", "2")).read_to_end());
    let mut run = session.send("one").unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.is_aborted();
    let told = rest_of(&mut session.send("two").unwrap()).await;
    told.is_good("2");
    assert!(told.warnings(&WarningCode::SessionReopened).is_empty());
    close(&lab, session).await;
}

#[tokio::test]
async fn an_interrupt_of_a_turn_that_waits_leaves_the_others_alone() {
    let lab = Lab::new();
    let first = Script::new().await_line("one").claude_init().claude_partial_text("1").await_file(&lab.path("go"));
    let rest = Script::new().claude_result("1").then(turn("three", "3")).read_to_end();
    let session = open(&lab, &agent(&lab).then(first).then(rest));
    let mut one = session.send("one").unwrap();
    let mut two = session.send("two").unwrap();
    let mut three = session.send("three").unwrap();
    let events = read_until(&mut one, is_text).await;
    two.control().interrupt();
    std::fs::write(lab.path("go"), "").unwrap();
    rest_after(events, &mut one).await.is_good("1");
    rest_of(&mut two).await.is_aborted();
    rest_of(&mut three).await.is_good("3");
    close(&lab, session).await;
}

#[tokio::test]
async fn a_process_that_ends_between_turns_is_replaced() {
    let lab = Lab::new();
    let scripts = [agent(&lab).then(turn("one", "1")).exit(0), agent(&lab).then(turn("two", "2")).read_to_end()];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    let pid = lab.pid("agent").await;
    eventually("the first process is gone", || !is_alive(pid)).await;
    let told = rest_of(&mut session.send("two").unwrap()).await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&lab, session).await;
}

#[tokio::test]
async fn a_prompt_that_comes_while_the_process_ends_is_not_lost() {
    for _ in 0..10 {
        let lab = Lab::new();
        let scripts = [agent(&lab).then(turn("one", "1")).exit(0), agent(&lab).then(turn("two", "2")).read_to_end()];
        let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
        let (mut one, mut two) = (session.send("one").unwrap(), session.send("two").unwrap());
        rest_of(&mut one).await.is_good("1");
        rest_of(&mut two).await.is_good("2");
        close(&lab, session).await;
    }
}

#[tokio::test]
async fn a_prompt_that_a_dying_process_has_not_read_goes_to_the_next_one() {
    let lab = Lab::new();
    let result = |id: u64, result: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let opens = agent(&lab)
        .await_line("initialize")
        .line(result(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})))
        .await_line("session/")
        .line(result(2, json!({"sessionId": "s"})));
    let says = |text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "s", "update": update});
        Script::new()
            .await_line("session/prompt")
            .line(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            .line(result(3, json!({"stopReason": "end_turn"})))
            .read_to_end()
    };
    let scripts = [opens.clone().then(says("1")), opens.then(says("2"))];
    let session = lab.runtime.open("acp", frame(&lab, &Script::new().play_next(&lab.path("starts"), scripts))).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    let pid = halted(&lab).await;
    let mut two = session.send("two").unwrap();
    eventually("the prompt has been written", || unread(pid) > 0).await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let told = rest_of(&mut two).await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&lab, session).await;
}

#[tokio::test]
async fn what_a_process_says_late_as_it_dies_does_not_keep_a_prompt_that_it_has_not_read_from_the_next_one() {
    let lab = Lab::new();
    let go = lab.path("go");
    let late = Child::new(
        Script::new().await_file(&go).line(json!({"type": "keep_alive"})).write_pid(&lab.pid_file(), "late"),
    );
    let scripts = [
        agent(&lab).spawn(late).then(turn("one", "1")).read_to_end(),
        agent(&lab).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    let pid = halted(&lab).await;
    let mut two = session.send("two").unwrap();
    eventually("the prompt has been written", || unread(pid) > 0).await;
    std::fs::write(go, "").unwrap();
    lab.pid("late").await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let told = rest_of(&mut two).await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&lab, session).await;
}

/// Halts the agent, and gives its number. One that is halted takes nothing more, as one that is being killed.
async fn halted(lab: &Lab) -> u32 {
    let pid = lab.pid("agent").await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
    eventually("all of it has halted", || threads(pid).iter().all(|state| *state == 'T')).await;
    pid
}

/// The letters of the states of a process's threads.
fn threads(pid: u32) -> Vec<char> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| state(task.unwrap().file_name().to_str().unwrap().parse().unwrap()).unwrap()).collect()
}

/// How many bytes wait in a process's stdin.
fn unread(pid: u32) -> u64 {
    rustix::io::ioctl_fionread(std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap()).unwrap()
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_ends_that_turn_in_an_error_and_the_next_goes_on() {
    let lab = Lab::new();
    let scripts = [
        agent(&lab).await_line("one").claude_init().claude_partial_text("Hel").exit(3),
        agent(&lab).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.failed(&ErrorCode::CliExit);
    let told = rest_of(&mut session.send("two").unwrap()).await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    assert!(session.id().is_some());
    close(&lab, session).await;
}

#[tokio::test]
async fn a_cli_that_does_not_start_fails_the_turn_and_not_the_session() {
    let lab = Lab::new();
    let mut frame = frame(&lab, &agent(&lab));
    frame.cli_path = Some("/nonexistent/cli".into());
    let session = lab.runtime.open("claude", frame).unwrap();
    for _ in 0..2 {
        rest_of(&mut session.send("one").unwrap()).await.failed(&ErrorCode::CliNotFound);
    }
    close(&lab, session).await;
}

#[tokio::test]
async fn silence_in_a_turn_ends_it_and_silence_between_turns_does_not_matter() {
    let lab = Lab::new();
    let scripts = [
        agent(&lab).then(turn("one", "1")).await_line("two").claude_init().hang(),
        agent(&lab).then(turn("three", "3")).read_to_end(),
    ];
    let mut frame = frame(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    frame.limits.silence = SHORT * 2;
    frame.limits.grace = SHORT;
    let session = lab.runtime.open("claude", frame).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    let pid = lab.pid("agent").await;
    tokio::time::sleep(SHORT * 4).await;
    assert!(is_alive(pid));
    rest_of(&mut session.send("two").unwrap()).await.failed(&ErrorCode::WatchdogTimeout);
    rest_of(&mut session.send("three").unwrap()).await.is_good("3");
    close(&lab, session).await;
}

#[tokio::test]
async fn silence_while_the_agent_waits_for_its_caller_is_the_callers() {
    let lab = Lab::new();
    let script =
        agent(&lab).await_line("one").claude_init().then(asks("r1")).await_line("r1").claude_result("1").read_to_end();
    let mut frame = frame(&lab, &script);
    frame.limits.silence = SHORT * 2;
    frame.limits.answer = LONG;
    let session = lab.runtime.open("claude", frame).unwrap();
    let mut run = session.send("one").unwrap();
    let events = asked(&mut run).await;
    tokio::time::sleep(SHORT * 4).await;
    session.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut run).await.is_good("1");
    close(&lab, session).await;
}

#[tokio::test]
async fn an_answer_reaches_the_agent_once_and_a_second_one_is_an_error() {
    let lab = Lab::new();
    let script = agent(&lab).await_line("one").claude_init().then(asks("r1")).await_line(r#""behavior":"allow""#);
    let session = open(&lab, &script.claude_result("1").read_to_end());
    let unknown = RequestId::from("r1");
    let refused = Err(AnswerError::NotWaiting { request: unknown.clone() });
    assert_eq!(session.answer(unknown.clone(), Answer::AllowAlways).await, refused, "it was not asked yet");
    let mut run = session.send("one").unwrap();
    let events = asked(&mut run).await;
    assert_eq!(session.answer(unknown.clone(), Answer::Allow { input: None }).await, Ok(()));
    assert_eq!(session.answer(unknown.clone(), Answer::Deny { message: None }).await, refused);
    rest_after(events, &mut run).await.is_good("1");
    assert_eq!(session.answer(unknown, Answer::AllowAlways).await, refused);
    close(&lab, session).await;
}

#[tokio::test]
async fn what_nobody_answers_in_time_is_denied_with_a_warning() {
    let lab = Lab::new();
    let script = agent(&lab).await_line("one").claude_init().then(asks("r1")).await_line(r#""behavior":"deny""#);
    let mut frame = frame(&lab, &script.claude_result("1").read_to_end());
    frame.limits.answer = SHORT;
    let session = lab.runtime.open("claude", frame).unwrap();
    let told = rest_of(&mut session.send("one").unwrap()).await;
    told.is_good("1");
    assert_eq!(told.warnings(&WarningCode::Unanswered).len(), 1);
    close(&lab, session).await;
}

#[tokio::test]
async fn what_the_agent_asks_between_turns_is_denied() {
    let lab = Lab::new();
    let between = asks("r1").await_line(r#""behavior":"deny""#).write_pid(&lab.pid_file(), "denied");
    let session = open(&lab, &agent(&lab).then(turn("one", "1")).then(between).then(turn("two", "2")).read_to_end());
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    lab.pid("denied").await;
    rest_of(&mut session.send("two").unwrap()).await.is_good("2");
    close(&lab, session).await;
}

#[tokio::test]
async fn sessions_and_runs_share_the_places_of_a_runtime_turn_by_turn() {
    let runtime = teamster::Runtime::new().max_concurrent_turns(std::num::NonZeroUsize::MIN);
    let lab = Lab::with_runtime(runtime);
    let session = open(&lab, &agent(&lab).then(turn("one", "1")).then(turn("two", "2")).read_to_end());
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    lab.play(&Script::new().claude_init().claude_text("run").claude_result("run").read_to_end()).await.is_good("run");
    rest_of(&mut session.send("two").unwrap()).await.is_good("2");
    close(&lab, session).await;
}

#[tokio::test]
async fn what_cannot_be_a_session_or_a_turn_is_refused() {
    let lab = Lab::new();
    let refused = |change: &dyn Fn(&mut RunRequest)| {
        let mut frame = frame(&lab, &agent(&lab));
        change(&mut frame);
        matches!(lab.runtime.open("claude", frame), Err(RunError::Request(_)))
    };
    assert!(refused(&|frame| frame.prompt = "Hello".into()));
    assert!(refused(&|frame| frame.output = teamster::request::OutputMode::Batch));
    assert!(refused(&|frame| frame.retries.max = 1));
    assert!(refused(&|frame| frame.model = Some("-x".into())));
    let session = open(&lab, &agent(&lab).read_to_end());
    assert!(matches!(session.send("  "), Err(SendError::Prompt(_))));
    assert!(matches!(session.set_model("-x"), Err(SendError::Prompt(_))));
    close(&lab, session).await;
}

#[tokio::test]
async fn turns_without_number_do_not_wait() {
    let lab = Lab::new();
    let session = open(&lab, &agent(&lab).await_line("one").claude_init().claude_partial_text("1").hang());
    let mut first = session.send("one").unwrap();
    read_until(&mut first, is_text).await;
    let mut waiting = Vec::new();
    let refused = loop {
        match session.send("more") {
            Ok(run) => waiting.push(run),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SendError::Busy));
    assert_eq!(waiting.len(), 256);
}

/// A turn that has begun, in an agent that goes on with this.
async fn begun(lab: &Lab, rest: Script) -> (Session, Run, Vec<Event>) {
    let session = open(lab, &agent(lab).await_line("one").claude_init().claude_text("1").then(rest));
    let mut turn = session.send("one").unwrap();
    let events = read_until(&mut turn, is_text).await;
    (session, turn, events)
}

async fn send_now(session: &Session, prompt: &str) -> Sent {
    bounded("what becomes of the words", session.send_now(prompt)).await.unwrap()
}

async fn sent_as_a_turn(session: &Session, prompt: &str) -> Run {
    match send_now(session, prompt).await {
        Sent::Turn(run) => *run,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_sent_at_once_is_heard_within_the_turn_that_runs() {
    let lab = Lab::new();
    let rest = Script::new().await_line("more").claude_echo().claude_text("2").claude_result("2");
    let (session, mut turn, events) = begun(&lab, rest.then(turn("three", "3")).read_to_end()).await;
    let waiting = session.send("three").unwrap();
    assert!(matches!(send_now(&session, "more").await, Sent::Joined));
    rest_after(events, &mut turn).await.is_good("12");
    let mut waiting = waiting;
    rest_of(&mut waiting).await.is_good("3");
    close(&lab, session).await;
}

#[tokio::test]
async fn what_is_sent_too_late_for_the_turn_is_the_next_one_before_those_that_wait() {
    let lab = Lab::new();
    // The CLI begins it by itself, and does not wait to be asked.
    let begins = Script::new().claude_init().claude_echo().claude_text("2").claude_result("2");
    let rest = Script::new().await_line("more").claude_result("1").then(begins).then(turn("three", "3"));
    let (session, mut first, events) = begun(&lab, rest.read_to_end()).await;
    let mut waiting = session.send("three").unwrap();
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.is_good("1");
    rest_of(&mut second).await.is_good("2");
    rest_of(&mut waiting).await.is_good("3");
    close(&lab, session).await;
}

#[tokio::test]
async fn words_that_come_too_late_together_are_one_turn() {
    let lab = Lab::new();
    let begins = Script::new().claude_init().claude_text("2").claude_result("2");
    let rest = Script::new().await_line("more").await_line("and more").claude_result("1").then(begins);
    let (session, mut first, events) = begun(&lab, rest.read_to_end()).await;
    let (one, other) =
        tokio::join!(bounded("one", session.send_now("more")), bounded("the other", session.send_now("and more")));
    let Sent::Turn(mut second) = one.unwrap() else { panic!("no turn") };
    assert!(matches!(other.unwrap(), Sent::Joined));
    rest_after(events, &mut first).await.is_good("1");
    rest_of(&mut second).await.is_good("2");
    close(&lab, session).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_begins_by_itself_can_be_interrupted() {
    let lab = Lab::new();
    let begins = Script::new().claude_init().claude_partial_text("2").await_line(INTERRUPT).claude_interrupted();
    let rest = Script::new().await_line("more").claude_result("1").then(begins).then(turn("three", "3"));
    let (session, mut first, events) = begun(&lab, rest.read_to_end()).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.is_good("1");
    second.control().interrupt();
    rest_of(&mut second).await.is_aborted();
    rest_of(&mut session.send("three").unwrap()).await.is_good("3");
    close(&lab, session).await;
}

#[tokio::test]
async fn what_is_sent_at_once_while_no_turn_runs_is_a_turn() {
    let lab = Lab::new();
    let session = open(&lab, &agent(&lab).then(turn("one", "1")).read_to_end());
    rest_of(&mut sent_as_a_turn(&session, "one").await).await.is_good("1");
    close(&lab, session).await;
}

#[tokio::test]
async fn what_an_agent_has_not_heard_when_it_dies_is_said_to_the_next_one() {
    let lab = Lab::new();
    let dies = agent(&lab).await_line("one").claude_init().claude_partial_text("1").await_line("more").exit(3);
    let lives = agent(&lab).then(turn("more", "2")).read_to_end();
    let session = open(&lab, &Script::new().play_next(&lab.path("turns"), [dies, lives]));
    let mut first = session.send("one").unwrap();
    let events = read_until(&mut first, is_text).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.failed(&ErrorCode::CliExit);
    rest_of(&mut second).await.is_good("2");
    close(&lab, session).await;
}

#[tokio::test]
async fn an_agent_that_writes_without_end_between_turns_keeps_no_turn_and_no_end_from_coming() {
    let lab = Lab::new();
    let one = Script::new().await_line("one").write_pid(&lab.pid_file(), "agent").claude_init().claude_result("1");
    let session = open(&lab, &one.claude_burst(u64::MAX));
    rest_of(&mut session.send("one").unwrap()).await.is_good("1");
    // The driver is between turns, and reads.
    tokio::time::sleep(SHORT).await;
    let mut two = session.send("two").unwrap();
    read_until(&mut two, is_text).await;
    two.control().abort();
    while bounded("the next event", two.next()).await.is_some() {}
    bounded("the end", session.close()).await;
    lab.assert_all_dead();
}
