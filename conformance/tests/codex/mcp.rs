//! Tools of MCP servers that the run brings along.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::{ErrorCode, ToolKind};
use teamster::request::McpServer;
use teamster_conformance::{BOUND, Lab};
use teamster_testkit::mcp_fixture::McpHttp;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{full, shell, tool_then_text};

const SECRET: &str = "s3cret-of-the-calculator";

fn stdio(args: &[&str]) -> McpServer {
    stdio_with(args, &[])
}

fn stdio_with(args: &[&str], env: &[(&str, &str)]) -> McpServer {
    let env: BTreeMap<_, _> = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    McpServer::Stdio {
        command: env!("CARGO_BIN_EXE_teamster-conformance-mcp-server").to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env,
    }
}

fn with_server(mut request: RunRequest, name: &str, server: McpServer) -> RunRequest {
    request.mcp_servers.insert(name.to_owned(), server);
    request.permissions.allow.push(format!("mcp__{name}"));
    request
}

fn add() -> Scenario {
    tool_then_text("mcp__calc/add", json!({"a": 40, "b": 2}))
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
async fn a_tool_of_a_process_is_told_with_its_server() -> Result<()> {
    let lab = Lab::codex(add()).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&[]))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str(), &tool.kind), (Some("calc"), "add", &ToolKind::Mcp));
    assert_eq!(tool.input, json!({"a": 40, "b": 2}));
    assert_eq!(result.output, "42");
    assert_eq!(result.is_error, Some(false));
    assert!(recording.requests[1].tool_results()[0].output.contains("42"));
    Ok(())
}

#[tokio::test]
async fn a_tool_that_nobody_allowed_is_refused_and_one_rule_allows_one_tool() -> Result<()> {
    for (rule, refused) in [(None, true), (Some("mcp__calc__add"), false), (Some("mcp__calc__fail"), true)] {
        let lab = Lab::codex(add()).await?;
        let mut request = lab.request("Add.");
        request.mcp_servers.insert("calc".to_owned(), stdio(&[]));
        request.permissions.allow = rule.map(str::to_owned).into_iter().collect();
        let recording = lab.run(request).await?;
        let (tool, result) = recording.only_tool()?;
        assert_eq!(result.is_error, Some(refused), "{rule:?}: {}", result.output);
        let denials = recording.result.permission_denials.iter();
        let denied: Vec<_> = denials.filter_map(|denial| denial.tool_id.as_ref()).collect();
        assert_eq!(denied, if refused { vec![&tool.tool_id] } else { Vec::new() });
        assert_eq!(recording.result.final_text, "Done.");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_gets_its_secret_and_neither_an_argv_nor_the_models_commands_have_it() -> Result<()> {
    let look = "test -n \"$CALC_TOKEN\" && echo leaked || echo hidden";
    let scenario = Scenario::new()
        .reply(Reply::new().tool("mcp__calc/add", json!({"a": 1, "b": 2})).tool("exec_command", shell(look)))
        .reply(Reply::new().text("Done.").gate_before("end"));
    let lab = Lab::codex(scenario).await?;
    let marker = "calc-of-this-test";
    let server = stdio_with(&["--log", &lab.home().join(marker).to_string_lossy()], &[("CALC_TOKEN", SECRET)]);
    let live = lab.start(full(with_server(lab.request("Add."), "calc", server)))?;
    lab.provider().gate("end").wait_reached(BOUND).await?;

    // A server has hardly any environment: not the trace's variable.
    let processes = fs::read_dir("/proc")?.flatten().map(|entry| entry.path());
    let server = processes
        .filter(|folder| {
            let command = fs::read(folder.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).into_owned();
            command.starts_with(env!("CARGO_BIN_EXE_teamster-conformance-mcp-server")) && command.contains(marker)
        })
        .find(|folder| {
            let folder = fs::read(folder.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&folder).contains(&*lab.home().to_string_lossy())
        })
        .context("the server is not there")?;
    let environment = fs::read(server.join("environ"))?;
    assert!(String::from_utf8_lossy(&environment).contains(&format!("CALC_TOKEN={SECRET}")));
    assert!(!all_arguments()?.contains(SECRET));

    lab.provider().gate("end").open();
    let recording = live.finish().await?;
    let outputs: Vec<&str> = recording.tools().iter().map(|(_, result)| result.output.trim()).collect();
    assert!(outputs.contains(&"hidden") && !outputs.contains(&"leaked"), "{outputs:?}");
    assert!(!server.exists(), "the server outlives the run");
    Ok(())
}

#[tokio::test]
async fn a_server_behind_http_gets_its_header() -> Result<()> {
    let server = McpHttp::setup().require_header("x-lab-key", SECRET).start().await?;
    let lab = Lab::codex(
        Scenario::new()
            .reply(Reply::new().tool("mcp__calc/add", json!({"a": 40, "b": 2})))
            .reply(Reply::new().text("Done.").gate_before("end")),
    )
    .await?;
    let headers = [("x-lab-key".to_owned(), SECRET.to_owned())].into();
    let live = lab.start(with_server(lab.request("Add."), "calc", McpServer::Http { url: server.url(), headers }))?;
    lab.provider().gate("end").wait_reached(BOUND).await?;
    assert!(!all_arguments()?.contains(SECRET));
    lab.provider().gate("end").open();
    let recording = live.finish().await?;
    assert_eq!(recording.only_tool()?.1.output, "42");
    assert_eq!(server.calls().len(), 1);
    assert!(server.requests().iter().all(|request| !request.refused));
    Ok(())
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_of_the_call() -> Result<()> {
    let lab = Lab::codex(tool_then_text("mcp__calc/fail", json!({}))).await?;
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
    let lab = Lab::codex(tool_then_text("mcp__calc/image", json!({}))).await?;
    let recording = lab.run(with_server(lab.request("Draw."), "calc", stdio(&[]))).await?;
    let (_, result) = recording.only_tool()?;
    let content = result.content.as_ref().context("no blocks")?;
    let image = content.iter().find(|block| block["type"] == "image").context("no image")?;
    assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBOR")));
    Ok(())
}

/// By itself the agent leaves such a server out without a word.
#[tokio::test]
async fn a_server_that_does_not_start_fails_the_run_and_is_named() -> Result<()> {
    let lab = Lab::codex(Reply::new().text("Without it then.")).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--exit-at-start"]))).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
    assert!(recording.failure()?.message.contains("calc"), "{}", recording.failure()?.message);
    assert!(recording.requests.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_the_call_only() -> Result<()> {
    let lab = Lab::codex(add()).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--die-on-call"]))).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

#[tokio::test]
async fn the_first_turn_waits_for_a_slow_server() -> Result<()> {
    let lab = Lab::codex(add()).await?;
    let recording = lab.run(with_server(lab.request("Add."), "calc", stdio(&["--start-delay-ms", "3500"]))).await?;
    assert_eq!(recording.only_tool()?.1.output, "42");
    Ok(())
}

#[tokio::test]
async fn a_server_keeps_its_name_whatever_the_agent_makes_of_it() -> Result<()> {
    let lab = Lab::codex(tool_then_text("mcp__my_calc/add", json!({"a": 40, "b": 2}))).await?;
    let recording = lab.run(with_server(lab.request("Add."), "my.calc", stdio(&[]))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.server.as_deref(), tool.tool_name.as_str()), (Some("my.calc"), "add"));
    assert_eq!(result.output, "42");
    Ok(())
}

#[tokio::test]
async fn the_users_own_servers_and_files_stay_as_they_are() -> Result<()> {
    let lab = Lab::codex(tool_then_text("mcp__own/add", json!({"a": 40, "b": 2}))).await?;
    let config = lab.home().join(".codex/config.toml");
    let McpServer::Stdio { command, .. } = stdio(&[]) else { unreachable!() };
    let own = format!("\n[mcp_servers.own]\ncommand = {}\n", Value::from(command));
    let text = fs::read_to_string(&config)? + &own;
    fs::write(&config, &text)?;
    let recording = lab.run(full(with_server(lab.request("Add."), "calc", stdio(&[])))).await?;
    assert_eq!(recording.only_tool()?.0.server.as_deref(), Some("own"));
    assert_eq!(recording.only_tool()?.1.output, "42");
    assert_eq!(fs::read_to_string(&config)?, text);
    Ok(())
}
