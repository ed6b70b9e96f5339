//! The server over streamable HTTP, inside the process of the test. It answers in JSON and offers no stream of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::Value;
use thiserror::Error;
use tokio::sync::watch;

use super::rpc::{Decision, Step, called_tool, step};
use crate::server::{LocalServer, headers_by_name};

const PATH: &str = "/mcp";
const SESSION: &str = "teamster-mcp-fixture-session";
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A running MCP server. It ends with its value.
///
/// ```
/// use teamster_testkit::mcp_fixture::McpHttp;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let server = McpHttp::setup().require_header("authorization", "Bearer t0ken").start().await?;
/// println!(r#"{{"mcpServers": {{"calc": {{"type": "http", "url": "{}"}}}}}}"#, server.url());
/// assert!(server.calls().is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct McpHttp {
    desk: Arc<Desk>,
    server: LocalServer,
}

/// A server that is not running yet.
#[derive(Debug, Clone, Default)]
pub struct McpHttpSetup {
    required: Option<(String, String)>,
    decision: Decision,
}

/// A request to the server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpRequest {
    /// The HTTP method, in capital letters.
    pub method: String,
    /// All headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// The JSON-RPC message, or null where there was none.
    pub message: Value,
    /// Whether it was turned away because it lacked the required header.
    pub refused: bool,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// The call that was waited for has not come in time.
#[derive(Debug, Error)]
#[error("waited {bound:?} for call {number} of an MCP tool in vain; there were {calls}")]
pub struct McpWaitError {
    number: usize,
    bound: Duration,
    calls: usize,
}

#[derive(Debug)]
struct Desk {
    setup: McpHttpSetup,
    requests: watch::Sender<Vec<Arc<McpRequest>>>,
}

impl McpHttp {
    /// Starts a server that lets everyone in.
    pub async fn start() -> io::Result<Self> {
        Self::setup().start().await
    }

    /// A server to be set up.
    pub fn setup() -> McpHttpSetup {
        McpHttpSetup::default()
    }

    /// The URL for the agent's configuration.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.server.address())
    }

    /// All requests so far, the refused ones included.
    pub fn requests(&self) -> Vec<Arc<McpRequest>> {
        self.desk.requests.borrow().clone()
    }

    /// The calls of tools so far.
    pub fn calls(&self) -> Vec<McpCall> {
        calls(&self.desk.requests.borrow())
    }

    /// Waits for the call with this number, which counts from one.
    pub async fn wait_for_call(&self, number: usize, bound: Duration) -> Result<McpCall, McpWaitError> {
        let mut requests = self.desk.requests.subscribe();
        let came = requests.wait_for(|requests| calls(requests).len() >= number);
        // Whether it came is told by the calls themselves.
        let _came_or_not = tokio::time::timeout(bound, came).await.is_ok();
        let calls = self.calls();
        calls.get(number.saturating_sub(1)).cloned().ok_or(McpWaitError { number, bound, calls: calls.len() })
    }

    /// Stops, and returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
    }
}

impl McpHttpSetup {
    /// Turns away (401) every request without this header.
    #[must_use]
    pub fn require_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.required = Some((name.into().to_ascii_lowercase(), value.into()));
        self
    }

    /// Sets what the tool `approve` says.
    #[must_use]
    pub fn decision(mut self, decision: Decision) -> Self {
        self.decision = decision;
        self
    }

    /// Starts the server on a free port.
    pub async fn start(self) -> io::Result<McpHttp> {
        let desk = Arc::new(Desk { setup: self, requests: watch::Sender::default() });
        let router = Router::new()
            .route(PATH, any(exchange))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&desk));
        let server = LocalServer::start(router).await?;
        Ok(McpHttp { desk, server })
    }
}

fn calls(requests: &[Arc<McpRequest>]) -> Vec<McpCall> {
    requests
        .iter()
        .filter(|request| !request.refused)
        .filter_map(|request| {
            let arguments = request.message.pointer("/params/arguments");
            Some(McpCall {
                tool: called_tool(&request.message)?.to_owned(),
                arguments: arguments.cloned().unwrap_or_default(),
            })
        })
        .collect()
}

async fn exchange(State(desk): State<Arc<Desk>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    let headers = headers_by_name(&headers);
    let refused = match &desk.setup.required {
        Some((name, value)) => headers.get(name) != Some(value),
        None => false,
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let request = Arc::new(McpRequest { method: method.to_string(), headers, message, refused });
    desk.requests.send_modify(|requests| requests.push(Arc::clone(&request)));
    if refused {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if method == Method::DELETE {
        return StatusCode::OK.into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match step(&request.message, desk.setup.decision) {
        Step::Nothing => StatusCode::ACCEPTED.into_response(),
        Step::Answer(answer) => answer_json(&answer),
        Step::Slow(slow) => {
            tokio::time::sleep(slow.takes).await;
            answer_json(&slow.answer)
        }
    }
}

fn answer_json(answer: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("mcp-session-id"), HeaderValue::from_static(SESSION)),
    ];
    (headers, answer.to_string()).into_response()
}
