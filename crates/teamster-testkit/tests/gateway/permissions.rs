//! Permission requests are stored, answered once, and closed with their turn.

use std::time::Duration;

use teamster_gateway::config::Config;
use teamster_gateway::{AnswerResult, Caller, GatewayError};
use teamster_store::{Decision, PageRequest, PermissionFilter, PermissionId, PermissionOutcome, TurnState};
use teamster_testkit::fake::Script;

use crate::test_gateway::{LIMIT, TestGateway, write_script};

const ASK: &str =
    "[[turns]]\nsteps = [{ run = { command = \"ls\", output = \"a\\n\", ask = true } }, { say = \"after\" }]\n";

fn author() -> Caller {
    Caller { id: "http:test".to_owned(), answers_all: false }
}

async fn request(test: &TestGateway, conversation: teamster_store::ConversationId) -> PermissionId {
    let body = test.event(conversation, "permission_request").await;
    body["requestId"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_allowed_call_runs_and_the_answer_is_in_the_log_once() {
    let test = TestGateway::start(ASK).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    let answer = test.gateway.answer_permission(id, Decision::Allow, None, &author()).await.unwrap();
    assert!(matches!(answer, AnswerResult::Applied(_)));
    let again = test.gateway.answer_permission(id, Decision::Deny, None, &author()).await.unwrap();
    assert!(matches!(again, AnswerResult::Closed(_)));
    assert_eq!(test.ended(turn).await.state, TurnState::Done);
    let log = test.log(conversation).await;
    assert_eq!(log.iter().filter(|kind| *kind == "permission_answered").count(), 1, "{log:?}");
    let answered = test.event(conversation, "permission_answered").await;
    assert_eq!((answered["decision"].as_str(), answered["by"].as_str()), (Some("allow"), Some("http:test")));
    let result = test.event(conversation, "tool_result").await;
    assert_ne!(result["isError"], true);
}

#[tokio::test]
async fn a_stranger_cannot_answer_and_the_request_stays_open() {
    let test = TestGateway::start(ASK).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    let stranger = Caller { id: "http:other".to_owned(), answers_all: false };
    let refused = test.gateway.answer_permission(id, Decision::Allow, None, &stranger).await;
    assert!(matches!(refused, Err(GatewayError::Forbidden { .. })));
    let operator = Caller { id: "token:admin".to_owned(), answers_all: true };
    let answer = test.gateway.answer_permission(id, Decision::Deny, Some("no".into()), &operator).await.unwrap();
    assert!(matches!(answer, AnswerResult::Applied(_)));
    test.ended(turn).await;
    assert_eq!(test.event(conversation, "tool_result").await["isError"], true);
}

#[tokio::test]
async fn an_unanswered_request_times_out_and_stops_the_turn() {
    // The agent tries another tool after the refusal.
    let ask = "{ run = { command = \"ls\", output = \"a\\n\", ask = true } }";
    let scenario = format!("[[turns]]\nsteps = [{ask}, {ask}]\n");
    let test =
        TestGateway::with_config(&scenario, |config| config.timing.permission_timeout = Duration::from_secs(1)).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("PERMISSION_TIMEOUT")));
    assert_eq!(test.event(conversation, "permission_answered").await["decision"], "timed_out");
    let done = test.event(conversation, "done").await;
    assert_eq!(
        done["result"]["sessionId"],
        test.event(conversation, "init").await["sessionId"],
        "the session is kept: {done}"
    );
    let late = test.gateway.answer_permission(id, Decision::Allow, None, &author()).await.unwrap();
    assert!(matches!(late, AnswerResult::Closed(_) | AnswerResult::Expired(_)));
}

#[tokio::test]
async fn an_abort_closes_the_open_request() {
    let test = TestGateway::start(ASK).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    test.gateway.abort_turn(turn).await.unwrap();
    assert_eq!(test.ended(turn).await.state, TurnState::Aborted);
    let found = test.gateway.store().permission(id).await.unwrap().unwrap();
    assert_eq!(found.closing.unwrap().outcome, PermissionOutcome::TurnEnded);
    let open = PermissionFilter { open: true, ..PermissionFilter::default() };
    assert!(test.gateway.store().permissions(open, PageRequest::first(10)).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_turn_that_waits_for_a_person_does_not_block_others() {
    let test = TestGateway::with_config(ASK, |config| config.limits.max_running = 1).await;
    let mut turns = Vec::new();
    for _ in 0..3 {
        let conversation = test.conversation().await;
        turns.push((conversation, test.send(conversation, "hello").await.turn));
    }
    let mut requests = Vec::new();
    for (conversation, _) in &turns {
        requests.push(request(&test, *conversation).await);
    }
    for id in requests {
        test.gateway.answer_permission(id, Decision::Allow, None, &author()).await.unwrap();
    }
    for (_, turn) in turns {
        assert_eq!(test.ended(turn).await.state, TurnState::Done);
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_person() {
    let change = |config: &mut Config| config.timing.shutdown_timeout = 10 * LIMIT;
    let mut test = TestGateway::with_config(ASK, change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    test.shutdown().await;
    let late = test.gateway.answer_permission(id, Decision::Allow, None, &author()).await.unwrap();
    assert!(matches!(late, AnswerResult::Closed(_)), "no answer is accepted for an agent that has ended: {late:?}");
    let test = TestGateway::in_directory(test.crash(), change).await;
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
    let answered = test.log(conversation).await.iter().filter(|kind| *kind == "permission_answered").count();
    assert_eq!(answered, 1);
}

#[tokio::test]
async fn a_turn_is_not_repeated_after_a_tool_was_allowed() {
    // The agent dies with the answer, before it reports anything.
    let script = Script::new().ready().claude_init().await_line("hello");
    let ask = serde_json::json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "rm x"}, "tool_use_id": "t1"},
    });
    let script = script.line(ask).await_line("allow").exit(3);
    let test = TestGateway::start(ASK).await;
    write_script(test.directory.path(), &script);
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    let id = request(&test, conversation).await;
    test.gateway.answer_permission(id, Decision::Allow, None, &author()).await.unwrap();
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.attempts, ended.ran_tools), (TurnState::Failed, 1, true));
}
