//! The MCP server as an agent uses it: as a process over stdio, and over HTTP.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use teamster_testkit::mcp_fixture::{McpHttp, StdioFlags, executable};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const BOUND: Duration = Duration::from_secs(20);

struct Server {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(flags: &[&str]) -> Result<Self> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_teamster-mcp-fixture"))
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let input = child.stdin.take().context("its stdin")?;
        let output = child.stdout.take().context("its stdout")?;
        Ok(Self { child, input, output: BufReader::new(output).lines() })
    }

    async fn send(&mut self, message: &Value) -> Result<()> {
        Ok(self.input.write_all(format!("{message}\n").as_bytes()).await?)
    }

    async fn read(&mut self) -> Result<Value> {
        let line = tokio::time::timeout(BOUND, self.output.next_line()).await??;
        Ok(serde_json::from_str(&line.context("the server ended")?)?)
    }

    async fn ended(mut self) -> Result<ExitStatus> {
        drop(self.input);
        Ok(tokio::time::timeout(BOUND, self.child.wait()).await??)
    }
}

fn call(id: u32, tool: &str, arguments: &Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": {"progressToken": id}},
    })
}

#[tokio::test]
async fn it_initializes_lists_its_tools_and_answers_calls() -> Result<()> {
    let mut server = Server::start(&[])?;
    server.send(&json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})).await?;
    assert_eq!(server.read().await?["result"]["protocolVersion"], "2025-11-25");
    server.send(&json!({"method": "notifications/initialized"})).await?;
    server.send(&json!({"id": 1, "method": "tools/list"})).await?;
    let tools = server.read().await?["result"]["tools"].clone();
    let names: Vec<_> = tools.as_array().context("a list")?.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add", "fail", "image", "slow", "approve"]);
    server.send(&call(2, "add", &json!({"a": 2, "b": 40}))).await?;
    assert_eq!(server.read().await?["result"]["content"][0]["text"], "42");
    server.send(&call(3, "fail", &json!({}))).await?;
    assert_eq!(server.read().await?["result"]["isError"], true);
    server.send(&call(4, "image", &json!({}))).await?;
    assert_eq!(server.read().await?["result"]["content"][1]["mimeType"], "image/png");
    server.send(&json!({"id": 5, "method": "nothing/known"})).await?;
    assert_eq!(server.read().await?["error"]["code"], -32601);
    assert!(server.ended().await?.success());
    Ok(())
}

#[tokio::test]
async fn it_answers_other_requests_while_a_slow_call_runs() -> Result<()> {
    let mut server = Server::start(&[])?;
    server.send(&call(1, "slow", &json!({"seconds": 1}))).await?;
    server.send(&json!({"id": 2, "method": "ping"})).await?;
    assert_eq!(server.read().await?["id"], 2);
    let progress = server.read().await?;
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], 1);
    assert_eq!(server.read().await?["id"], 1);
    Ok(())
}

#[tokio::test]
async fn it_simulates_a_crash_at_the_requested_point() -> Result<()> {
    let server = Server::start(&["--exit-at-start"])?;
    assert_eq!(server.ended().await?.code(), Some(7));

    let mut server = Server::start(&["--die-on-call"])?;
    server.send(&json!({"id": 1, "method": "ping"})).await?;
    assert_eq!(server.read().await?["id"], 1);
    server.send(&call(2, "add", &json!({"a": 1, "b": 1}))).await?;
    assert!(server.read().await.is_err());
    assert_eq!(server.ended().await?.code(), Some(7));
    Ok(())
}

#[tokio::test]
async fn a_server_that_hangs_answers_nothing_and_outlives_its_input() -> Result<()> {
    let Server { mut child, mut input, output } = Server::start(&["--hang-at-start"])?;
    input.write_all(b"{\"id\":1,\"method\":\"ping\"}\n").await?;
    drop(input);
    let silence = Duration::from_millis(200);
    assert!(tokio::time::timeout(silence, child.wait()).await.is_err());
    drop(output);
    child.kill().await?;
    Ok(())
}

#[tokio::test]
async fn it_logs_its_start_and_every_message() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("mcp.log");
    let path = log.to_str().context("a path of text")?;
    let mut server = Server::start(&["--start-delay-ms", "1", "--deny", "--log", path])?;
    server.send(&call(1, "approve", &json!({"tool_name": "Bash", "input": {}}))).await?;
    let verdict = server.read().await?["result"]["content"][0]["text"].to_string();
    assert!(verdict.contains("deny"), "{verdict}");
    server.ended().await?;
    let lines: Vec<Value> =
        std::fs::read_to_string(log)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(lines[0]["args"][2], "--deny");
    assert!(lines[0]["envNames"].as_array().is_some_and(|names| names.contains(&json!("PATH"))));
    assert_eq!(lines[1]["params"]["name"], "approve");
    Ok(())
}

#[test]
fn an_invalid_flag_is_rejected() {
    for args in [&["--sing"][..], &["--start-delay-ms", "soon"], &["--log"]] {
        let args = args.iter().map(|arg| (*arg).to_owned());
        assert!(StdioFlags::parse(args).is_err());
    }
}

#[test]
fn the_binary_is_found_from_a_test() -> Result<()> {
    let found = executable()?.canonicalize()?;
    assert_eq!(found, std::path::Path::new(env!("CARGO_BIN_EXE_teamster-mcp-fixture")).canonicalize()?);
    Ok(())
}

async fn exchange(server: &McpHttp, method: &str, token: &str, message: &Value) -> Result<(u16, Value)> {
    let url = server.url();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp"));
    let address = address.context("an http URL")?;
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", address)
        .header("Authorization", token)
        .body(Full::new(Bytes::from(message.to_string())))?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    connection.abort();
    Ok((head.status.as_u16(), serde_json::from_slice(&body).unwrap_or_default()))
}

#[tokio::test]
async fn over_http_it_answers_in_json_and_records_the_calls() -> Result<()> {
    let server = McpHttp::start().await?;
    let hello = json!({"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}});
    let (status, answer) = exchange(&server, "POST", "", &hello).await?;
    assert_eq!((status, &answer["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    let notification = json!({"method": "notifications/initialized"});
    assert_eq!(exchange(&server, "POST", "", &notification).await?.0, 202);
    assert_eq!(exchange(&server, "GET", "", &Value::Null).await?.0, 405);
    let add = call(1, "add", &json!({"a": 1, "b": 2.5}));
    let (_, answer) = exchange(&server, "POST", "", &add).await?;
    assert_eq!(answer["result"]["content"][0]["text"], "3.5");
    let recorded = server.wait_for_call(1, BOUND).await?;
    assert_eq!((recorded.tool.as_str(), &recorded.arguments["b"]), ("add", &json!(2.5)));
    assert_eq!(server.requests().len(), 4);
    assert!(server.wait_for_call(2, Duration::from_millis(1)).await.is_err());
    server.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn over_http_a_request_without_the_required_header_is_rejected() -> Result<()> {
    let setup = McpHttp::setup().require_header("Authorization", "Bearer right");
    let server = setup.start().await?;
    let add = call(1, "add", &json!({"a": 1, "b": 2}));
    assert_eq!(exchange(&server, "POST", "Bearer wrong", &add).await?.0, 401);
    assert_eq!(server.calls(), []);
    assert_eq!(exchange(&server, "POST", "Bearer right", &add).await?.0, 200);
    assert_eq!(server.calls().len(), 1);
    assert!(server.requests()[0].rejected);
    Ok(())
}
