//! Serves the HTTP API over a store in memory, without agents and without tokens, for programs that check the API.
//!
//! ```text
//! cargo run -p teamster-gateway --example api -- 4781
//! ```

#![expect(clippy::print_stdout, reason = "it prints its address")]

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Extension;
use teamster::Runtime;
use teamster_gateway::access::{Identity, Scope};
use teamster_gateway::config::Config;
use teamster_gateway::{Clock, Gateway, Parts, http};
use teamster_store::{HostId, MemoryStore};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).map_or(Ok(0), |port| port.parse())?;
    let directory = tempfile::tempdir()?;
    let mut config = Config::default();
    config.data_dir = directory.path().to_owned();
    config.turn.directory = directory.path().to_owned();
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(MemoryStore::new()),
        runtime: Arc::new(Runtime::new()),
        channels: Vec::new(),
        host: HostId::new("example"),
        clock: Clock::system(),
    });
    // Only this machine can connect, and everybody on it is the admin.
    let identity = Identity { token: None, owner: "example".to_owned(), scopes: vec![Scope::Admin] };
    let router = http::router(gateway).layer(Extension(identity));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}
