//! Tools of the host program, written in Rust and called by the real CLIs.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use teamster::event::ToolKind;
use teamster::request::PermissionMode;
use teamster::tools::{CallContext, JsonSchema, Reply, Tool, ToolServer, schemars};
use teamster_conformance::{Agent, Recording, agent_tests};
use teamster_testkit::provider::Scenario;

agent_tests! {
    a_tool_of_the_host_program_is_called_where_nothing_else_is_allowed: all,
    a_reply_that_is_a_number_is_accepted: all,
    the_model_gets_all_digits_of_a_large_number: all,
    a_tool_of_the_host_program_that_fails_is_an_error_result: all,
    the_model_gets_the_whole_reply_and_the_stream_shows_the_same: all,
    a_tool_knows_which_agent_session_and_turn_calls_it: all,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Runs a model that calls one tool of a server in this program. The run permits no other tool.
async fn call(agent: &Agent, tool: Tool, name: &str, input: Value) -> Result<Recording> {
    let call = agent.mcp_tool("host", name);
    let scenario = Scenario::new().reply(agent.reply().tool(call, input.clone())).reply(agent.reply().text("Done."));
    let env = agent.test_env(scenario).await?;
    let tools = ToolServer::new("host").with(tool).serve().await?;
    let mut request = agent.request(&env, "Go.");
    request.permissions.mode = PermissionMode::ReadOnly;
    tools.offer(&mut request);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{:?}", recording.result);
    let (reported, _) = recording.only_tool()?;
    assert_eq!((reported.server.as_deref(), reported.tool_name.as_str()), (Some("host"), name));
    assert_eq!((&reported.kind, reported.input.to_value()?), (&ToolKind::Mcp, input));
    tools.shutdown().await;
    Ok(recording)
}

/// Returns the results of tools in the last request to the model.
fn received(recording: &Recording) -> Vec<String> {
    let results = recording.requests.last().map(|request| request.tool_results()).unwrap_or_default();
    results.iter().map(|result| result.output.clone()).collect()
}

async fn a_tool_of_the_host_program_is_called_where_nothing_else_is_allowed(agent: &Agent) -> Result<()> {
    let tool =
        Tool::new(
            "add",
            "Adds two numbers",
            |Add { a, b }: Add| async move { Ok::<_, String>(format!("it is {}", a + b)) },
        );
    let recording = call(agent, tool, "add", json!({"a": 19, "b": 23})).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!((result.output.as_str(), result.is_error == Some(true)), ("it is 42", false));
    assert!(received(&recording).iter().any(|output| output.contains("it is 42")), "the model receives the result");
    Ok(())
}

async fn a_reply_that_is_a_number_is_accepted(agent: &Agent) -> Result<()> {
    let tool = Tool::new("answer", "The answer", |Nothing {}| async { Ok::<_, String>("42") });
    let recording = call(agent, tool, "answer", json!({})).await?;
    let (_, result) = recording.only_tool()?;
    assert_ne!(result.is_error, Some(true), "{}", result.output.as_str());
    assert!(result.output.contains("42"), "{}", result.output.as_str());
    Ok(())
}

async fn the_model_gets_all_digits_of_a_large_number(agent: &Agent) -> Result<()> {
    const ID: u64 = 1_234_567_890_123_456_789;
    let tool = Tool::new("find", "Finds it", |Nothing {}| async { Ok::<_, String>(json!({ "id": ID })) });
    let recording = call(agent, tool, "find", json!({})).await?;
    let (_, shown) = recording.only_tool()?;
    let (received, digits) = (received(&recording), ID.to_string());
    assert!(received.iter().any(|output| output.contains(&digits)), "the model receives {received:?}");
    assert!(shown.output.contains(&digits), "the stream shows {:?}", shown.output);
    Ok(())
}

async fn a_tool_of_the_host_program_that_fails_is_an_error_result(agent: &Agent) -> Result<()> {
    let tool = Tool::new("fail", "Fails", |Nothing {}| async { Err::<Reply, _>("there is no such room") });
    let recording = call(agent, tool, "fail", json!({})).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("there is no such room"), "{}", result.output.as_str());
    Ok(())
}

async fn the_model_gets_the_whole_reply_and_the_stream_shows_the_same(agent: &Agent) -> Result<()> {
    let reply = || Reply::from("Two rows:").and(json!({"rows": [1, 2]})).and("and no more.");
    let tool = Tool::new("rows", "The rows", move |Nothing {}| async move { Ok::<_, String>(reply()) });
    let recording = call(agent, tool, "rows", json!({})).await?;
    let (_, shown) = recording.only_tool()?;
    let received = received(&recording).concat();
    for part in ["Two rows:", "rows", "[1,2]", "and no more."] {
        assert!(shown.output.contains(part), "the stream lacks {part:?}: {:?}", shown.output);
        // Some vendors' formats contain the JSON as a string within other JSON.
        assert!(received.contains(part), "the model does not receive {part:?}: {received}");
    }
    Ok(())
}

/// The length of a UUID's text.
const UUID_LENGTH: usize = 36;

async fn a_tool_knows_which_agent_session_and_turn_calls_it(agent: &Agent) -> Result<()> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let tool = {
        let calls = Arc::clone(&calls);
        Tool::with_context("look", "Looks", move |Nothing {}, call: CallContext| {
            let known = (call.agent().map(str::to_owned), call.session_id().cloned(), call.turn(), call.call_id());
            assert!(call.run_id().is_some_and(|id| id.len() == UUID_LENGTH), "{call:?}");
            calls.lock().unwrap_or_else(PoisonError::into_inner).push(known);
            async { Ok::<_, String>("seen") }
        })
    };
    let recording = call(agent, tool, "look", json!({})).await?;
    let (reported, _) = recording.only_tool()?;
    let known = calls.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let (name, session, turn, id) = known.context("the tool was not called")?;
    assert_eq!((name.as_deref(), turn), (Some(agent.name), Some(1)));
    assert_eq!(session, recording.result.session_id);
    if agent.name == "claude" {
        assert_eq!(id, reported.tool_id.as_str());
    }
    Ok(())
}
