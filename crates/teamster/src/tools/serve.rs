//! The server on the loopback address. The accepting task owns a set with the task of every connection, so all end together.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::AUTHORIZATION;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use teamster_types::request::{McpServer, RunRequest};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ToolServer;
use super::calls::Calls;
use super::error::ServeError;
use super::handler::Handler;
use crate::callers::Caller;
use crate::tokio_check;

/// The maximum size of a call's arguments.
const MAX_BODY_BYTES: usize = 16 << 20;

/// The interval of messages on a silent connection. Some clients close a connection that is silent, and a tool may take longer.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(10);

/// Served tools. Dropping this ends the server and the running calls.
pub struct ServedTools {
    name: String,
    /// The names of the tools.
    tools: Vec<String>,
    address: SocketAddr,
    token: String,
    stop: CancellationToken,
    calls: TaskTracker,
    accepting: JoinHandle<Infallible>,
}

impl ToolServer {
    /// Serves the tools on the loopback address until the [`ServedTools`] is dropped. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// A tool's name or input is invalid, two tools have the same name, or no port is available.
    pub async fn serve(self) -> Result<ServedTools, ServeError> {
        for (number, tool) in self.tools.iter().enumerate() {
            tool.check()?;
            if self.tools.iter().take(number).any(|other| other.name == tool.name) {
                let problem = "there are two of this name".to_owned();
                return Err(ServeError::Tool { name: tool.name.clone(), problem });
            }
        }
        ServedTools::start(self).await
    }
}

impl ServedTools {
    pub(super) async fn start(server: ToolServer) -> Result<Self, ServeError> {
        tokio_check::check()?;
        let token = token()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(ServeError::Listen)?;
        let address = listener.local_addr().map_err(ServeError::Listen)?;
        let (name, stop, calls) = (server.name.clone(), CancellationToken::new(), TaskTracker::new());
        let tools = server.tools.iter().map(|tool| tool.name.clone()).collect();
        let running = Calls::default();
        let handler =
            Handler { server: Arc::new(server), stop: stop.clone(), calls: calls.clone(), running: running.clone() };
        // No sessions, so that nothing is kept for an agent that was killed.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_cancellation_token(stop.clone())
            .enforce_origin_validation();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = McpService {
            server: token.as_str().into(),
            calls: running,
            service: StreamableHttpService::new(move || Ok(handler.clone()), sessions, config),
        };
        Caller::add(&token, &authorization(&token), None);
        let accepting = tokio::spawn(accept(listener, service));
        Ok(Self { name, tools, address, token, stop, calls, accepting })
    }

    /// Returns the server as an entry of [`RunRequest::mcp_servers`].
    pub fn server(&self) -> McpServer {
        self.server_with(&self.token)
    }

    fn server_with(&self, token: &str) -> McpServer {
        McpServer::http(format!("http://{}/mcp", self.address)).bearer_token(token.to_owned())
    }

    /// Adds the server to a request, under its name, and allows its tools there. Deny rules of the request still apply.
    ///
    /// Each offer has a token of its own, with which a tool knows its caller ([`CallContext`](super::CallContext)). Offer the
    /// tools to each request separately if that matters: concurrent runs of one request cannot be distinguished. An offer is
    /// kept until the server ends, or until it is [withdrawn](Self::withdraw).
    pub fn offer(&self, request: &mut RunRequest) {
        self.offer_to(None, request);
    }

    /// Like [`offer`](Self::offer), with a label of the caller, such as a user or a chat. The tool gets it with each call.
    pub fn offer_labeled(&self, label: impl Into<String>, request: &mut RunRequest) {
        self.offer_to(Some(label.into()), request);
    }

    /// Withdraws the offers with this label: requests with their tokens are refused from now on. Running calls continue.
    pub fn withdraw(&self, label: &str) {
        Caller::remove_labeled(&self.token, label);
    }

    fn offer_to(&self, label: Option<String>, request: &mut RunRequest) {
        // Without random bytes the request uses the server's own token, and calls have no label.
        let token = match token() {
            Ok(token) => {
                Caller::add(&self.token, &authorization(&token), label);
                token
            }
            Err(_) => self.token.clone(),
        };
        request.mcp_servers.insert(self.name.clone(), self.server_with(&token));
        // Gemini CLI 0.61.0 compares a rule for a whole server with another name in a session than in a run, so that it allows
        // nothing there. A rule for one tool works in both.
        let rules = self.tools.iter().map(|tool| format!("mcp__{}__{tool}", self.name));
        request.permissions.allow.push(format!("mcp__{}", self.name));
        request.permissions.allow.extend(rules);
    }

    /// Ends the server, and waits until no call is running.
    pub async fn shutdown(mut self) {
        self.end();
        // The only outcome is the cancellation that was just requested.
        let _cancelled = (&mut self.accepting).await;
        self.calls.close();
        self.calls.wait().await;
    }

    fn end(&self) {
        self.stop.cancel();
        self.accepting.abort();
        Caller::remove_all(&self.token);
    }
}

impl Drop for ServedTools {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for ServedTools {
    /// Shows no token.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ServedTools")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Accepts requests with a known token.
#[derive(Clone)]
struct McpService {
    /// The server's own token.
    server: Arc<str>,
    calls: Calls,
    service: StreamableHttpService<Handler, NeverSessionManager>,
}

type Body = http_body_util::combinators::BoxBody<bytes::Bytes, Infallible>;

impl McpService {
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let authorization =
            request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some(caller) = Caller::find(&self.server, authorization) else {
            return Ok(refusal(StatusCode::UNAUTHORIZED));
        };
        let (mut parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
            return Ok(refusal(StatusCode::PAYLOAD_TOO_LARGE));
        };
        let body = body.to_bytes();
        // The service has no sessions, so it does not know the calls that a notification could cancel.
        self.calls.read(&caller, &body);
        parts.extensions.insert(caller);
        Ok(self.service.handle(Request::from_parts(parts, Full::new(body))).await)
    }
}

fn refusal(status: StatusCode) -> Response<Body> {
    let mut refusal = Response::new(Body::default());
    *refusal.status_mut() = status;
    refusal
}

fn authorization(token: &str) -> String {
    format!("Bearer {token}")
}

async fn accept(listener: TcpListener, service: McpService) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => _ = connections.spawn(serve(stream, service.clone())),
                // The client left before it was served, or no descriptors are left. A retry without a delay would not help.
                Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, service: McpService) {
    // Without this option, replies arrive later.
    let _slower = stream.set_nodelay(true);
    let service = service_fn(move |request| service.clone().answer(request));
    // It is no error if a client leaves.
    let _gone = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Returns a random token.
fn token() -> Result<String, ServeError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ServeError::Token(error.into()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
