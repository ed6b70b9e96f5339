//! Messages for a running turn: whatever happens to the turn, each of them is answered.

use teamster::RunResult;
use teamster_store::{MessageMode, Turn, TurnId, TurnState};
use teamster_testkit::fake::Script;
use tokio::time::timeout;

use crate::test_gateway::{LIMIT, TestGateway, write_agent, write_script};

const ECHO: &str = "[[turns]]\nsteps = [{ say = \"You said: {prompt}\" }]\n";

/// The request that interrupts an agent.
const INTERRUPT: &str = "\"interrupt\"";

/// An agent that works on the first message.
fn working() -> Script {
    Script::new().ready().claude_init().await_line("one").claude_text("1")
}

/// The turn that the CLI starts by itself with a message that came too late.
fn late() -> Script {
    Script::new().await_line("more").claude_result("1").claude_init()
}

fn text(turn: &Turn) -> String {
    let result: RunResult = turn.result.as_ref().unwrap().to().unwrap();
    result.final_text.as_str().to_owned()
}

/// Starts a turn of this agent, and sends a message into it.
async fn steered(script: &Script) -> (TestGateway, TurnId, TurnId) {
    let test = TestGateway::start(ECHO).await;
    write_script(test.directory.path(), script);
    let conversation = test.conversation().await;
    let first = test.send(conversation, "one").await.turn;
    test.event(conversation, "text").await;
    let second = test.send_as(conversation, "more", MessageMode::Steer).await.turn;
    (test, first, second)
}

/// Waits until a message is being sent into the running turn.
async fn joined(test: &TestGateway, turn: TurnId) {
    let wait = async {
        while test.gateway.store().turn(turn).await.unwrap().unwrap().joined.is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("the message is sent into the turn");
}

#[tokio::test]
async fn a_message_that_the_agent_has_not_taken_is_answered_after_a_crash() {
    let (test, first, second) = steered(&working().read_to_end()).await;
    joined(&test, second).await;
    let directory = test.crash();
    write_agent(directory.path(), ECHO);
    let test = TestGateway::in_directory(directory, |_| {}).await;
    assert_eq!(test.ended(first).await.error_code.as_deref(), Some("INTERRUPTED"));
    let own = test.ended(second).await;
    assert_eq!((own.state, own.joined, own.attempts), (TurnState::Done, None, 1));
    assert!(text(&own).ends_with("more"), "{}", text(&own));
}

#[tokio::test]
async fn a_message_that_the_agent_has_not_taken_is_answered_after_an_abort_of_the_turn() {
    let script = working().await_line(INTERRUPT).claude_interrupted().read_to_end();
    let (test, first, second) = steered(&script).await;
    joined(&test, second).await;
    write_agent(test.directory.path(), ECHO);
    test.gateway.abort_turn(first).await.unwrap();
    assert_eq!(test.ended(first).await.state, TurnState::Aborted);
    let own = test.ended(second).await;
    assert_eq!((own.state, own.joined), (TurnState::Done, None));
}

#[tokio::test]
async fn a_message_that_comes_too_late_has_an_answer_of_its_own() {
    let stopped = late().claude_partial_text("2").await_line(INTERRUPT).claude_interrupted();
    let own = Script::new().await_line("more").claude_init().claude_text("own").claude_result("own");
    let (test, first, second) = steered(&working().then(stopped).then(own).read_to_end()).await;
    let ended = test.ended(first).await;
    assert_eq!((ended.state, text(&ended).as_str()), (TurnState::Done, "1"));
    let ended = test.ended(second).await;
    assert_eq!((ended.state, ended.joined, text(&ended).as_str()), (TurnState::Done, None, "own"));
    assert!(!test.log(ended.conversation).await.contains(&"turn_joined".to_owned()));
}

#[tokio::test]
async fn a_late_message_that_fails_after_a_tool_keeps_the_answer_of_the_turn() {
    let stopped = late().claude_tool("t", "Bash", &serde_json::json!({"command": "rm x"}));
    let script = working().then(stopped).await_line(INTERRUPT).claude_interrupted().read_to_end();
    let (test, first, second) = steered(&script).await;
    let ended = test.ended(first).await;
    assert_eq!((ended.state, text(&ended).as_str()), (TurnState::Done, "1"));
    let ended = test.ended(second).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
}

#[tokio::test]
async fn several_messages_go_into_the_running_turn_one_after_the_other() {
    let scenario = "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 1000 }, { say = \"end\" }]\n";
    let test = TestGateway::start(scenario).await;
    let conversation = test.conversation().await;
    let first = test.send(conversation, "one").await.turn;
    test.event(conversation, "text").await;
    let mut more = Vec::new();
    for number in 0..3 {
        more.push(test.send_as(conversation, &format!("more {number}"), MessageMode::Steer).await.turn);
    }
    assert_eq!(test.ended(first).await.state, TurnState::Done);
    for turn in more {
        let joined = test.ended(turn).await;
        assert_eq!((joined.state, joined.joined), (TurnState::Done, Some(first)));
    }
}
