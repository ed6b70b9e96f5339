//! Tools of MCP servers that the run brings along.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ToolKind, WarningCode};
use teamster::request::McpServer;
use teamster_conformance::{BOUND, Lab};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::Scenario;

use crate::{reply, tool_then_text};

const SECRET: &str = " s3cret {env:HOME} \"of\" the $& calculator";

fn stdio(args: &[&str]) -> McpServer {
    McpServer::Stdio {
        command: env!("CARGO_BIN_EXE_teamster-conformance-mcp-server").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
    }
}

fn with_server(mut request: RunRequest, name: &str, server: McpServer) -> RunRequest {
    request.mcp_servers.insert(name.to_owned(), server);
    request.permissions.allow.push("*calc_*".to_owned());
    request
}

/// The arguments of every process of this machine.
fn all_arguments() -> Result<String> {
    let processes = fs::read_dir("/proc")?.flatten();
    Ok(processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|arguments| String::from_utf8_lossy(&arguments).into_owned())
        .collect())
}

#[tokio::test]
async fn a_tool_of_a_process_is_told_with_its_server_whatever_the_agent_makes_of_the_name() -> Result<()> {
    for (server, wire) in [("calc", "calc_add"), ("my.calc", "my_calc_add")] {
        let lab = Lab::opencode(tool_then_text(wire, json!({"a": 40, "b": 2}))).await?;
        let recording = lab.run(with_server(lab.request("Add."), server, stdio(&[]))).await?;
        let (tool, result) = recording.only_tool()?;
        assert_eq!(
            (tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind),
            (Some(server), "add", &ToolKind::Mcp)
        );
        assert_eq!((result.output.as_str(), result.is_error), ("42", Some(false)));
        assert!(recording.warnings(&WarningCode::McpServerFailed).is_empty());
    }
    Ok(())
}

#[tokio::test]
async fn a_server_gets_its_secret_and_nobody_can_read_it_in_an_argv() -> Result<()> {
    let scenario = Scenario::new()
        .reply(reply().tool("calc_add", json!({"a": 1, "b": 2})))
        .reply(reply().text("Done.").gate_before("end"));
    let lab = Lab::opencode(scenario).await?;
    let McpServer::Stdio { command, args, .. } = stdio(&[]) else { unreachable!() };
    let env = [("CALC_TOKEN".to_owned(), SECRET.to_owned())].into();
    let request = with_server(lab.request("Add."), "calc", McpServer::Stdio { command, args, env });
    let live = lab.start(request)?;
    lab.provider().gate("end").wait_reached(BOUND).await?;
    let server = live.trace().wait_for("teamster-conformance-mcp-server", BOUND).await?;
    let environment = fs::read(format!("/proc/{}/environ", server.pid))?;
    assert!(String::from_utf8_lossy(&environment).contains(&format!("CALC_TOKEN={SECRET}\0")));
    assert!(!all_arguments()?.contains("s3cret"));
    lab.provider().gate("end").open();
    live.finish().await?;
    Ok(())
}

#[tokio::test]
async fn a_server_behind_http_gets_its_header() -> Result<()> {
    let server = McpHttp::setup().require_header("x-lab-key", "s3cret").start().await?;
    let lab = Lab::opencode(tool_then_text("calc_add", json!({"a": 40, "b": 2}))).await?;
    let headers = [("x-lab-key".to_owned(), "s3cret".to_owned())].into();
    let request = with_server(lab.request("Add."), "calc", McpServer::Http { url: server.url(), headers });
    let recording = lab.run(request).await?;
    assert_eq!(recording.only_tool()?.1.output, "42");
    assert_eq!(server.calls().len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_of_the_call() -> Result<()> {
    let lab = Lab::opencode(tool_then_text("calc_fail", json!({}))).await?;
    let recording = lab.run(with_server(lab.request("Fail."), "calc", stdio(&[]))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("it always fails"), "{}", result.output);
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_warning_and_the_run_goes_on() -> Result<()> {
    let lab = Lab::opencode(reply().text("Without it then.")).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--exit-at-start"]))).await?;
    let warnings = recording.warnings(&WarningCode::McpServerFailed);
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].data.clone().unwrap_or_default()["server"], "calc");
    assert_eq!(recording.result.text, "Without it then.");
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_tool_that_nobody_allowed_is_refused() -> Result<()> {
    let lab = Lab::opencode(tool_then_text("calc_add", json!({"a": 40, "b": 2}))).await?;
    let mut request = with_server(lab.request("Add."), "calc", stdio(&[]));
    request.permissions.allow.clear();
    let recording = lab.run(request).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.permission_denials.len(), 1);
    Ok(())
}
