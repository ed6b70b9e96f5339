//! MCP servers and tools that fail.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::{McpServer, PermissionMode};
use teamster_conformance::{Agent, TIMEOUT, agent_tests};

use crate::mcp_servers::{one_call, request, server, slow_call};

agent_tests! {
    a_tool_that_fails_is_an_error_of_the_call_with_the_servers_message: all,
    a_server_that_dies_in_a_call_fails_the_call_only_on_every_agent: all,
    the_first_turn_waits_for_a_slow_server_on_every_agent: all,
    a_call_that_takes_longer_than_it_may_fails_on_every_agent: all,
    servers_that_do_not_start_are_warnings_with_their_names_and_the_run_continues: all,
    a_required_server_that_dies_ends_the_run_and_is_named_on_every_agent: all,
    a_required_server_whose_program_is_missing_ends_the_run_and_is_named_on_every_agent: all,
    a_required_server_that_refuses_connections_ends_the_run_and_is_named: all,
    a_required_server_that_hangs_ends_the_run_and_is_named_on_every_agent: all,
}

async fn a_tool_that_fails_is_an_error_of_the_call_with_the_servers_message(agent: &Agent) -> Result<()> {
    let env = agent.test_env(one_call(agent, "calc", "fail", json!({}))).await?;
    let mut request = request(agent, &env);
    request.mcp_servers.insert("calc".to_owned(), server());
    request.permissions.allow.push("mcp__calc".to_owned());
    let recording = env.run(request).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("calc"), "fail"));
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("it always fails"), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

async fn a_server_that_dies_in_a_call_fails_the_call_only_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(slow_call(agent, "calc")).await?;
    let mut request = request(agent, &env);
    request.mcp_servers.insert("calc".to_owned(), server().args(["--die-on-call"]));
    request.permissions.allow.push("mcp__calc".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

async fn the_first_turn_waits_for_a_slow_server_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(slow_call(agent, "calc")).await?;
    let mut request = request(agent, &env);
    request.mcp_servers.insert("calc".to_owned(), server().args(["--start-delay-ms", "3500"]));
    request.permissions.allow.push("mcp__calc".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.only_tool()?.1.output, "slept");
    assert!(recording.warnings(&WarningCode::McpServerFailed).is_empty());
    Ok(())
}

async fn a_call_that_takes_longer_than_it_may_fails_on_every_agent(agent: &Agent) -> Result<()> {
    let env = agent.test_env(one_call(agent, "calc", "slow", json!({"seconds": 60}))).await?;
    let mut request = request(agent, &env);
    request.mcp_servers.insert("calc".to_owned(), server().args(["--silent"]).tool_timeout(Duration::from_secs(5)));
    request.permissions.allow.push("mcp__calc".to_owned());
    let recording = env.run(request).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

/// Servers that do not start, each in its own way.
fn broken() -> [(&'static str, McpServer); 4] {
    [
        ("dies", server().args(["--exit-at-start"])),
        ("is_missing", McpServer::stdio("/nonexistent/server")),
        ("is.dead", McpServer::http("http://127.0.0.1:9/mcp")),
        ("hangs", server().args(["--hang-at-start"]).startup_timeout(Duration::from_secs(5))),
    ]
}

async fn servers_that_do_not_start_are_warnings_with_their_names_and_the_run_continues(agent: &Agent) -> Result<()> {
    let env = agent.test_env(slow_call(agent, "calc")).await?;
    let mut request = request(agent, &env);
    for (name, server) in broken() {
        request.mcp_servers.insert(name.to_owned(), server);
    }
    request.mcp_servers.insert("calc".to_owned(), server());
    request.permissions.mode = PermissionMode::Full;
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{:?}", recording.failure());
    assert_eq!(recording.only_tool()?.1.output, "slept");
    let warnings = recording.warnings(&WarningCode::McpServerFailed);
    let data = warnings.iter().filter_map(|warning| warning.data.as_ref());
    let mut names: Vec<_> = data.filter_map(|data| data.get("server")?.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["dies", "hangs", "is.dead", "is_missing"], "{warnings:?}");
    let reasons = warnings.iter().filter_map(|warning| warning.data.as_ref()?.get("reason")?.as_str());
    assert!(reasons.into_iter().all(|reason| reason.starts_with("did not start")), "{warnings:?}");
    let stderr = recording.result.stderr.as_deref().unwrap_or_default();
    assert!(!stderr.contains("] [DEBUG]"), "{stderr}");
    Ok(())
}

/// The run must end before the model could answer.
async fn required(agent: &Agent, name: &str) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Too late.").gate_before("answer")).await?;
    let mut request = request(agent, &env);
    let server = broken().into_iter().find(|(other, _)| *other == name);
    request.mcp_servers.extend(server.map(|(name, server)| (name.to_owned(), server.required())));
    let run = env.start(request)?;
    let recording = tokio::time::timeout(TIMEOUT * 2, run.finish()).await??;
    let failure = recording.failure()?;
    assert_eq!(failure.code, ErrorCode::Config, "{failure:?}");
    assert!(failure.message.contains(&format!("{name:?}")), "{}", failure.message.as_str());
    assert_eq!(recording.warnings(&WarningCode::McpServerFailed).len(), 1);
    assert_eq!(recording.result.text, "");
    Ok(())
}

async fn a_required_server_that_dies_ends_the_run_and_is_named_on_every_agent(agent: &Agent) -> Result<()> {
    required(agent, "dies").await
}

async fn a_required_server_whose_program_is_missing_ends_the_run_and_is_named_on_every_agent(
    agent: &Agent,
) -> Result<()> {
    required(agent, "is_missing").await
}

async fn a_required_server_that_refuses_connections_ends_the_run_and_is_named(agent: &Agent) -> Result<()> {
    required(agent, "is.dead").await
}

async fn a_required_server_that_hangs_ends_the_run_and_is_named_on_every_agent(agent: &Agent) -> Result<()> {
    required(agent, "hangs").await
}
