//! A server on the loopback address whose connections all end with it.
//!
//! Invariant: every connection is a task in a set that the accepting task owns. Aborting that task
//! closes every connection; a client that waits for a stalled response sees its connection close.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderMap;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct LocalServer {
    address: SocketAddr,
    accepting: JoinHandle<Infallible>,
}

impl LocalServer {
    /// Serves on a free port.
    pub(crate) async fn start(router: Router) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, router));
        Ok(Self { address, accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. Returns once every connection is closed.
    pub(crate) async fn stop(&mut self) {
        self.accepting.abort();
        // The only outcome is the cancellation requested above.
        let _cancelled = (&mut self.accepting).await;
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Returns the headers by lower-case name. Repeated headers are joined with commas.
pub(crate) fn headers_by_name(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut by_name: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        by_name
            .entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(", ");
                known.push_str(&value);
            })
            .or_insert_with(|| value.to_string());
    }
    by_name
}

async fn accept(listener: TcpListener, router: Router) -> Infallible {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, router.clone()));
                }
                // The client disconnected before it was accepted, or file descriptors ran out,
                // which a tight loop would not repair.
                Err(_) => tokio::time::sleep(AFTER_FAILED_ACCEPT).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, router: Router) {
    // Deltas are small and must be sent at once. Without this option they arrive later.
    let _slower = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service).with_upgrades().await;
    // A client that disconnects and a scenario that cuts the connection both end here; the record
    // distinguishes them.
    drop(served);
}
