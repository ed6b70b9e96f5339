//! A store that cannot be written for a while: the work of an agent is not lost.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use teamster::{Ledger, RunResult, Runtime};
use teamster_gateway::access::Scope;
use teamster_gateway::config::Config;
use teamster_gateway::{Clock, Gateway, Parts};
use teamster_store::{HostId, SqliteOptions, SqliteStore, TurnState};
use tokio::time::timeout;

use crate::metrics::{app, scrape};
use crate::test_gateway::{LIMIT, TestGateway, write_agent};

#[tokio::test]
async fn a_finished_answer_survives_a_store_that_cannot_be_written_for_a_while() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let (path, gate) = (directory.path(), directory.path().join("gate"));
    let gated = format!("{{ waitForFile = \"{}\" }}", gate.display());
    write_agent(path, &format!("[[turns]]\nsteps = [{{ say = \"begin\" }}, {gated}, {{ say = \"end\" }}]\n"));
    let mut config = Config::default();
    config.data_dir = path.join("data");
    config.turn.directory = path.join("work");
    config.turn.cli_path = Some(path.join("agent"));
    let file = path.join("store.db");
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(&file, options).await.unwrap();
    let runtime = Runtime::builder().ledger(Ledger::in_directory(path.join("ledger"))).build();
    let gateway = Gateway::new(Parts {
        config,
        store: Arc::new(store),
        runtime: Arc::new(runtime),
        channels: Vec::new(),
        host: HostId::new("test"),
        clock: Clock::system(),
    });
    let test = TestGateway::of(gateway, directory).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;

    let other = Connection::open(&file).unwrap();
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
