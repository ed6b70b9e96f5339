//! Conversations with the real CLIs over the HTTP API of a gateway: tools, permission requests, context and aborts.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster_conformance::{Agent, TIMEOUT, TestEnv, TestGateway, agent_tests};
use teamster_testkit::provider::{Message, Reply, Scenario, Script};

agent_tests! {
    a_command_is_allowed_or_denied_over_http_and_the_conversation_keeps_its_context: all,
    an_abort_ends_the_running_turn_and_not_the_conversation: all,
}

/// A model that creates a file with a command for which the agent needs permission, and then answers.
pub(crate) fn creates(agent: &Agent, file: &str) -> Script {
    let (tool, mut input) = agent.shell(&format!("touch {file} && echo it is there"));
    if agent.name == "codex" {
        // It runs other commands in its sandbox, without a request.
        input["sandbox_permissions"] = "require_escalated".into();
        input["justification"] = "Outside of the sandbox?".into();
    }
    Script::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text(format!("About {file}.")))
}

/// Returns the texts of a conversation in the newest request to the model.
fn texts(env: &TestEnv) -> Result<Vec<String>> {
    let requests = env.provider().requests();
    let last = requests.last().context("no request to the model")?;
    Ok(last.messages.iter().flat_map(Message::texts).map(str::to_owned).collect())
}

/// Checks that the model gets an earlier message of the conversation.
pub(crate) fn assert_context(env: &TestEnv, earlier: &str) -> Result<()> {
    let texts = texts(env)?;
    ensure!(texts.iter().any(|text| text.contains(earlier)), "no {earlier:?} in {texts:?}");
    Ok(())
}

/// Returns the events of a turn with this type.
fn of_type<'a>(log: &'a [Value], turn: &str, kind: &str) -> Vec<&'a Value> {
    log.iter().filter(|event| event["turnId"] == turn && event["type"] == kind).collect()
}

/// Sends a message, and answers the permission request of its turn. Returns the turn.
async fn decide(gateway: &TestGateway, conversation: &str, message: &str, answer: Value) -> Result<String> {
    let turn = gateway.send(conversation, message).await?;
    let request = gateway.event(conversation, &turn, "permission_request").await?;
    let open = gateway.get("/v1/permission-requests?state=open").await?;
    let ids: Vec<&Value> = open["items"].as_array().context("a list")?.iter().map(|open| &open["id"]).collect();
    assert_eq!(ids, [&request["requestId"]], "the request waits");
    let path = format!("/v1/permission-requests/{}/answer", request["requestId"].as_str().context("no id")?);
    let (status, closed) = gateway.call("POST", &path, Some(&answer)).await?;
    assert_eq!(status, 200, "{closed}");
    let (status, again) = gateway.call("POST", &path, Some(&json!({"decision": "allow"}))).await?;
    assert_eq!((status, &again["code"]), (409, &json!("ALREADY_ANSWERED")), "an answer is final: {again}");
    Ok(turn)
}

async fn a_command_is_allowed_or_denied_over_http_and_the_conversation_keeps_its_context(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new().branch("good", creates(agent, "good")).branch("bad", creates(agent, "bad"));
    let env = agent.test_env(scenario).await?;
    let gateway = TestGateway::start(agent, &env, "").await?;
    let conversation = gateway.create_conversation(&json!({"title": "Files"})).await?;

    let allowed = decide(&gateway, &conversation, "Make the first one. SCN:good", json!({"decision": "allow"})).await?;
    let first = gateway.ended(&allowed).await?;
    assert_eq!((&first["state"], &first["result"]["finalText"]), (&json!("done"), &json!("About good.")), "{first}");
    assert!(env.project().join("good").exists());

    let answer = json!({"decision": "deny", "message": "Not this one."});
    let denied = decide(&gateway, &conversation, "Make the second one. SCN:bad", answer).await?;
    let second = gateway.ended(&denied).await?;
    assert_eq!(second["state"], "done", "{second}");
    assert!(!env.project().join("bad").exists());
    assert_context(&env, "Make the first one.")?;

    let log = gateway.log(&conversation).await?;
    for (turn, decision, failed) in [(&allowed, "allow", false), (&denied, "deny", true)] {
        let [call] = of_type(&log, turn, "tool_use")[..] else { anyhow::bail!("not one call of a tool") };
        let [result] = of_type(&log, turn, "tool_result")[..] else { anyhow::bail!("not one result of a tool") };
        assert_eq!(call["toolId"], result["toolId"]);
        assert!(call["input"].to_string().contains("touch"), "{call}");
        assert_eq!(result["isError"] == true, failed, "{result}");
        let [answered] = of_type(&log, turn, "permission_answered")[..] else { anyhow::bail!("not one answer") };
        assert_eq!((answered["decision"].as_str(), answered["by"].as_str()), (Some(decision), Some("http:operator")));
    }
    assert_eq!(first["result"]["sessionId"], second["result"]["sessionId"], "the session stays the same");
    gateway.stop().await
}

async fn an_abort_ends_the_running_turn_and_not_the_conversation(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new()
        .branch("endless", agent.reply().text("It starts and never ends.").gate_after(2, "never"))
        .branch("after", Reply::new().text("Here I am."));
    let env = agent.test_env(scenario).await?;
    let gateway = TestGateway::start(agent, &env, "").await?;
    let conversation = gateway.create_conversation(&json!({})).await?;
    let turn = gateway.send(&conversation, "Start. SCN:endless").await?;
    gateway.event(&conversation, &turn, "text").await?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    let (status, requested) = gateway.call("POST", &format!("/v1/turns/{turn}/abort"), None).await?;
    assert_eq!(status, 202, "{requested}");
    let aborted = gateway.ended(&turn).await?;
    assert_eq!((&aborted["state"], &aborted["error"]["code"]), (&json!("aborted"), &json!("ABORTED")), "{aborted}");
    assert!(aborted["result"]["text"].as_str().is_some_and(|text| text.starts_with("It star")), "{aborted}");

    let after = gateway.answered(&conversation, "And now? SCN:after").await?;
    assert_eq!(after["result"]["finalText"], "Here I am.");
    // Gemini CLI 0.61.0 removes a cancelled prompt from its session.
    if agent.name != "gemini" {
        assert_context(&env, "Start.")?;
    }
    let log = gateway.log(&conversation).await?;
    assert_eq!(of_type(&log, &turn, "turn_finished").len(), 1);
    gateway.stop().await
}
