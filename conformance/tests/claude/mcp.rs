//! MCP servers on Claude Code. What is the same on all agents is in `all/mcp.rs`.

use anyhow::{Context, Result};
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ErrorCode, WarningCode};
use teamster::json::RawJson;
use teamster::request::{McpServer, OutputMode};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::tool_then_text;

fn with_server(mut request: RunRequest, args: &[&str]) -> RunRequest {
    let server = McpServer::stdio(env!("CARGO_BIN_EXE_teamster-conformance-mcp-server")).args(args.iter().copied());
    request.mcp_servers.insert("calc".to_owned(), server);
    request.permissions.allow.push("mcp__calc".to_owned());
    request
}

#[tokio::test]
async fn an_image_is_an_mcp_content_block() -> Result<()> {
    let env = TestEnv::claude(tool_then_text("mcp__calc__image", json!({}))).await?;
    let recording = env.run(with_server(env.request("Draw."), &[])).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.output, "see the image");
    let content = result.content.as_ref().context("no blocks")?;
    let blocks = content.iter().map(RawJson::to_value).collect::<Result<Vec<_>, _>>()?;
    let image = blocks.iter().find(|block| block["type"] == "image").context("no image")?;
    assert_eq!(image["mimeType"], "image/png");
    assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBOR")));
    Ok(())
}

#[tokio::test]
async fn a_server_and_a_schema_work_together() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp__calc__add", json!({"a": 40, "b": 2})))
        .reply(Reply::new().tool("StructuredOutput", json!({"answer": 42})))
        .reply(Reply::new().text("There."));
    let env = TestEnv::claude(scenario).await?;
    let mut request = with_server(env.request("Add."), &["--start-delay-ms", "1000"]);
    request.schema = Some(json!({"type": "object", "properties": {"answer": {"type": "integer"}}}));
    let recording = env.run(request).await?;
    assert_eq!(recording.prompts(0)?, ["Add."]);
    assert_eq!(recording.tools()[0].1.output, "42");
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42}).into()));
    Ok(())
}

#[tokio::test]
async fn a_batch_reports_failed_servers_too() -> Result<()> {
    for required in [false, true] {
        let env = TestEnv::claude(Reply::new().text("Without it then.")).await?;
        let mut request = with_server(env.request("Add."), &["--exit-at-start"]);
        request.output = OutputMode::Batch;
        if let Some(server) = request.mcp_servers.get_mut("calc") {
            server.required = required;
        }
        let recording = env.run(request).await?;
        assert_eq!(recording.warnings(&WarningCode::McpServerFailed).len(), 1);
        let expected = if required { (Some(ErrorCode::Config), "") } else { (None, "Without it then.") };
        assert_eq!((recording.result.error_code, recording.result.text.as_str()), expected);
    }
    Ok(())
}
