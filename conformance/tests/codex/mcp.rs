//! MCP servers on Codex. What is the same on all agents is in `all/mcp.rs`.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::RunRequest;
use teamster::json::RawJson;
use teamster::request::McpServer;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{full, shell, tool_then_text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

fn with_server(mut request: RunRequest, server: McpServer) -> RunRequest {
    request.mcp_servers.insert("calc".to_owned(), server);
    request.permissions.allow.push("mcp__calc".to_owned());
    request
}

/// The values are in the agent's environment, which its commands inherit.
#[tokio::test]
async fn the_models_commands_get_neither_the_secrets_of_servers_nor_our_log_level() -> Result<()> {
    let look = "test -n \"$CALC_TOKEN$RUST_LOG\" && echo leaked || echo hidden; printenv | grep s3cret";
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp__calc/add", json!({"a": 1, "b": 2})).tool("exec_command", shell(look)))
        .reply(Reply::new().text("Done."));
    let env = TestEnv::codex(scenario).await?;
    let server = McpServer::stdio(PROGRAM).env("CALC_TOKEN", "s3cret");
    let mut request = full(with_server(env.request("Add."), server));
    let web = McpServer::http("http://127.0.0.1:9").bearer_token("s3cret-token").header("x-key", "s3cret-key");
    request.mcp_servers.insert("web".to_owned(), web);
    let recording = env.run(request).await?;
    let outputs: Vec<&str> = recording.tools().iter().map(|(_, result)| result.output.trim()).collect();
    assert!(outputs.contains(&"3") && outputs.contains(&"hidden"), "{outputs:?}");
    Ok(())
}

#[tokio::test]
async fn an_image_is_an_mcp_content_block_and_a_denied_tool_is_not_offered() -> Result<()> {
    let env = TestEnv::codex(tool_then_text("mcp__calc/image", json!({}))).await?;
    let mut request = with_server(env.request("Draw."), McpServer::stdio(PROGRAM));
    // A denied tool is not offered to the model.
    request.permissions.deny.push("mcp__calc__fail".to_owned());
    let recording = env.run(request).await?;
    let offered = recording.requests[0].tools();
    assert!(
        offered.iter().any(|tool| tool.contains("image")) && !offered.iter().any(|tool| tool.contains("fail")),
        "{offered:?}"
    );
    let (_, result) = recording.only_tool()?;
    let content = result.content.as_ref().context("no blocks")?;
    let blocks = content.iter().map(RawJson::to_value).collect::<Result<Vec<_>, _>>()?;
    let image = blocks.iter().find(|block| block["type"] == "image").context("no image")?;
    assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBOR")));
    Ok(())
}

/// A server of the user that does not start does not delay a run with servers of its own.
#[tokio::test]
async fn a_server_of_the_users_that_fails_is_a_warning_too() -> Result<()> {
    let env = TestEnv::codex(tool_then_text("mcp__calc/add", json!({"a": 40, "b": 2}))).await?;
    let config = env.home().join(".codex/config.toml");
    let text = fs::read_to_string(&config)? + "\n[mcp_servers.theirs]\ncommand = \"/nonexistent\"\n";
    fs::write(&config, text)?;
    let recording = env.run(with_server(env.request("Add."), McpServer::stdio(PROGRAM))).await?;
    assert_eq!(recording.only_tool()?.1.output, "42");
    let warnings = recording.warnings(&teamster::event::WarningCode::McpServerFailed);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].data.clone().unwrap_or_default()["server"], "theirs");
    Ok(())
}
