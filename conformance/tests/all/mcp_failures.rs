//! MCP servers and tools that fail, on every agent.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::{McpServer, PermissionMode};
use teamster_conformance::{AGENTS, BOUND};

use crate::mcp::{one_call, request, server, slow_call};

#[tokio::test]
async fn a_tool_that_fails_is_an_error_of_the_call_with_the_servers_message() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(one_call(agent, "calc", "fail", json!({}))).await?;
        let mut asked = request(agent, &lab);
        asked.mcp_servers.insert("calc".to_owned(), server());
        asked.permissions.allow.push("mcp__calc".to_owned());
        let recording = lab.run(asked).await?;
        let (tool, result) = recording.only_tool()?;
        assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("calc"), "fail"), "{}", agent.name);
        assert_eq!(result.is_error, Some(true), "{}", agent.name);
        assert!(result.output.contains("it always fails"), "{}: {}", agent.name, result.output.as_str());
        assert_eq!(recording.result.final_text, "Done.", "{}", agent.name);
        assert!(recording.result.permission_denials.is_empty(), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_the_call_only_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(slow_call(agent, "calc")).await?;
        let mut asked = request(agent, &lab);
        asked.mcp_servers.insert("calc".to_owned(), server().args(["--die-on-call"]));
        asked.permissions.allow.push("mcp__calc".to_owned());
        let recording = lab.run(asked).await?;
        assert_eq!(recording.only_tool()?.1.is_error, Some(true), "{}", agent.name);
        assert_eq!(recording.result.final_text, "Done.", "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn the_first_turn_waits_for_a_slow_server_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(slow_call(agent, "calc")).await?;
        let mut asked = request(agent, &lab);
        asked.mcp_servers.insert("calc".to_owned(), server().args(["--start-delay-ms", "3500"]));
        asked.permissions.allow.push("mcp__calc".to_owned());
        let recording = lab.run(asked).await?;
        assert_eq!(recording.only_tool()?.1.output, "slept", "{}", agent.name);
        assert!(recording.warnings(&WarningCode::McpServerFailed).is_empty(), "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_call_that_takes_longer_than_it_may_fails_on_every_agent() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(one_call(agent, "calc", "slow", json!({"seconds": 60}))).await?;
        let mut asked = request(agent, &lab);
        asked.mcp_servers.insert("calc".to_owned(), server().args(["--silent"]).tool_timeout(Duration::from_secs(5)));
        asked.permissions.allow.push("mcp__calc".to_owned());
        let recording = lab.run(asked).await?;
        let (_, result) = recording.only_tool()?;
        assert_eq!(result.is_error, Some(true), "{}: {}", agent.name, result.output.as_str());
        assert_eq!(recording.result.final_text, "Done.", "{}", agent.name);
    }
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

#[tokio::test]
async fn servers_that_do_not_start_are_warnings_with_their_names_and_the_run_continues() -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(slow_call(agent, "calc")).await?;
        let mut asked = request(agent, &lab);
        for (name, server) in broken() {
            asked.mcp_servers.insert(name.to_owned(), server);
        }
        asked.mcp_servers.insert("calc".to_owned(), server());
        asked.permissions.mode = PermissionMode::Full;
        let recording = lab.run(asked).await?;
        assert_eq!(recording.result.final_text, "Done.", "{}: {:?}", agent.name, recording.failure());
        assert_eq!(recording.only_tool()?.1.output, "slept", "{}", agent.name);
        let warnings = recording.warnings(&WarningCode::McpServerFailed);
        let data = warnings.iter().filter_map(|warning| warning.data.as_ref());
        let mut told: Vec<_> = data.filter_map(|data| data.get("server")?.as_str()).collect();
        told.sort_unstable();
        assert_eq!(told, ["dies", "hangs", "is.dead", "is_missing"], "{}: {warnings:?}", agent.name);
        let reasons = warnings.iter().filter_map(|warning| warning.data.as_ref()?.get("reason")?.as_str());
        assert!(reasons.into_iter().all(|reason| reason.starts_with("did not start")), "{}: {warnings:?}", agent.name);
        let stderr = recording.result.stderr.as_deref().unwrap_or_default();
        assert!(!stderr.contains("] [DEBUG]"), "{}: {stderr}", agent.name);
    }
    Ok(())
}

/// The run must end before the model could answer.
async fn required(name: &str) -> Result<()> {
    for agent in AGENTS {
        let lab = agent.lab(agent.reply().text("Never to be said.").gate_before("answer")).await?;
        let mut asked = request(agent, &lab);
        let server = broken().into_iter().find(|(other, _)| *other == name);
        asked.mcp_servers.extend(server.map(|(name, server)| (name.to_owned(), server.required())));
        let live = lab.start(asked)?;
        let recording = tokio::time::timeout(BOUND * 2, live.finish()).await??;
        let failure = recording.failure()?;
        assert_eq!(failure.code, ErrorCode::Config, "{}: {failure:?}", agent.name);
        assert!(failure.message.contains(&format!("{name:?}")), "{}: {}", agent.name, failure.message.as_str());
        assert_eq!(recording.warnings(&WarningCode::McpServerFailed).len(), 1, "{}", agent.name);
        assert_eq!(recording.result.text, "", "{}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn a_required_server_that_dies_ends_the_run_and_is_named_on_every_agent() -> Result<()> {
    required("dies").await
}

#[tokio::test]
async fn a_required_server_whose_program_is_missing_ends_the_run_and_is_named_on_every_agent() -> Result<()> {
    required("is_missing").await
}

#[tokio::test]
async fn a_required_server_that_refuses_connections_ends_the_run_and_is_named() -> Result<()> {
    required("is.dead").await
}

#[tokio::test]
async fn a_required_server_that_hangs_ends_the_run_and_is_named_on_every_agent() -> Result<()> {
    required("hangs").await
}
