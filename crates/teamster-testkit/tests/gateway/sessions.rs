//! A conversation's context is kept, resumed, or given to the agent again from the log. A loss is visible.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use teamster::RunResult;
use teamster_gateway::config::{Config, ConversationSettings, Rule};
use teamster_gateway::{ConversationChange, NewConversationRequest};
use teamster_store::{ConversationState, Seq, Turn, TurnState};
use teamster_testkit::fake::Script;

use crate::test_gateway::{TestGateway, play_scenario, write_agent, write_program, write_script};

const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

fn text(turn: Turn) -> String {
    let result: RunResult = turn.result.unwrap().to().unwrap();
    result.final_text.as_str().to_owned()
}

#[tokio::test]
async fn a_closed_session_is_resumed_by_its_id() {
    let test = TestGateway::with_config(ECHO, |config| config.limits.idle_sessions = 0).await;
    let conversation = test.conversation().await;
    let first = test.ended(test.send(conversation, "one").await.turn).await;
    assert_eq!(test.gateway.activity().idle_sessions, 0);
    let second = test.ended(test.send(conversation, "two").await.turn).await;
    let session = |turn: &Turn| turn.result.as_ref().unwrap().to::<RunResult>().unwrap().session_id;
    assert_eq!(session(&first), session(&second));
    assert_eq!(text(second), "You said: two");
}

#[tokio::test]
async fn a_session_stays_open_although_its_instructions_contain_the_time() {
    let change = |config: &mut Config| config.instructions.text = Some("It was {time} when we started.".to_owned());
    let test = TestGateway::with_config(&ECHO.repeat(2), change).await;
    let conversation = test.conversation().await;
    test.ended(test.send(conversation, "one").await.turn).await;
    // Another process of the agent would fail.
    write_program(test.directory.path(), "#!/bin/sh\nexit 1\n");
    let turn = test.ended(test.send(conversation, "two").await.turn).await;
    assert_eq!((turn.state, turn.attempts), (TurnState::Done, 1));
    assert_eq!(text(turn), "You said: two");
}

#[tokio::test]
async fn a_lost_session_is_replaced_by_one_that_knows_the_last_messages() {
    let test = TestGateway::with_config(ECHO, |config| config.limits.idle_sessions = 0).await;
    let conversation = test.conversation().await;
    test.ended(test.send(conversation, "one").await.turn).await;
    let lost = "case \"$*\" in *--resume*) echo 'No conversation found with session ID: x' >&2; exit 1;; esac";
    write_program(test.directory.path(), &format!("#!/bin/sh\n{lost}\n{}", play_scenario(test.directory.path())));
    let turn = test.ended(test.send(conversation, "two").await.turn).await;
    assert_eq!((turn.state, turn.attempts), (TurnState::Done, 2));
    let answer = text(turn);
    assert!(answer.contains(r#"{"role":"agent","text":"You said: one"}"#) && answer.ends_with("two"), "{answer}");
    assert!(test.log(conversation).await.contains(&"session_reset".to_owned()));
}

#[tokio::test]
async fn a_fork_knows_the_history_up_to_its_event() {
    let test = TestGateway::start(ECHO).await;
    let conversation = test.conversation().await;
    test.ended(test.send(conversation, "one").await.turn).await;
    let after = test.gateway.store().conversation(conversation, test.gateway.now()).await.unwrap().unwrap().last_seq;
    test.ended(test.send(conversation, "two").await.turn).await;
    let request = NewConversationRequest {
        channel: "http".into(),
        author: "test".into(),
        fork: Some((conversation, Some(after))),
        ..NewConversationRequest::default()
    };
    let fork = test.gateway.create_conversation(request).await.unwrap().id;
    let answer = text(test.ended(test.send(fork, "three").await.turn).await);
    assert!(answer.contains("one") && !answer.contains("two") && answer.ends_with("three"), "{answer}");
    assert!(!test.log(fork).await.contains(&"session_reset".to_owned()), "nothing is lost");
    test.gateway.store().events(fork, Seq::START, 10).await.unwrap();
}

#[tokio::test]
async fn a_rate_limit_with_a_known_end_pauses_and_a_client_can_end_the_pause() {
    let test = TestGateway::start(ECHO).await;
    let in_an_hour = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_hours(1);
    let script = Script::new()
        .ready()
        .claude_init()
        .await_line("hello")
        .claude_rate_limited_until(i64::try_from(in_an_hour.as_secs()).unwrap())
        .claude_api_error(429, "You have hit your limit")
        .read_to_end();
    write_script(test.directory.path(), &script);
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "turn_paused").await;
    let paused = test.gateway.store().conversation(conversation, test.gateway.now()).await.unwrap().unwrap();
    assert_eq!(paused.state, ConversationState::Paused);
    write_agent(test.directory.path(), ECHO);
    test.gateway.resume_conversation(conversation).await.unwrap();
    assert_eq!(text(test.ended(turn).await), "You said: hello");
}

#[tokio::test]
async fn a_daily_budget_is_not_exceeded() {
    let rule = Rule { daily_budget_usd: Some(0.0036), ..Rule::default() };
    let test = TestGateway::with_config(ECHO, |config| config.rules.push(rule)).await;
    let conversation = test.conversation().await;
    let mut states = Vec::new();
    for _ in 0..3 {
        let turn = test.ended(test.send(conversation, "hello").await.turn).await;
        states.push((turn.state, turn.error_code));
    }
    let budget = (TurnState::Failed, Some("BUDGET".to_owned()));
    assert_eq!(states, [(TurnState::Done, None), budget.clone(), budget]);
}

#[tokio::test]
async fn a_turn_with_a_budget_does_not_start_an_agent_that_reports_no_cost() {
    let rule = Rule { daily_budget_usd: Some(1.0), ..Rule::default() };
    let test = TestGateway::with_config(ECHO, |config| config.rules.push(rule)).await;
    let conversation = test.conversation().await;
    let change = ConversationChange { agent: Some("codex".to_owned()), ..ConversationChange::default() };
    test.gateway.update_conversation(conversation, change).await.unwrap();
    let turn = test.ended(test.send(conversation, "hello").await.turn).await;
    assert_eq!((turn.state, turn.error_code.as_deref()), (TurnState::Failed, Some("BUDGET")));
    assert_eq!(turn.attempts, 0);
    let finished = test.event(conversation, "turn_finished").await;
    assert!(finished["error"].as_str().unwrap().contains("codex does not report its cost"), "{finished}");
}

#[tokio::test]
async fn the_agent_of_a_rule_is_used_whatever_the_conversation_has_selected() {
    let rule = Rule { agent: Some("claude".to_owned()), ..Rule::default() };
    let test = TestGateway::with_config(&ECHO.repeat(2), |config| config.rules.push(rule)).await;
    let conversation = test.conversation().await;
    let change = ConversationChange { agent: Some("codex".to_owned()), ..ConversationChange::default() };
    test.gateway.update_conversation(conversation, change).await.unwrap();
    assert_eq!(text(test.ended(test.send(conversation, "hello").await.turn).await), "You said: hello");
    assert_eq!(test.event(conversation, "turn_started").await["agent"], "claude");
    assert_eq!(text(test.ended(test.send(conversation, "again").await.turn).await), "You said: again");
}

#[tokio::test]
async fn a_directory_that_became_a_link_out_of_its_roots_is_not_used() {
    let test = TestGateway::start(ECHO).await;
    let inside = test.directory.path().join("work/inside");
    std::fs::create_dir(&inside).unwrap();
    let settings = ConversationSettings { directory: Some(inside.clone()), ..ConversationSettings::default() };
    let request = NewConversationRequest {
        channel: "http".into(),
        author: "test".into(),
        settings,
        ..NewConversationRequest::default()
    };
    let conversation = test.gateway.create_conversation(request).await.unwrap().id;
    assert_eq!(text(test.ended(test.send(conversation, "one").await.turn).await), "You said: one");
    std::fs::remove_dir(&inside).unwrap();
    std::os::unix::fs::symlink("/", &inside).unwrap();
    let turn = test.ended(test.send(conversation, "two").await.turn).await;
    assert_eq!((turn.state, turn.error_code.as_deref(), turn.attempts), (TurnState::Failed, Some("FORBIDDEN"), 0));
}
