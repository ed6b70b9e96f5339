//! MCP servers on Gemini CLI. What is the same on all agents is in `all/mcp.rs`.

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::request::{McpServer, ProjectTrust};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::{full, request, tool_then_text, user_settings};

const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

fn with(mut request: RunRequest, server: McpServer) -> RunRequest {
    request.mcp_servers.insert("calc".to_owned(), server);
    request.permissions.allow.push("mcp_calc_*".to_owned());
    request
}

#[tokio::test]
async fn a_server_that_the_cli_would_drop_silently_is_refused() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    assert!(env.start(with(request(&env, "Go."), McpServer::stdio(PROGRAM).env("LD_PRELOAD", "x.so"))).is_err());
    let mut untrusted = with(request(&env, "Go."), McpServer::stdio(PROGRAM));
    untrusted.project_trust = ProjectTrust::Untrusted;
    assert!(env.start(untrusted).is_err());
    Ok(())
}

/// The CLI would merge the fields of both.
#[tokio::test]
async fn a_server_of_the_users_with_the_same_name_is_replaced_as_a_whole() -> Result<()> {
    let env = TestEnv::gemini(tool_then_text("mcp_calc_slow", json!({"seconds": 0}))).await?;
    let user = json!({"mcpServers": {"calc": {"httpUrl": "http://127.0.0.1:9", "includeTools": ["add"]}}});
    user_settings(&env, &user.to_string())?;
    let recording = env.run(with(full(&env, "Go."), McpServer::stdio(PROGRAM))).await?;
    assert_eq!(recording.only_tool()?.1.output, "slept");
    Ok(())
}
