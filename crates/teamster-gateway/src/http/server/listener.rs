//! Accepts connections, at most a number of them, and ends them in time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::Connections;
use super::error::ServeError;
use super::tls;
use crate::access::{Concurrency, LimitKey};
use crate::config::Config;

/// The part of all connections that one address may have.
const SHARE: usize = 4;

/// The pause after an error of `accept` that concerns the whole process, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// How the server treats connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// The number of connections. More of them wait.
    pub max_connections: usize,
    /// The time for a TLS handshake, and for the headers of the first request.
    pub header_timeout: Duration,
    /// The time between two requests of a connection, with the headers of the second one.
    pub idle_timeout: Duration,
    /// The time that a client may take to accept more of a response.
    pub write_timeout: Duration,
    /// How long a shutdown waits for requests.
    pub shutdown_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            max_connections: 4_096,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_mins(1),
            write_timeout: Duration::from_mins(1),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}

/// A socket that accepts connections, with its certificate.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    behind_proxy: bool,
}

impl Server {
    /// Listens on the address of the configuration.
    ///
    /// # Errors
    /// Other machines could reach the gateway without TLS, the address is in use, or the certificate cannot be read.
    pub async fn bind(config: &Config) -> Result<Self, ServeError> {
        let address = config.listen;
        if config.tls.is_none() && !config.behind_proxy && !address.ip().to_canonical().is_loopback() {
            return Err(ServeError::Unencrypted { address });
        }
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls, behind_proxy: config.behind_proxy })
    }

    /// Returns the address, with its real port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether clients use TLS here.
    pub const fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Serves connections until `stop` is cancelled. Then it accepts no more, waits for requests within the time limit, and
    /// closes what is left. End event streams with the same token: they would last until the limit.
    pub async fn serve(self, app: Router, options: ServerOptions, stop: CancellationToken) {
        let Self { listener, tls, behind_proxy, .. } = self;
        let ServerOptions { max_connections, header_timeout, idle_timeout, write_timeout, shutdown_timeout } = options;
        let max_connections = max_connections.clamp(1, Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(max_connections));
        let shares = (!behind_proxy).then(|| Concurrency::new(max_connections.div_ceil(SHARE)));
        let close = CancellationToken::new();
        let connections = Connections {
            app,
            tls,
            header_timeout,
            idle_timeout,
            write_timeout,
            stop: stop.clone(),
            close: close.clone(),
        };
        let connections = Arc::new(connections);
        let tasks = TaskTracker::new();
        while let Some((stream, peer, permit)) = accept(&listener, &permits, &stop).await {
            let share = match &shares {
                // Clients on loopback are not limited, and a proxy has the connections of all clients.
                Some(shares) if !peer.ip().is_loopback() => match shares.try_enter(address_key(peer.ip())) {
                    Some(share) => Some(share),
                    None => continue,
                },
                _ => None,
            };
            let connections = Arc::clone(&connections);
            tasks.spawn(async move {
                connections.serve(stream, peer).await;
                drop((permit, share));
            });
        }
        drop(listener);
        tasks.close();
        if tokio::time::timeout(shutdown_timeout, tasks.wait()).await.is_err() {
            tracing::warn!(connections = tasks.len(), "requests have not ended in time; their connections are closed");
            close.cancel();
            tasks.wait().await;
        }
    }
}

/// Accepts a connection when a permit is available. `None` if the server stops.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    loop {
        let next = async {
            let permit = Arc::clone(permits).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = stop.cancelled() => return None,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer)) => return Some((stream, peer, permit.ok()?)),
            Err(error) if is_of_client(&error) => {}
            Err(error) => {
                tracing::error!(%error, "a connection cannot be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Returns whether an error of `accept` concerns one client only.
fn is_of_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

fn address_key(address: IpAddr) -> LimitKey {
    LimitKey::Address(crate::access::ClientAddress(address.to_canonical()).limited())
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tls = self.has_tls();
        formatter.debug_struct("Server").field("address", &self.address).field("tls", &tls).finish_non_exhaustive()
    }
}
