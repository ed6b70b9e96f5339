//! Calls of the gateway's API over HTTP, each on a connection of its own.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time limit of a call: longer than the longest wait for the end of a turn.
const CALL: Duration = Duration::from_secs(75);

/// The address of a gateway, and the token of its operator.
#[derive(Debug)]
pub(super) struct Client {
    address: String,
    token: &'static str,
}

/// A response whose body is not read yet. Its connection is closed when this is dropped.
#[derive(Debug)]
struct Response {
    status: u16,
    body: Incoming,
    connection: JoinHandle<()>,
}

/// An event stream.
#[derive(Debug)]
pub struct Events {
    response: Response,
    unread: String,
}

impl Client {
    pub(super) fn new(url: &str, token: &'static str) -> Result<Self> {
        let address = url.strip_prefix("http://").with_context(|| format!("no URL: {url:?}"))?;
        Ok(Self { address: address.to_owned(), token })
    }

    /// Makes a call, and returns its status and its JSON.
    pub(super) async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        let call = async {
            let mut response = self.send(method, path, body).await?;
            let bytes = (&mut response.body).collect().await?.to_bytes();
            let value = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? };
            anyhow::Ok((response.status, value))
        };
        let answered = timeout(CALL, call).await;
        answered
            .with_context(|| format!("{method} {path} is not answered"))?
            .with_context(|| format!("{method} {path}"))
    }

    /// Opens an event stream.
    pub(super) async fn events(&self, path: &str) -> Result<Events> {
        let response = timeout(CALL, self.send("GET", path, None)).await.context("the stream does not start")??;
        if response.status != 200 {
            bail!("GET {path}: status {}", response.status);
        }
        Ok(Events { response, unread: String::new() })
    }

    async fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Response> {
        let stream = TcpStream::connect(&self.address).await.context("the gateway does not listen")?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Errors of the connection also appear when the body is read.
        let connection = tokio::spawn(async { drop(connection.await) });
        let mut request = Request::builder().method(method).uri(path).header("host", &self.address);
        request = request.header("authorization", format!("Bearer {}", self.token));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let bytes = body.map(ToString::to_string).unwrap_or_default();
        let (head, body) = sender.send_request(request.body(Full::new(Bytes::from(bytes)))?).await?.into_parts();
        Ok(Response { status: head.status.as_u16(), body, connection })
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl Events {
    /// Returns the next event. Comments are skipped.
    pub async fn next(&mut self) -> Result<Value> {
        loop {
            while let Some(end) = self.unread.find("\n\n") {
                let frame: String = self.unread.drain(..end + 2).collect();
                let data: String = frame.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                if !data.is_empty() {
                    return serde_json::from_str(&data).with_context(|| format!("an event is no JSON: {data}"));
                }
            }
            let frame = self.response.body.frame().await.context("the event stream has ended")??;
            let bytes = frame.into_data().unwrap_or_default();
            self.unread.push_str(std::str::from_utf8(&bytes).context("a chunk is not UTF-8")?);
        }
    }
}
