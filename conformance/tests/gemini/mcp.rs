//! Tools of MCP servers that the run brings along.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::RunRequest;
use teamster::event::{ToolKind, WarningCode};
use teamster::request::{McpServer, ProjectTrust};
use teamster_conformance::{BOUND, Lab};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{full, request, tool_then_text, user_settings};

fn stdio(args: &[&str], env: &[(&str, &str)]) -> McpServer {
    McpServer::Stdio {
        command: env!("CARGO_BIN_EXE_teamster-conformance-mcp-server").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// The server, and leave to use its tools.
fn with(mut request: RunRequest, server: McpServer) -> RunRequest {
    request.mcp_servers.insert("calc".to_owned(), server);
    request.permissions.allow.push("mcp_calc_*".to_owned());
    request
}

fn slow() -> Scenario {
    tool_then_text("mcp_calc_slow", json!({"seconds": 0}))
}

#[tokio::test]
async fn a_tool_of_a_process_is_told_with_its_server() -> Result<()> {
    let lab = Lab::gemini(slow()).await?;
    let run = lab.run(with(request(&lab, "Go."), stdio(&[], &[]))).await?;
    let (tool, result) = run.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind), (Some("calc"), "slow", &ToolKind::Mcp));
    assert_eq!((result.output.as_str(), result.is_error), ("slept", Some(false)));
    assert!(run.warnings(&WarningCode::McpServerFailed).is_empty());
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_not_allowed_is_not_used() -> Result<()> {
    let lab = Lab::gemini(slow()).await?;
    let mut asked = with(request(&lab, "Go."), stdio(&[], &[]));
    asked.permissions.allow.clear();
    let run = lab.run(asked).await?;
    assert_eq!(run.only_tool()?.1.is_error, Some(true));
    assert_eq!(run.result.permission_denials.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_tool_that_fails_says_what_the_server_said() -> Result<()> {
    let lab = Lab::gemini(tool_then_text("mcp_calc_fail", json!({}))).await?;
    let run = lab.run(with(request(&lab, "Go."), stdio(&[], &[]))).await?;
    let (_, result) = run.only_tool()?;
    assert_eq!((result.output.as_str(), result.is_error), ("it always fails", Some(true)));
    assert!(run.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_server_that_does_not_start_is_a_warning() -> Result<()> {
    let missing = McpServer::Stdio { command: "/nonexistent".to_owned(), args: Vec::new(), env: BTreeMap::new() };
    for server in [stdio(&["--exit-at-start"], &[]), missing] {
        let lab = Lab::gemini(Reply::new().text("Alone.")).await?;
        let run = lab.run(with(request(&lab, "Go."), server)).await?;
        assert_eq!(run.result.text, "Alone.");
        assert_eq!(run.warnings(&WarningCode::McpServerFailed).len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_hangs_does_not_hold_up_the_run_for_ever() -> Result<()> {
    let lab = Lab::gemini(Reply::new().text("Alone.")).await?;
    let mut asked = with(request(&lab, "Go."), stdio(&["--hang-at-start"], &[]));
    asked.limits.startup = std::time::Duration::from_secs(40);
    let run = lab.run(asked).await?;
    assert_eq!(run.result.text, "Alone.");
    assert_eq!(run.warnings(&WarningCode::McpServerFailed).len(), 1);
    Ok(())
}

/// The settings and the start of a server both put variables in the place of `$NAME`.
#[tokio::test]
async fn a_server_gets_its_secret_as_it_is_and_nobody_can_read_it_in_an_argv() -> Result<()> {
    const SECRET: &str = "s3cret $HOME ${PATH} $$ \\$x ${A:-b} \\ \"q\" 'q' #";
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp_calc_slow", json!({"seconds": 0})))
        .reply(Reply::new().text("Done.").gate_before("end"));
    let lab = Lab::gemini(scenario).await?;
    let live = lab.start(with(request(&lab, "Go."), stdio(&["--log", "$HOME.log"], &[("CALC_TOKEN", SECRET)])))?;
    lab.provider().gate("end").wait_reached(BOUND).await?;
    let server = live.trace().wait_for("teamster-conformance-mcp-server", BOUND).await?;
    let environment = fs::read(format!("/proc/{}/environ", server.pid))?;
    let mut entries = environment.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let found = entries.find(|entry| entry.starts_with("CALC_TOKEN=")).context("no token")?;
    assert_eq!(found, format!("CALC_TOKEN={SECRET}"));
    assert!(live.trace().processes().iter().all(|process| !process.command.contains("s3cret")));
    lab.provider().gate("end").open();
    live.finish().await?;
    assert!(lab.project().join("$HOME.log").exists(), "arguments are passed on as they are");
    Ok(())
}

#[tokio::test]
async fn a_server_behind_http_gets_its_headers() -> Result<()> {
    let server = McpHttp::start().await?;
    let lab = Lab::gemini(slow()).await?;
    let headers = [("authorization".to_owned(), "Bearer $HOME-s3cret".to_owned())].into();
    let run = lab.run(with(request(&lab, "Go."), McpServer::Http { url: server.url(), headers })).await?;
    assert_eq!(run.only_tool()?.1.output, "slept");
    let seen = server.requests();
    assert!(
        seen.iter().all(|request| request.headers.get("authorization").is_some_and(|it| it == "Bearer $HOME-s3cret"))
    );
    Ok(())
}

#[tokio::test]
async fn the_users_own_servers_stay() -> Result<()> {
    let lab = Lab::gemini(slow()).await?;
    let own = json!({"mcpServers": {"own": {"command": env!("CARGO_BIN_EXE_teamster-conformance-mcp-server")}}});
    let text = user_settings(&lab, &own.to_string())?;
    let mut asked = with(full(&lab, "Go."), stdio(&[], &[]));
    asked.permissions.allow.clear();
    let run = lab.run(asked).await?;
    let tools = run.requests[0].tools();
    assert!(tools.contains(&"mcp_own_slow") && tools.contains(&"mcp_calc_slow"), "{tools:?}");
    assert_eq!(fs::read_to_string(lab.home().join(".gemini/settings.json"))?, text);
    Ok(())
}

#[tokio::test]
async fn what_the_cli_would_drop_without_a_word_is_refused() -> Result<()> {
    let lab = Lab::gemini(Reply::new().text("never said")).await?;
    assert!(lab.start(with(request(&lab, "Go."), stdio(&[], &[("LD_PRELOAD", "x.so")]))).is_err());
    let mut untrusted = with(request(&lab, "Go."), stdio(&[], &[]));
    untrusted.project_trust = ProjectTrust::Untrusted;
    assert!(lab.start(untrusted).is_err());
    Ok(())
}
