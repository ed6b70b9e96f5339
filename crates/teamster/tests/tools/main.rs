//! Tests of served tools over HTTP, as an agent calls them.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod access;
mod calls;
mod context;
mod schemas;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::tools::{CallContext, JsonSchema, Reply, ServeError, ServedTools, Tool, ToolServer, schemars};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const BOUND: Duration = Duration::from_mins(1);

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn add() -> Tool {
    Tool::new("add", "Adds two numbers", |Add { a, b }: Add| async move {
        a.checked_add(b).map(|sum| format!("the sum is {sum}")).ok_or("the sum is too large")
    })
}

/// Returns a tool that never replies, whether it was called, and whether a call of it was dropped.
fn hanging() -> (Tool, Arc<AtomicBool>, Arc<AtomicBool>) {
    struct Gone(Arc<AtomicBool>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let (called, dropped) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
    let (starts, ends) = (Arc::clone(&called), Arc::clone(&dropped));
    let tool = Tool::new("hang", "Never replies", move |Nothing {}| {
        let (starts, gone) = (Arc::clone(&starts), Gone(Arc::clone(&ends)));
        async move {
            let _gone = gone;
            starts.store(true, Ordering::SeqCst);
            pending::<Result<Reply, String>>().await
        }
    });
    (tool, called, dropped)
}

async fn served(tool: Tool) -> ServedTools {
    ToolServer::new("calc").with(tool).instructions("Add with add.").serve().await.unwrap()
}

async fn until(flag: &AtomicBool) {
    let polls = async {
        while !flag.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(BOUND, polls).await.unwrap();
}

/// Returns the URL of the server and the header that it requires.
fn address(tools: &ServedTools) -> (String, String) {
    let server = tools.server();
    let endpoint = server.endpoint().unwrap();
    (endpoint.url.clone(), endpoint.all_headers()["Authorization"].clone())
}

/// Sends a request.
async fn send(tools: &ServedTools, extra: &str, body: &Value) -> TcpStream {
    let (url, _) = address(tools);
    let host = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let mut stream = TcpStream::connect(host).await.unwrap();
    let body = body.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2025-06-18\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{extra}\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    // A server that rejects a long body may close the connection while it is sent.
    let _closed = timeout(BOUND, stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn authorized(tools: &ServedTools) -> String {
    format!("Authorization: {}\r\n", address(tools).1)
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn call(tool: &str, arguments: &Value) -> Value {
    request("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// Sends a request with the token, and returns the response.
async fn response(tools: &ServedTools, body: &Value) -> Value {
    let text = rest(send(tools, &authorized(tools), body).await).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    messages.find(|message| message["id"] == 1).unwrap_or_else(|| panic!("no answer: {text}"))
}

async fn called(tool: Tool, name: &str, arguments: Value) -> (Value, bool) {
    let tools = served(tool).await;
    let result = response(&tools, &call(name, &arguments)).await["result"].clone();
    (result.clone(), result["isError"] == json!(true))
}
