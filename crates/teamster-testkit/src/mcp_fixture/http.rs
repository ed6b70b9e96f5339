//! The server over streamable HTTP, in the test process. It responds in JSON and offers no stream
//! of its own.

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

use super::rpc::{Decision, RpcResponse, called_tool, handle_message};
use crate::server::{LocalServer, headers_by_name};

const PATH: &str = "/mcp";
const SESSION: &str = "teamster-mcp-fixture-session";
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// A running MCP server. Dropping it stops the server.
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
    state: Arc<ServerState>,
    server: LocalServer,
}

/// A server that has not been started.
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
    /// The JSON-RPC message, or null if there was none.
    pub message: Value,
    /// Whether the request was rejected because it lacked the required header.
    pub rejected: bool,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct McpCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
}

/// The awaited call did not arrive in time.
#[derive(Debug, Error)]
#[error("timed out after {bound:?} while waiting for MCP tool call {number}; the server has received {calls}")]
pub struct McpWaitError {
    number: usize,
    bound: Duration,
    calls: usize,
}

#[derive(Debug)]
struct ServerState {
    setup: McpHttpSetup,
    requests: watch::Sender<Vec<Arc<McpRequest>>>,
}

impl McpHttp {
    /// Starts a server that accepts every request.
    pub async fn start() -> io::Result<Self> {
        Self::setup().start().await
    }

    /// Returns a server configuration.
    pub fn setup() -> McpHttpSetup {
        McpHttpSetup::default()
    }

    /// Returns the URL for the agent's configuration.
    pub fn url(&self) -> String {
        format!("http://{}{PATH}", self.server.address())
    }

    /// Returns all requests received so far, including rejected ones.
    pub fn requests(&self) -> Vec<Arc<McpRequest>> {
        self.state.requests.borrow().clone()
    }

    /// Returns the tool calls received so far.
    pub fn calls(&self) -> Vec<McpCall> {
        calls(&self.state.requests.borrow())
    }

    /// Waits for the tool call with this number, counted from one.
    pub async fn wait_for_call(&self, number: usize, bound: Duration) -> Result<McpCall, McpWaitError> {
        let mut requests = self.state.requests.subscribe();
        let arrived = requests.wait_for(|requests| calls(requests).len() >= number);
        // The calls themselves show whether it arrived.
        let _arrived_or_timed_out = tokio::time::timeout(bound, arrived).await.is_ok();
        let calls = self.calls();
        calls.get(number.saturating_sub(1)).cloned().ok_or(McpWaitError { number, bound, calls: calls.len() })
    }

    /// Stops the server. Returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
    }
}

impl McpHttpSetup {
    /// Rejects every request without this header (401).
    #[must_use]
    pub fn require_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.required = Some((name.into().to_ascii_lowercase(), value.into()));
        self
    }

    /// Sets the decision of the tool `approve`.
    #[must_use]
    pub fn decision(mut self, decision: Decision) -> Self {
        self.decision = decision;
        self
    }

    /// Starts the server on a free port.
    pub async fn start(self) -> io::Result<McpHttp> {
        let state = Arc::new(ServerState { setup: self, requests: watch::Sender::default() });
        let router = Router::new()
            .route(PATH, any(handle_request))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .with_state(Arc::clone(&state));
        let server = LocalServer::start(router).await?;
        Ok(McpHttp { state, server })
    }
}

fn calls(requests: &[Arc<McpRequest>]) -> Vec<McpCall> {
    requests
        .iter()
        .filter(|request| !request.rejected)
        .filter_map(|request| {
            let arguments = request.message.pointer("/params/arguments");
            Some(McpCall {
                tool: called_tool(&request.message)?.to_owned(),
                arguments: arguments.cloned().unwrap_or_default(),
            })
        })
        .collect()
}

async fn handle_request(
    State(state): State<Arc<ServerState>>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let headers = headers_by_name(&headers);
    let rejected = match &state.setup.required {
        Some((name, value)) => headers.get(name) != Some(value),
        None => false,
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let request = Arc::new(McpRequest { method: method.to_string(), headers, message, rejected });
    state.requests.send_modify(|requests| requests.push(Arc::clone(&request)));
    if rejected {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    if method == Method::DELETE {
        return StatusCode::OK.into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match handle_message(&request.message, state.setup.decision) {
        RpcResponse::None => StatusCode::ACCEPTED.into_response(),
        RpcResponse::Immediate(answer) => json_response(&answer),
        RpcResponse::Delayed(delayed) => {
            tokio::time::sleep(delayed.takes).await;
            json_response(&delayed.answer)
        }
    }
}

fn json_response(answer: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (HeaderName::from_static("mcp-session-id"), HeaderValue::from_static(SESSION)),
    ];
    (headers, answer.to_string()).into_response()
}
