//! A store that cannot be written for a while: the work of an agent is not lost.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use rusqlite::Connection;
use teamster::{Ledger, RunResult, Runtime};
use teamster_gateway::access::Scope;
use teamster_gateway::config::Config;
use teamster_gateway::{Clock, Gateway, Parts};
use teamster_store::{HostId, SqliteOptions, SqliteStore, TurnState};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::metrics::{app, get, scrape};
use crate::test_gateway::{LIMIT, TestGateway, write_agent};

/// The file of the store.
const STORE: &str = "store.db";

/// Starts a gateway whose writes fail soon while another process has locked the store.
async fn on_disk(directory: Arc<TempDir>) -> TestGateway {
    let path = directory.path();
    let mut config = Config::default();
    config.data_dir = path.join("data");
    config.turn.directory = path.join("work");
    config.turn.cli_path = Some(path.join("agent"));
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(path.join(STORE), options).await.unwrap();
    let runtime = Runtime::builder().ledger(Ledger::in_directory(path.join("ledger"))).build();
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(store),
        runtime: Arc::new(runtime),
        channels: Vec::new(),
        host: HostId::new("test"),
        clock: Clock::system(),
    });
    TestGateway::of(gateway, directory).await
}

#[tokio::test]
async fn a_finished_answer_survives_a_store_that_cannot_be_written_for_a_while() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let (path, gate) = (directory.path(), directory.path().join("gate"));
    let gated = format!("{{ waitForFile = \"{}\" }}", gate.display());
    write_agent(path, &format!("[[turns]]\nsteps = [{{ say = \"begin\" }}, {gated}, {{ say = \"end\" }}]\n"));
    let test = on_disk(Arc::clone(&directory)).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;

    let other = Connection::open(path.join(STORE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(&gate, "").unwrap();
    let metrics = app(&test.gateway, vec![Scope::Read]);
    let wait = async {
        let failed = |samples: &std::collections::BTreeMap<String, f64>| {
            let errors = |operation| format!("teamster_store_write_errors_total{{operation=\"{operation}\"}}");
            ["append", "finish"]
                .iter()
                .any(|operation| samples.get(&errors(operation)).is_some_and(|count| *count > 2.0))
        };
        while !failed(&scrape(&metrics).await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, wait).await.expect("writes fail");
    other.execute_batch("COMMIT").unwrap();

    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.attempts, ended.error_code), (TurnState::Done, 1, None));
    let result: RunResult = ended.result.unwrap().to().unwrap();
    assert_eq!(result.final_text.as_str(), "end");
}

#[tokio::test]
async fn a_gateway_whose_store_cannot_be_written_is_alive_and_not_ready() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    write_agent(directory.path(), "[[turns]]\nsteps = []\n");
    let test = on_disk(Arc::clone(&directory)).await;
    let app = app(&test.gateway, Vec::new());
    let other = Connection::open(directory.path().join(STORE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (code, _, body) = get(&app, "/readyz", "*/*").await;
    assert_eq!(code, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert!(body.contains("STORE_UNAVAILABLE"), "{body}");
    assert_eq!(get(&app, "/healthz", "*/*").await.0, StatusCode::OK);
    other.execute_batch("COMMIT").unwrap();
    let ready = async {
        while get(&app, "/readyz", "*/*").await.0 != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, ready).await.expect("it becomes ready");
}
