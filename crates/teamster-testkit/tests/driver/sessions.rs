//! Sessions: one process for many turns, and the handling of its failures.

use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::{Answer, RequestError};
use teamster::{AnswerError, Run, RunError, RunRequest, SendError, Session};
use teamster_testkit::fake::Script;

use crate::test_env::{INTERRUPT, LONG, SHORT, TestEnv, bounded, is_alive, is_text, read_until, rest_after, rest_of};

/// A turn of the fake agent: it waits for this prompt and gives this answer.
pub(crate) fn turn(expected: &str, answer: &str) -> Script {
    Script::new().await_line(expected).claude_init().claude_text(answer).claude_result(answer)
}

/// An agent that records its pid when it starts.
pub(crate) fn agent(env: &TestEnv) -> Script {
    Script::new().write_pid(&env.pid_file(), "agent")
}

/// A permission request to create a file.
pub(crate) fn asks(id: &str) -> Script {
    Script::new().line(json!({
        "type": "control_request", "request_id": id,
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1"},
    }))
}

pub(crate) fn session_request(env: &TestEnv, script: &Script) -> RunRequest {
    let mut request = env.request(script);
    request.prompt.clear();
    request.limits.startup = LONG;
    request.limits.silence = LONG;
    request
}

pub(crate) fn open(env: &TestEnv, script: &Script) -> Session {
    env.runtime.open("claude", session_request(env, script)).unwrap()
}

pub(crate) async fn close(env: &TestEnv, session: Session) {
    bounded("the session's end", session.close()).await;
    env.assert_all_dead();
}

fn is_request(event: &Event) -> bool {
    matches!(event, Event::PermissionRequest(_))
}

async fn asked(run: &mut Run) -> Vec<Event> {
    read_until(run, is_request).await
}

#[tokio::test]
async fn one_process_started_before_the_first_turn_handles_turns_in_order() {
    let env = TestEnv::new();
    let session =
        open(&env, &agent(&env).then(turn("one", "1")).then(turn("two", "2")).then(turn("three", "3")).read_to_end());
    let first = env.pid("agent").await;
    let turns = ["one", "two", "three"].map(|prompt| session.send(prompt).unwrap());
    for (mut run, answer) in turns.into_iter().zip(["1", "2", "3"]) {
        rest_of(&mut run).await.assert_success(answer);
        assert!(run.next().await.is_none());
    }
    assert_eq!(env.pids()["agent"], first);
    assert!(is_alive(first), "it waits for another prompt");
    close(&env, session).await;
}

#[tokio::test]
async fn close_waits_for_the_turns_that_were_sent() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).then(turn("one", "1")).then(turn("two", "2")).read_to_end());
    let turns = ["one", "two"].map(|prompt| session.send(prompt).unwrap());
    close(&env, session).await;
    for (mut run, answer) in turns.into_iter().zip(["1", "2"]) {
        rest_of(&mut run).await.assert_success(answer);
    }
}

#[tokio::test]
async fn a_process_that_does_not_exit_on_close_is_killed() {
    let env = TestEnv::new();
    let mut request =
        session_request(&env, &agent(&env).ignore(teamster_testkit::fake::Signal::Term).then(turn("one", "1")).hang());
    request.limits.grace = SHORT;
    let session = env.runtime.open("claude", request).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    close(&env, session).await;
}

#[tokio::test]
async fn dropping_a_session_aborts_all_its_turns_and_kills_the_tree() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).await_line("one").claude_init().claude_partial_text("Hel").hang());
    let mut first = session.send("one").unwrap();
    let mut second = session.send("two").unwrap();
    let events = read_until(&mut first, is_text).await;
    drop(session);
    rest_after(events, &mut first).await.assert_aborted();
    rest_of(&mut second).await.assert_aborted();
    bounded("the end of all", env.runtime.wait_idle()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn aborting_a_session_returns_when_its_turns_have_ended_and_its_tree_is_dead() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).await_line("one").claude_init().claude_text("1").hang());
    let (mut one, mut two) = (session.send("one").unwrap(), session.send("two").unwrap());
    let events = read_until(&mut one, is_text).await;
    bounded("the session's end", session.abort()).await;
    env.assert_all_dead();
    rest_after(events, &mut one).await.assert_aborted();
    rest_of(&mut two).await.assert_aborted();
    assert!(matches!(session.send("three"), Err(SendError::Ended)));
    bounded("the second end", session.abort()).await;
}

#[tokio::test]
async fn an_interrupt_ends_the_turn_and_the_same_process_handles_the_next() {
    let env = TestEnv::new();
    let stopped = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "terminal_reason": "aborted_streaming",
    });
    let first =
        Script::new().await_line("one").claude_init().claude_partial_text("Hel").await_line(INTERRUPT).line(stopped);
    let session = open(&env, &agent(&env).then(first).then(turn("two", "2")).read_to_end());
    let mut run = session.send("one").unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    rest_after(events, &mut run).await.assert_aborted();
    let stream = rest_of(&mut session.send("two").unwrap()).await;
    stream.assert_success("2");
    assert!(stream.warnings(&WarningCode::SessionReopened).is_empty());
    close(&env, session).await;
}

#[tokio::test]
async fn an_interrupt_of_a_waiting_turn_does_not_affect_the_others() {
    let env = TestEnv::new();
    let first = Script::new().await_line("one").claude_init().claude_partial_text("1").await_file(&env.path("go"));
    let rest = Script::new().claude_result("1").then(turn("three", "3")).read_to_end();
    let session = open(&env, &agent(&env).then(first).then(rest));
    let mut one = session.send("one").unwrap();
    let mut two = session.send("two").unwrap();
    let mut three = session.send("three").unwrap();
    let events = read_until(&mut one, is_text).await;
    two.control().interrupt();
    std::fs::write(env.path("go"), "").unwrap();
    rest_after(events, &mut one).await.assert_success("1");
    rest_of(&mut two).await.assert_aborted();
    rest_of(&mut three).await.assert_success("3");
    close(&env, session).await;
}

#[tokio::test]
async fn silence_in_a_turn_ends_it_and_silence_between_turns_does_not_matter() {
    let env = TestEnv::new();
    let scripts = [
        agent(&env).then(turn("one", "1")).await_line("two").claude_init().hang(),
        agent(&env).then(turn("three", "3")).read_to_end(),
    ];
    let mut request = session_request(&env, &Script::new().play_next(&env.path("starts"), scripts));
    request.limits.silence = SHORT * 2;
    request.limits.grace = SHORT;
    let session = env.runtime.open("claude", request).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let pid = env.pid("agent").await;
    tokio::time::sleep(SHORT * 4).await;
    assert!(is_alive(pid));
    rest_of(&mut session.send("two").unwrap()).await.assert_failed(&ErrorCode::WatchdogTimeout);
    rest_of(&mut session.send("three").unwrap()).await.assert_success("3");
    close(&env, session).await;
}

#[tokio::test]
async fn silence_while_the_agent_waits_for_an_answer_does_not_count() {
    let env = TestEnv::new();
    let script =
        agent(&env).await_line("one").claude_init().then(asks("r1")).await_line("r1").claude_result("1").read_to_end();
    let mut request = session_request(&env, &script);
    request.limits.silence = SHORT * 2;
    request.limits.answer = LONG;
    let session = env.runtime.open("claude", request).unwrap();
    let mut run = session.send("one").unwrap();
    let events = asked(&mut run).await;
    tokio::time::sleep(SHORT * 4).await;
    session.answer(RequestId::from("r1"), Answer::AllowAlways).await.unwrap();
    rest_after(events, &mut run).await.assert_success("1");
    close(&env, session).await;
}

#[tokio::test]
async fn an_answer_reaches_the_agent_once_and_a_second_one_is_an_error() {
    let env = TestEnv::new();
    let script = agent(&env).await_line("one").claude_init().then(asks("r1")).await_line(r#""behavior":"allow""#);
    let session = open(&env, &script.claude_result("1").read_to_end());
    let unknown = RequestId::from("r1");
    let refused = Err(AnswerError::NotWaiting { request: unknown.clone() });
    assert_eq!(session.answer(unknown.clone(), Answer::AllowAlways).await, refused, "there is no request yet");
    let mut run = session.send("one").unwrap();
    let events = asked(&mut run).await;
    assert_eq!(session.answer(unknown.clone(), Answer::Allow { input: None }).await, Ok(()));
    assert_eq!(session.answer(unknown.clone(), Answer::Deny { message: None }).await, refused);
    rest_after(events, &mut run).await.assert_success("1");
    assert_eq!(session.answer(unknown, Answer::AllowAlways).await, refused);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_without_an_answer_in_time_is_denied_with_a_warning() {
    let env = TestEnv::new();
    let script = agent(&env).await_line("one").claude_init().then(asks("r1")).await_line(r#""behavior":"deny""#);
    let mut request = session_request(&env, &script.claude_result("1").read_to_end());
    request.limits.answer = SHORT;
    let session = env.runtime.open("claude", request).unwrap();
    let stream = rest_of(&mut session.send("one").unwrap()).await;
    stream.assert_success("1");
    assert_eq!(stream.warnings(&WarningCode::Unanswered).len(), 1);
    close(&env, session).await;
}

#[tokio::test]
async fn a_request_between_turns_is_denied() {
    let env = TestEnv::new();
    let between = asks("r1").await_line(r#""behavior":"deny""#).write_pid(&env.pid_file(), "denied");
    let session = open(&env, &agent(&env).then(turn("one", "1")).then(between).then(turn("two", "2")).read_to_end());
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    env.pid("denied").await;
    rest_of(&mut session.send("two").unwrap()).await.assert_success("2");
    close(&env, session).await;
}

#[tokio::test]
async fn sessions_and_runs_share_the_permits_of_a_runtime() {
    let runtime = teamster::Runtime::builder().max_concurrent_turns(std::num::NonZeroUsize::MIN).build();
    let env = TestEnv::with_runtime(runtime);
    let session = open(&env, &agent(&env).then(turn("one", "1")).then(turn("two", "2")).read_to_end());
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    env.play(&Script::new().claude_init().claude_text("run").claude_result("run").read_to_end())
        .await
        .assert_success("run");
    rest_of(&mut session.send("two").unwrap()).await.assert_success("2");
    close(&env, session).await;
}

#[tokio::test]
async fn an_invalid_session_or_turn_is_rejected() {
    let env = TestEnv::new();
    let refused = |change: &dyn Fn(&mut RunRequest)| {
        let mut request = session_request(&env, &agent(&env));
        change(&mut request);
        matches!(env.runtime.open("claude", request), Err(RunError::Request(_)))
    };
    assert!(refused(&|request| request.prompt = "Hello".into()));
    assert!(refused(&|request| request.output = teamster::request::OutputMode::Batch));
    assert!(refused(&|request| request.retries.max = 1));
    assert!(refused(&|request| request.model = Some("-x".into())));
    let session = open(&env, &agent(&env).read_to_end());
    assert!(matches!(session.send("  "), Err(SendError::Prompt(_))));
    assert!(matches!(session.set_model("-x"), Err(SendError::Prompt(_))));
    close(&env, session).await;
}

#[tokio::test]
async fn the_session_queue_is_limited() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).await_line("one").claude_init().claude_partial_text("1").hang());
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

#[tokio::test]
async fn endless_output_between_turns_delays_neither_the_next_turn_nor_close() {
    let env = TestEnv::new();
    let one = Script::new().await_line("one").write_pid(&env.pid_file(), "agent").claude_init().claude_result("1");
    let session = open(&env, &one.claude_burst(u64::MAX));
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    // The driver is between turns, and reads.
    tokio::time::sleep(SHORT).await;
    let mut two = session.send("two").unwrap();
    read_until(&mut two, is_text).await;
    two.control().abort();
    while bounded("the next event", two.next()).await.is_some() {}
    bounded("the end", session.close()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_prompt_with_nul_is_refused_in_runs_and_sessions() {
    let env = TestEnv::new();
    let mut run = env.request(&Script::new());
    run.prompt = "a\0b".to_owned();
    let refused = env.runtime.run("claude", run).unwrap_err();
    assert!(matches!(refused, RunError::Request(RequestError::Nul { .. })), "{refused:?}");
    let session = open(&env, &agent(&env).then(turn("hello", "Hello")));
    let refused = session.send("a\0b").unwrap_err();
    assert!(matches!(refused, SendError::Prompt(RequestError::Nul { .. })), "{refused:?}");
    let refused = session.send_now("a\0b").await.unwrap_err();
    assert!(matches!(refused, SendError::Prompt(RequestError::Nul { .. })), "{refused:?}");
    rest_of(&mut session.send("hello").unwrap()).await.assert_success("Hello");
    session.close().await;
}
