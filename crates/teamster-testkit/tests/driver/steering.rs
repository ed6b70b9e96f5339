//! Prompts that are sent while a turn is running.

use teamster::event::Event;
use teamster::{Run, Sent, Session};
use teamster_testkit::fake::Script;

use crate::sessions::{agent, close, open, turn};
use crate::test_env::{INTERRUPT, TestEnv, bounded, is_text, read_until, rest_after, rest_of};

/// Starts a turn of an agent that then plays this script.
async fn running_turn(env: &TestEnv, rest: Script) -> (Session, Run, Vec<Event>) {
    let session = open(env, &agent(env).await_line("one").claude_init().claude_text("1").then(rest));
    let mut turn = session.send("one").unwrap();
    let events = read_until(&mut turn, is_text).await;
    (session, turn, events)
}

async fn send_now(session: &Session, prompt: &str) -> Sent {
    bounded("what becomes of the words", session.send_now(prompt)).await.unwrap()
}

pub(crate) async fn sent_as_a_turn(session: &Session, prompt: &str) -> Run {
    match send_now(session, prompt).await {
        Sent::Turn(run) => *run,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_prompt_sent_now_steers_the_running_turn() {
    let env = TestEnv::new();
    let rest = Script::new().await_line("more").claude_echo().claude_text("2").claude_result("2");
    let (session, mut turn, events) = running_turn(&env, rest.then(turn("three", "3")).read_to_end()).await;
    let waiting = session.send("three").unwrap();
    assert!(matches!(send_now(&session, "more").await, Sent::Steered));
    rest_after(events, &mut turn).await.assert_success("1\n\n2");
    let mut waiting = waiting;
    rest_of(&mut waiting).await.assert_success("3");
    close(&env, session).await;
}

#[tokio::test]
async fn a_prompt_sent_now_too_late_is_the_next_turn_before_the_waiting_ones() {
    let env = TestEnv::new();
    // The CLI starts this turn by itself.
    let own_turn = Script::new().claude_init().claude_echo().claude_text("2").claude_result("2");
    let rest = Script::new().await_line("more").claude_result("1").then(own_turn).then(turn("three", "3"));
    let (session, mut first, events) = running_turn(&env, rest.read_to_end()).await;
    let mut waiting = session.send("three").unwrap();
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.assert_success("1");
    rest_of(&mut second).await.assert_success("2");
    rest_of(&mut waiting).await.assert_success("3");
    close(&env, session).await;
}

#[tokio::test]
async fn prompts_sent_now_too_late_together_are_one_turn() {
    let env = TestEnv::new();
    let own_turn = Script::new().claude_init().claude_text("2").claude_result("2");
    let rest = Script::new().await_line("more").await_line("and more").claude_result("1").then(own_turn);
    let (session, mut first, events) = running_turn(&env, rest.read_to_end()).await;
    let (one, other) =
        tokio::join!(bounded("one", session.send_now("more")), bounded("the other", session.send_now("and more")));
    let Sent::Turn(mut second) = one.unwrap() else { panic!("no turn") };
    assert!(matches!(other.unwrap(), Sent::Steered));
    rest_after(events, &mut first).await.assert_success("1");
    rest_of(&mut second).await.assert_success("2");
    close(&env, session).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_starts_for_a_late_prompt_can_be_interrupted() {
    let env = TestEnv::new();
    let own_turn = Script::new().claude_init().claude_partial_text("2").await_line(INTERRUPT).claude_interrupted();
    let rest = Script::new().await_line("more").claude_result("1").then(own_turn).then(turn("three", "3"));
    let (session, mut first, events) = running_turn(&env, rest.read_to_end()).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.assert_success("1");
    second.control().interrupt();
    rest_of(&mut second).await.assert_aborted();
    rest_of(&mut session.send("three").unwrap()).await.assert_success("3");
    close(&env, session).await;
}

#[tokio::test]
async fn a_prompt_sent_now_while_no_turn_runs_is_a_turn() {
    let env = TestEnv::new();
    let session = open(&env, &agent(&env).then(turn("one", "1")).read_to_end());
    rest_of(&mut sent_as_a_turn(&session, "one").await).await.assert_success("1");
    close(&env, session).await;
}
