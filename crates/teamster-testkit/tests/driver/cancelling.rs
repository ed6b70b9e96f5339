//! Turns that are cancelled while they wait, and sessions that are closed or steered by several
//! tasks.

use std::num::NonZeroUsize;

use teamster::command::{Applied, CommandError};
use teamster::event::Event;
use teamster::request::SessionCommand;
use teamster::{Run, RunRequest, Runtime, SendError, Sent, Session};
use teamster_testkit::fake::Script;

use crate::test_env::{INTERRUPT, LONG, TestEnv, bounded, is_text, read_until, rest_after, rest_of};

/// A turn of the fake agent: it waits for this prompt and gives this answer.
fn turn(expected: &str, answer: &str) -> Script {
    Script::new().await_line(expected).claude_init().claude_text(answer).claude_result(answer)
}

fn open(env: &TestEnv, script: &Script) -> Session {
    let mut request: RunRequest = env.request(script);
    request.prompt.clear();
    request.limits.startup = LONG;
    request.limits.silence = LONG;
    env.runtime.open("claude", request).unwrap()
}

/// A session whose first turn runs until a file exists.
async fn busy(env: &TestEnv, then: Script) -> (Session, Run, Vec<Event>) {
    let first = Script::new().await_line("one").claude_init().claude_partial_text("1").await_file(&env.path("go"));
    let session = open(env, &first.claude_result("1").then(then).read_to_end());
    let mut one = session.send("one").unwrap();
    let events = read_until(&mut one, is_text).await;
    (session, one, events)
}

async fn ends(env: &TestEnv, mut one: Run, events: Vec<Event>) {
    std::fs::write(env.path("go"), "").unwrap();
    rest_after(events, &mut one).await.assert_success("1");
}

#[tokio::test]
async fn a_turn_that_waits_behind_another_ends_at_once_when_it_is_cancelled() {
    let env = TestEnv::new();
    let (session, one, events) = busy(&env, turn("four", "4")).await;
    let [mut two, mut three, mut four] = ["two", "three", "four"].map(|prompt| session.send(prompt).unwrap());
    two.control().interrupt();
    three.control().abort();
    // The first turn runs until its file exists.
    rest_of(&mut two).await.assert_aborted();
    rest_of(&mut three).await.assert_aborted();
    ends(&env, one, events).await;
    rest_of(&mut four).await.assert_success("4");
    bounded("the end", session.close()).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_cancelled_turn_frees_its_place_in_the_session_queue_at_once() {
    let env = TestEnv::new();
    let (session, one, events) = busy(&env, Script::new()).await;
    let waiting: Vec<_> = std::iter::from_fn(|| session.send("more").ok()).collect();
    assert!(matches!(session.send("more"), Err(SendError::Busy)));
    drop(waiting);
    let more = session.send("more").unwrap();
    more.control().interrupt();
    ends(&env, one, events).await;
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn a_turn_that_waits_for_a_permit_ends_at_once_when_it_is_cancelled() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let (session, one, events) = busy(&env, Script::new()).await;
    let other = open(&env, &turn("two", "2").read_to_end());
    let (mut two, mut three) = (other.send("two").unwrap(), other.send("three").unwrap());
    three.control().interrupt();
    rest_of(&mut three).await.assert_aborted();
    two.control().interrupt();
    rest_of(&mut two).await.assert_aborted();
    ends(&env, one, events).await;
    bounded("the end of one", session.close()).await;
    bounded("the end of the other", other.close()).await;
}

#[tokio::test]
async fn an_interrupt_of_the_session_ends_the_running_turn_and_not_the_waiting_ones() {
    let env = TestEnv::new();
    let first = Script::new().await_line("one").claude_init().claude_partial_text("1").await_line(INTERRUPT);
    let session = open(&env, &first.claude_interrupted().then(turn("two", "2")).read_to_end());
    assert!(!session.interrupt(), "no turn has been sent");
    let mut one = session.send("one").unwrap();
    let events = read_until(&mut one, is_text).await;
    let mut two = session.send("two").unwrap();
    assert!(session.interrupt());
    rest_after(events, &mut one).await.assert_aborted();
    rest_of(&mut two).await.assert_success("2");
    assert!(!session.interrupt(), "no turn is running");
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn several_tasks_can_close_a_session_and_each_waits_for_its_end() {
    let env = TestEnv::new();
    let (session, one, events) = busy(&env, Script::new()).await;
    let close = async {
        bounded("the end", session.close()).await;
        env.assert_all_dead();
    };
    let end = async {
        tokio::task::yield_now().await;
        assert!(matches!(session.send("more"), Err(SendError::Ended)));
        ends(&env, one, events).await;
    };
    tokio::join!(close, bounded("the other end", session.close()), end);
    bounded("once more", session.close()).await;
}

fn command(text: &str) -> SessionCommand {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn commands_as_data_do_what_the_methods_do() {
    let env = TestEnv::new();
    let (session, one, events) = busy(&env, turn("three", "3")).await;
    let sent = session.apply(command(r#"{"type":"send","text":"two","id":"b"}"#)).await.unwrap();
    let Applied::Turn(mut two) = sent else { panic!("{sent:?}") };
    assert_eq!(two.turn_id(), Some("b"));
    let Applied::Turn(mut three) = session.apply(command(r#"{"type":"send","text":"three"}"#)).await.unwrap() else {
        panic!("no turn")
    };
    let interrupt = command(r#"{"type":"interrupt","turnId":"b"}"#);
    assert!(matches!(session.apply(interrupt.clone()).await, Ok(Applied::Accepted)));
    rest_of(&mut two).await.assert_aborted();
    let refused = session.apply(interrupt).await.unwrap_err();
    assert!(matches!(&refused, CommandError::NoTurn { turn_id: Some(id) } if id == "b"), "{refused:?}");
    let answer = command(r#"{"type":"answer","requestId":"r","decision":"deny"}"#);
    assert!(matches!(session.apply(answer).await, Err(CommandError::Answer(_))));
    assert!(matches!(session.apply(command(r#"{"type":"close"}"#)).await, Ok(Applied::Accepted)));
    assert!(matches!(session.send("more"), Err(SendError::Ended)));
    ends(&env, one, events).await;
    rest_of(&mut three).await.assert_success("3");
    bounded("the end", session.close()).await;
}

#[tokio::test]
async fn a_prompt_sent_now_while_a_turn_waits_for_its_permit_is_a_turn_that_can_be_cancelled() {
    let env = TestEnv::with_runtime(Runtime::builder().max_concurrent_turns(NonZeroUsize::MIN).build());
    let (session, one, events) = busy(&env, Script::new()).await;
    let other = open(&env, &turn("two", "2").read_to_end());
    let mut two = other.send("two").unwrap();
    let queued = read_until(&mut two, |event| matches!(event, Event::Queued(_))).await;
    let Sent::Turn(mut now) = bounded("what they are", other.send_now("now")).await.unwrap() else {
        panic!("no turn is running that could be steered")
    };
    now.control().interrupt();
    rest_of(&mut now).await.assert_aborted();
    ends(&env, one, events).await;
    rest_after(queued, &mut two).await.assert_success("2");
    bounded("the end of one", session.close()).await;
    bounded("the end of the other", other.close()).await;
}

#[tokio::test]
async fn a_prompt_sent_now_can_be_cancelled_by_its_id_before_the_driver_has_it() {
    let env = TestEnv::new();
    let (session, one, events) = busy(&env, turn("three", "3")).await;
    let mut prompt = teamster::request::Prompt::from("two");
    prompt.id = Some("two".to_owned());
    // With one thread, the driver runs only while this task waits.
    let sent = async {
        let now = session.send_now(prompt);
        let mut now = std::pin::pin!(now);
        assert!(poll_once(now.as_mut()).await.is_none(), "the driver has not run yet");
        assert!(session.interrupt_turn("two"));
        now.await
    };
    let Sent::Turn(mut two) = bounded("what they are", sent).await.unwrap() else {
        panic!("the prompt was steered into a running turn")
    };
    rest_of(&mut two).await.assert_aborted();
    ends(&env, one, events).await;
    rest_of(&mut session.send("three").unwrap()).await.assert_success("3");
    bounded("the end", session.close()).await;
}

/// Polls a future once.
async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
