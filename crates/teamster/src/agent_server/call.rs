//! HTTP requests to a CLI's server. Each has a connection of its own: on one machine that is cheap, and no call delays another.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;

use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use teamster_agents::protocol::{Method, ServerCall};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::sse::Events;
use super::{Password, ServerEvent};
use crate::errors::with_causes;

/// Parses the address of a server. Returns `None` unless it is a loopback address with a port.
pub(super) fn local(address: &str) -> Option<SocketAddr> {
    let uri: Uri = address.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    let ip: IpAddr = host.parse().ok()?;
    let is_plain = uri.scheme_str() == Some("http") && matches!(uri.path(), "" | "/") && uri.query().is_none();
    let is_bare = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
    (ip.is_loopback() && is_plain && is_bare).then_some(SocketAddr::new(ip, uri.port_u16()?))
}

/// The address and the credentials of a server.
pub(super) struct Route {
    pub(super) address: SocketAddr,
    pub(super) user: &'static str,
    pub(super) password: Password,
}

impl Route {
    /// Makes a call. Returns the status and the body of the response.
    pub(super) async fn call(&self, call: ServerCall, max_bytes: usize) -> Result<(u16, Bytes), String> {
        let ServerCall { method, path, body, .. } = call;
        let request = self.request(method, &path, body.map(Bytes::from))?;
        self.exchange(request, async |response| {
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), max_bytes).collect().await;
            let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => format!("its response is longer than {max_bytes} bytes"),
                None => format!("its response was cut off: {}", with_causes(&*error)),
            })?;
            Ok((status, body.to_bytes()))
        })
        .await
    }

    /// Reads the event stream to its end. Returns the reason for the end.
    pub(super) async fn listen(&self, path: &str, max_bytes: usize, sender: &mpsc::Sender<ServerEvent>) -> String {
        let request = match self.request(Method::Get, path, None) {
            Ok(request) => request,
            Err(why) => return why,
        };
        let ended: Result<(), String> = self
            .exchange(request, async |response| {
                if response.status() != StatusCode::OK {
                    return Err(format!("it responded with status {}", response.status().as_u16()));
                }
                let (mut body, mut events) = (response.into_body(), Events::new(max_bytes));
                while let Some(frame) = body.frame().await {
                    let frame =
                        frame.map_err(|error| format!("its event stream was cut off: {}", with_causes(&error)))?;
                    let Ok(mut data) = frame.into_data() else { continue };
                    while data.has_remaining() {
                        let taken = events.take(&data);
                        data.advance(taken);
                        while let Some(event) = events.next() {
                            // Fails if the client was dropped.
                            sender.send(event).await.map_err(|_| String::new())?;
                        }
                    }
                }
                Ok(())
            })
            .await;
        ended.err().unwrap_or_else(|| "its event stream ended".to_owned())
    }

    fn request(&self, method: Method, path: &str, body: Option<Bytes>) -> Result<Request<Full<Bytes>>, String> {
        let wrong = |error: hyper::http::Error| format!("the request for {path:?} is invalid: {error}");
        let credentials = format!("Basic {}", self.password.basic(self.user));
        let mut authorization = HeaderValue::from_str(&credentials).map_err(|error| wrong(error.into()))?;
        authorization.set_sensitive(true);
        let mut request = Request::builder()
            .method(method.as_str())
            .uri(path)
            .header(HOST, self.address.to_string())
            .header(AUTHORIZATION, authorization)
            .header(ACCEPT, "application/json, text/event-stream");
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.unwrap_or_default())).map_err(wrong)
    }

    /// Sends a request and reads the response.
    async fn exchange<T>(
        &self,
        request: Request<Full<Bytes>>,
        read: impl AsyncFnOnce(Response<Incoming>) -> Result<T, String>,
    ) -> Result<T, String> {
        let broken = |error: &dyn std::error::Error| format!("it cannot be reached: {}", with_causes(error));
        let stream = TcpStream::connect(self.address).await.map_err(|error| broken(&error))?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
            read(response).await
        };
        let (mut exchange, mut connection) = (pin!(exchange), pin!(connection));
        tokio::select! {
            biased;
            done = &mut exchange => done,
            // The part of the response that was received can still be read.
            _ = &mut connection => exchange.await,
        }
    }
}
