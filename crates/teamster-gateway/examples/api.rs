//! Serves the HTTP API over a store in memory, without agents and with the token `example`, for programs that check the API.
//!
//! ```text
//! cargo run -p teamster-gateway --example api -- 4781
//! ```

#![expect(clippy::print_stdout, reason = "it prints its address")]

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
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
    let router = http::router(gateway).layer(from_fn(authenticate));
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, router).await?)
}

/// Makes every sender of the token an admin. The real checks are in the module `access`.
async fn authenticate(mut request: Request, next: Next) -> Response {
    if request.headers().get(AUTHORIZATION).is_some_and(|value| value == "Bearer example") {
        let identity = Identity { token: None, owner: "example".to_owned(), scopes: vec![Scope::Admin] };
        request.extensions_mut().insert(identity);
    }
    next.run(request).await
}
