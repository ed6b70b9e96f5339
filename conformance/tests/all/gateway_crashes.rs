//! A gateway that is killed with SIGKILL while a real CLI works, and started again over the same data.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster_conformance::{Agent, TIMEOUT, TestGateway, agent_tests};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario};

use crate::gateway_turns::assert_context;

agent_tests! {
    a_killed_gateway_loses_no_message_and_resumes_the_session: all,
    an_answer_that_a_kill_interrupted_is_continued_in_the_same_session: all,
}

/// Checks that each turn ended once, in order, and that no session was lost.
fn assert_ends(log: &[Value], turns: &[(&str, &str)]) {
    let ended = log.iter().filter(|event| event["type"] == "turn_finished");
    let ended: Vec<_> = ended.map(|event| (event["turnId"].as_str(), event["state"].as_str())).collect();
    let expected: Vec<_> = turns.iter().map(|(turn, state)| (Some(*turn), Some(*state))).collect();
    assert_eq!(ended, expected);
    assert!(log.iter().all(|event| event["type"] != "session_reset"), "the session is kept");
}

async fn a_killed_gateway_loses_no_message_and_resumes_the_session(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new()
        .branch("one", agent.reply().text("Answer one."))
        .branch("two", agent.reply().text("Answer two.").gate_before("two"))
        .branch("three", agent.reply().text("This is answer three.").gate_after(2, "never"))
        .branch("four", agent.reply().text("Answer four."));
    let env = agent.test_env(scenario).await?;
    let mut gateway = TestGateway::start(agent, &env, "").await?;
    let conversation = gateway.create_conversation(&json!({})).await?;
    let first = gateway.answered(&conversation, "Message one. SCN:one").await?;
    let session = first["result"]["sessionId"].as_str().context("no session")?.to_owned();
    agent.saved(&env, "Answer one.").await?;

    // Killed before the model has responded: the turn starts again. Another message waits.
    let second = gateway.send(&conversation, "Message two. SCN:two").await?;
    env.provider().gate("two").wait_reached(TIMEOUT).await?;
    let third = gateway.send(&conversation, "Message three. SCN:three").await?;
    gateway.kill().await?;
    env.provider().gate("two").open();
    gateway.restart().await?;
    let found = gateway.ended(&second).await?;
    assert_eq!((&found["state"], &found["attempts"]), (&json!("done"), &json!(2)), "{found}");
    assert_eq!(found["result"]["finalText"], "Answer two.");
    assert_context(&env, "Message one.")?;

    // Killed in the middle of an answer: the chat is informed.
    gateway.event(&conversation, &third, "text").await?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    gateway.kill().await?;
    gateway.restart().await?;
    let found = gateway.ended(&third).await?;
    assert_eq!((&found["state"], &found["error"]["code"]), (&json!("failed"), &json!("INTERRUPTED")), "{found}");

    let fourth = gateway.answered(&conversation, "Message four. SCN:four").await?;
    assert_eq!(fourth["result"]["finalText"], "Answer four.");
    assert_context(&env, "Message one.")?;
    assert_context(&env, "Message two.")?;
    assert_eq!(fourth["result"]["sessionId"], session.as_str(), "the session stays the same");
    let id = |turn: &Value| turn["id"].as_str().unwrap_or_default().to_owned();
    let (first, fourth) = (id(&first), id(&fourth));
    let ends = [(&*first, "done"), (&*second, "done"), (&*third, "failed"), (&*fourth, "done")];
    assert_ends(&gateway.log(&conversation).await?, &ends);
    gateway.stop().await
}

async fn an_answer_that_a_kill_interrupted_is_continued_in_the_same_session(agent: &Agent) -> Result<()> {
    let reply = agent.reply();
    let scenario = Reply::from_fn(move |request: &ModelRequest| {
        let is_continued = request.prompts().iter().any(|prompt| prompt.contains("You were interrupted"));
        let reply = reply.clone();
        if is_continued { reply.text("The end.") } else { reply.text("It starts here.").gate_after(1, "never") }
    });
    let env = agent.test_env(scenario).await?;
    let mut gateway = TestGateway::start(agent, &env, "interrupted = \"resume\"").await?;
    let conversation = gateway.create_conversation(&json!({})).await?;
    let turn = gateway.send(&conversation, "Tell me a story.").await?;
    gateway.event(&conversation, &turn, "text").await?;
    gateway.kill().await?;
    gateway.restart().await?;
    let found = gateway.ended(&turn).await?;
    assert_eq!((&found["state"], &found["attempts"]), (&json!("done"), &json!(2)), "{found}");
    assert_eq!(found["result"]["finalText"], "The end.");
    assert_context(&env, "Tell me a story.")?;
    let log = gateway.log(&conversation).await?;
    let sessions: Vec<_> =
        log.iter().filter(|event| event["type"] == "init").map(|event| &event["sessionId"]).collect();
    assert!(sessions.len() == 2 && sessions[0] == sessions[1], "{sessions:?}");
    assert_ends(&log, &[(&turn, "done")]);
    gateway.stop().await
}
