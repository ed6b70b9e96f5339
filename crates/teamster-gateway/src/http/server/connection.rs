//! One connection, from its start to its end.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// The number of headers of a request.
const MAX_HEADERS: usize = 100;

/// The size of all headers of a request.
const MAX_HEADER_BYTES: u16 = 32 << 10;

/// Concurrent requests of an HTTP/2 connection.
const MAX_STREAMS: u32 = 128;

/// The interval in which a silent HTTP/2 connection is checked.
const PING: Duration = Duration::from_secs(20);

/// What all connections share.
pub(super) struct Connections {
    pub(super) app: Router,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) header_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) write_timeout: Duration,
    /// Ends each connection after its requests.
    pub(super) stop: CancellationToken,
    /// Closes each connection at once.
    pub(super) close: CancellationToken,
}

impl Connections {
    /// Serves a connection until its end. An error affects its client only.
    pub(super) async fn serve(&self, stream: TcpStream, peer: SocketAddr) {
        // Events are small, and must not wait for each other.
        _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        // A client that reads nothing would hold its response, and the task that produces it, forever.
        stream.set_write_timeout(Some(self.write_timeout));
        let stream = Box::pin(stream);
        let Some(tls) = &self.tls else { return self.serve_http(stream, peer).await };
        match timeout(self.header_timeout, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve_http(stream, peer).await,
            Ok(Err(error)) => tracing::debug!(%error, %peer, "a TLS handshake has failed"),
            Err(_) => tracing::debug!(%peer, "a TLS handshake was too slow"),
        }
    }

    async fn serve_http<I: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: I, peer: SocketAddr) {
        let started = CancellationToken::new();
        let (app, first) = (self.app.clone(), started.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            first.cancel();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            app.clone().oneshot(request)
        });
        let builder = self.builder();
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        if !self.is_started(connection.as_mut(), &started, peer).await {
            return;
        }
        let mut is_stopping = false;
        loop {
            tokio::select! {
                biased;
                result = connection.as_mut() => {
                    if let Err(error) = result {
                        tracing::debug!(%error, %peer, "a connection has failed");
                    }
                    return;
                }
                () = self.close.cancelled() => return,
                () = self.stop.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Runs a connection until its first request. Returns whether there is one.
    ///
    /// The time limit of headers starts when the version of HTTP is known. This one also covers clients that send nothing.
    async fn is_started<C: Future<Output = Result<(), E>>, E: std::fmt::Display>(
        &self,
        connection: Pin<&mut C>,
        started: &CancellationToken,
        peer: SocketAddr,
    ) -> bool {
        tokio::select! {
            biased;
            result = connection => {
                if let Err(error) = result {
                    tracing::debug!(%error, %peer, "a connection has failed before its first request");
                }
                false
            }
            () = started.cancelled() => true,
            // Nothing was requested, so that nothing is lost.
            () = self.stop.cancelled() => false,
            () = sleep(self.header_timeout) => {
                tracing::debug!(%peer, "a connection without a request in time was closed");
                false
            }
        }
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.idle_timeout)
            .max_headers(MAX_HEADERS)
            .max_buf_size(usize::from(MAX_HEADER_BYTES));
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(self.header_timeout)
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::from(MAX_HEADER_BYTES));
        builder
    }
}
