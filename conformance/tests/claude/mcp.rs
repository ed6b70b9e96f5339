//! Tools of MCP servers that the run brings along.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ToolKind, WarningCode};
use teamster::request::McpServer;
use teamster_conformance::{BOUND, Lab};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{Reply, Scenario};

use crate::tool_then_text;

const SECRET: &str = "s3cret-of-the-calculator";

fn stdio(args: &[&str]) -> McpServer {
    McpServer::Stdio {
        command: env!("CARGO_BIN_EXE_teamster-conformance-mcp-server").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
    }
}

fn with_server(mut request: RunRequest, name: &str, server: McpServer) -> RunRequest {
    request.mcp_servers.insert(name.to_owned(), server);
    request.permissions.allow.push(format!("mcp__{name}"));
    request
}

fn add() -> Scenario {
    tool_then_text("mcp__calc__add", json!({"a": 40, "b": 2}))
}

/// The arguments of every process of this machine.
fn all_arguments() -> Result<String> {
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|arguments| String::from_utf8_lossy(&arguments).into_owned())
        .collect())
}

fn log_of(path: &Path) -> Result<Vec<Value>> {
    fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

#[tokio::test]
async fn a_tool_of_a_process_is_told_with_its_server() -> Result<()> {
    let lab = Lab::claude(add()).await?;
    let log = lab.home().join("mcp.log");
    let request = with_server(lab.request("Add."), "calc", stdio(&["--log", &log.to_string_lossy()]));
    let recording = lab.run(request).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind), (Some("calc"), "add", &ToolKind::Mcp));
    assert_eq!(tool.input, json!({"a": 40, "b": 2}));
    assert_eq!(result.output, "42");
    assert!(recording.requests[0].tools().contains(&"mcp__calc__add"));
    assert!(log_of(&log)?.iter().any(|message| message["method"] == "tools/call"));
    assert!(recording.warnings(&WarningCode::McpServerFailed).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_server_gets_its_secret_and_nobody_can_read_it_in_an_argv() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp__calc__add", json!({"a": 1, "b": 2})))
        .reply(Reply::new().text("Done.").gate_before("end"));
    let lab = Lab::claude(scenario).await?;
    let McpServer::Stdio { command, args, .. } = stdio(&[]) else { unreachable!() };
    let env = [("CALC_TOKEN".to_owned(), SECRET.to_owned())].into();
    let request = with_server(lab.request("Add."), "calc", McpServer::Stdio { command, args, env });
    let live = lab.start(request)?;
    lab.provider().gate("end").wait_reached(BOUND).await?;

    let server = live.trace().wait_for("teamster-conformance-mcp-server", BOUND).await?;
    let environment = fs::read(format!("/proc/{}/environ", server.pid))?;
    assert!(String::from_utf8_lossy(&environment).contains(&format!("CALC_TOKEN={SECRET}")));
    assert!(!all_arguments()?.contains(SECRET));

    lab.provider().gate("end").open();
    live.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_server_behind_http_gets_its_header() -> Result<()> {
    let server = McpHttp::setup().require_header("x-lab-key", SECRET).start().await?;
    let lab = Lab::claude(
        Scenario::new()
            .reply(Reply::new().tool("mcp__calc__add", json!({"a": 40, "b": 2})))
            .reply(Reply::new().text("Done.").gate_before("end")),
    )
    .await?;
    let headers = [("x-lab-key".to_owned(), SECRET.to_owned())].into();
    let request = with_server(lab.request("Add."), "calc", McpServer::Http { url: server.url(), headers });
    let live = lab.start(request)?;
    lab.provider().gate("end").wait_reached(BOUND).await?;
    assert!(!all_arguments()?.contains(SECRET));
    lab.provider().gate("end").open();
    let recording = live.finish().await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("calc"), "add"));
    assert_eq!(result.output, "42");
    assert_eq!(server.calls().len(), 1);
    assert!(server.requests().iter().all(|request| !request.refused));
    Ok(())
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_of_the_call() -> Result<()> {
    let lab = Lab::claude(tool_then_text("mcp__calc__fail", json!({}))).await?;
    let recording = lab.run(with_server(lab.request("Fail."), "calc", stdio(&[]))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("calc"), "fail"));
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("it always fails"), "{}", result.output);
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn an_image_comes_as_a_block_of_mcp() -> Result<()> {
    let lab = Lab::claude(tool_then_text("mcp__calc__image", json!({}))).await?;
    let recording = lab.run(with_server(lab.request("Draw."), "calc", stdio(&[]))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.output, "see the image");
    let content = result.content.as_ref().context("no blocks")?;
    let image = content.iter().find(|block| block["type"] == "image").context("no image")?;
    assert_eq!(image["mimeType"], "image/png");
    assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBOR")));
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_warning_and_the_run_goes_on() -> Result<()> {
    let lab = Lab::claude(Reply::new().text("Without it then.")).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--exit-at-start"]))).await?;
    let warnings = recording.warnings(&WarningCode::McpServerFailed);
    assert_eq!(warnings.len(), 1);
    let data = warnings[0].data.clone().unwrap_or_default();
    assert_eq!((&data["server"], &data["status"]), (&json!("calc"), &json!("failed")));
    assert_eq!(recording.result.text, "Without it then.");
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_the_call_only() -> Result<()> {
    let lab = Lab::claude(add()).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--die-on-call"]))).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

#[tokio::test]
async fn a_server_and_a_schema_go_together() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp__calc__add", json!({"a": 40, "b": 2})))
        .reply(Reply::new().tool("StructuredOutput", json!({"answer": 42})))
        .reply(Reply::new().text("There."));
    let lab = Lab::claude(scenario).await?;
    let mut request = with_server(lab.request("Add."), "calc", stdio(&["--start-delay-ms", "1000"]));
    request.schema = Some(json!({"type": "object", "properties": {"answer": {"type": "integer"}}}));
    let recording = lab.run(request).await?;
    assert_eq!(recording.prompts(0)?, ["Add."]);
    assert_eq!(recording.tools()[0].1.output, "42");
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42})));
    Ok(())
}

#[tokio::test]
async fn the_first_turn_waits_for_a_slow_server() -> Result<()> {
    let lab = Lab::claude(add()).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--start-delay-ms", "3500"]))).await?;
    assert!(recording.requests[0].tools().contains(&"mcp__calc__add"));
    assert_eq!(recording.only_tool()?.1.output, "42");
    Ok(())
}

#[tokio::test]
async fn a_server_keeps_its_name_whatever_the_agent_makes_of_it() -> Result<()> {
    let lab = Lab::claude(tool_then_text("mcp__my_calc__add", json!({"a": 40, "b": 2}))).await?;
    let mut request = lab.request("Add.");
    request.mcp_servers.insert("my.calc".to_owned(), stdio(&[]));
    request.permissions.allow.push("mcp__my_calc".to_owned());
    let recording = lab.run(request).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("my.calc"), "add"));
    assert_eq!(result.output, "42");
    Ok(())
}
