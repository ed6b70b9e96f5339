//! Tools written in Rust, called by the real CLIs.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Value, json};
use teamster::event::ToolKind;
use teamster::request::PermissionMode;
use teamster::tools::{CallContext, JsonSchema, Reply, Tool, ToolServer, schemars};
use teamster_conformance::{AGENTS, Recording};
use teamster_testkit::provider::Scenario;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Has each agent call one tool of a server in this program, in a run that may do nothing but that.
async fn on_each(tool: impl Fn() -> Tool, name: &str, input: Value, look: impl Fn(&str, &Recording)) -> Result<()> {
    for agent in AGENTS {
        let call = agent.mcp_tool("host", name);
        let scenario =
            Scenario::new().reply(agent.reply().tool(call, input.clone())).reply(agent.reply().text("Done."));
        let lab = agent.lab(scenario).await?;
        let tools = ToolServer::new("host").with(tool()).serve().await?;
        let mut request = agent.request(&lab, "Go.");
        request.permissions.mode = PermissionMode::ReadOnly;
        tools.offer(&mut request);
        let recording = lab.run(request).await?;
        assert_eq!(recording.result.final_text, "Done.", "{}: {:?}", agent.name, recording.result);
        let (told, _) = recording.only_tool()?;
        assert_eq!((told.server.as_deref(), told.tool_name.as_str()), (Some("host"), name), "{}", agent.name);
        assert_eq!((&told.kind, told.input.to_value()?), (&ToolKind::Mcp, input.clone()), "{}", agent.name);
        look(agent.name, &recording);
        tools.shutdown().await;
    }
    Ok(())
}

#[tokio::test]
async fn a_tool_of_the_host_program_is_called_where_nothing_else_is_allowed() -> Result<()> {
    let tool =
        || {
            Tool::new("add", "Adds two numbers", |Add { a, b }: Add| async move {
                Ok::<_, String>(format!("it is {}", a + b))
            })
        };
    on_each(tool, "add", json!({"a": 19, "b": 23}), |agent, recording| {
        let (_, result) = recording.only_tool().unwrap();
        assert_eq!((result.output.as_str(), result.is_error == Some(true)), ("it is 42", false), "{agent}");
        let told = recording.requests.last().unwrap().tool_results();
        assert!(told.iter().any(|result| result.output.contains("it is 42")), "{agent}: the model hears it");
    })
    .await
}

#[tokio::test]
async fn a_reply_that_is_a_number_is_accepted() -> Result<()> {
    let tool = || Tool::new("answer", "The answer", |Nothing {}| async { Ok::<_, String>("42") });
    on_each(tool, "answer", json!({}), |agent, recording| {
        let (_, result) = recording.only_tool().unwrap();
        assert_ne!(result.is_error, Some(true), "{agent}: {}", result.output.as_str());
        assert!(result.output.contains("42"), "{agent}: {}", result.output.as_str());
    })
    .await
}

#[tokio::test]
async fn the_model_gets_all_digits_of_a_large_number() -> Result<()> {
    const ID: u64 = 1_234_567_890_123_456_789;
    let tool = || Tool::new("find", "Finds it", |Nothing {}| async { Ok::<_, String>(json!({ "id": ID })) });
    on_each(tool, "find", json!({}), |agent, recording| {
        let (_, shown) = recording.only_tool().unwrap();
        let told = recording.requests.last().unwrap().tool_results();
        let digits = ID.to_string();
        assert!(told.iter().any(|result| result.output.contains(&digits)), "{agent}: the model gets {told:?}");
        assert!(shown.output.contains(&digits), "{agent}: the stream shows {:?}", shown.output);
    })
    .await
}

#[tokio::test]
async fn a_tool_of_the_host_program_that_fails_is_an_error_result() -> Result<()> {
    let tool = || Tool::new("fail", "Fails", |Nothing {}| async { Err::<Reply, _>("there is no such room") });
    on_each(tool, "fail", json!({}), |agent, recording| {
        let (_, result) = recording.only_tool().unwrap();
        assert_eq!(result.is_error, Some(true), "{agent}");
        assert!(result.output.contains("there is no such room"), "{agent}: {}", result.output.as_str());
    })
    .await
}

#[tokio::test]
async fn the_model_gets_the_whole_reply_and_the_stream_shows_the_same() -> Result<()> {
    let reply = || Reply::from("Two rows:").and(json!({"rows": [1, 2]})).and("and no more.");
    let tool = || Tool::new("rows", "The rows", move |Nothing {}| async move { Ok::<_, String>(reply()) });
    on_each(tool, "rows", json!({}), |agent, recording| {
        let (_, shown) = recording.only_tool().unwrap();
        let told = recording.requests.last().unwrap().tool_results();
        let told: String = told.iter().map(|result| result.output.as_str()).collect();
        for part in ["Two rows:", "rows", "[1,2]", "and no more."] {
            assert!(shown.output.contains(part), "{agent}: the stream lacks {part:?}: {:?}", shown.output);
            // A vendor's form may have the JSON as a string within another.
            assert!(told.contains(part), "{agent}: the model does not get {part:?}: {told}");
        }
    })
    .await
}

/// The length of a UUID's text.
const UUID_LENGTH: usize = 36;

#[tokio::test]
async fn a_tool_knows_which_agent_session_and_turn_calls_it() -> Result<()> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let tool = || {
        let seen = Arc::clone(&seen);
        Tool::with_context("look", "Looks", move |Nothing {}, call: CallContext| {
            let known = (call.agent().map(str::to_owned), call.session_id().cloned(), call.turn(), call.call_id());
            assert!(call.run_id().is_some_and(|id| id.len() == UUID_LENGTH), "{call:?}");
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(known);
            async { Ok::<_, String>("seen") }
        })
    };
    on_each(tool, "look", json!({}), |agent, recording| {
        let (call, _) = recording.only_tool().unwrap();
        let (name, session, turn, id) = seen.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap();
        assert_eq!((name.as_deref(), turn), (Some(agent), Some(1)));
        assert_eq!(session, recording.result.session_id, "{agent}");
        if agent == "claude" {
            assert_eq!(id, call.tool_id.as_str());
        }
    })
    .await
}
