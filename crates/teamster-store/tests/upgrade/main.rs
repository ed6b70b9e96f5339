//! Stores of earlier releases: today's code opens each of them, and finds what they had.
//!
//! `tests/fixtures/schema-N.sql` is a store that the release with schema N has written. It is never written again. A new schema
//! needs a fixture of its own before its release, so that the migration after it has a test:
//!
//! ```text
//! UPDATE_FIXTURES=1 cargo test -p teamster-store --test upgrade
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the lints take helpers of tests for library code"
)]

mod dump;
mod world;

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use teamster_store::{SqliteOptions, SqliteStore};

fn fixture(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/schema-{version}.sql"))
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, SqliteOptions::default()).await.unwrap()
}

fn version(path: &Path) -> u32 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_present_schema_has_a_fixture() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await;
    world::write(&store).await;
    store.close().await;
    let fixture = fixture(version(&path));
    if std::env::var_os("UPDATE_FIXTURES").is_some() && !fixture.exists() {
        std::fs::write(&fixture, dump::write(&Connection::open(&path).unwrap())).unwrap();
    }
    assert!(fixture.exists(), "write {} with UPDATE_FIXTURES=1 before the release", fixture.display());
}

#[tokio::test]
async fn a_store_of_every_earlier_schema_opens_with_all_its_data() {
    let directory = tempfile::tempdir().unwrap();
    let new = directory.path().join("new.db");
    open(&new).await.close().await;
    for number in 1..=version(&new) {
        let path = directory.path().join(format!("{number}.db"));
        dump::read(&path, &std::fs::read_to_string(fixture(number)).unwrap());
        assert_eq!(version(&path), number);
        let store = open(&path).await;
        store.check().await.unwrap();
        world::check(&store).await;
        store.close().await;
        assert_eq!(version(&path), version(&new));
        assert_eq!(dump::schema(&path), dump::schema(&new), "a migrated store has the schema of a new one");
    }
}

#[tokio::test]
async fn a_backup_of_every_earlier_schema_is_restored_by_its_copy() {
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.db");
    dump::read(&old, &std::fs::read_to_string(fixture(1)).unwrap());
    let copy = directory.path().join("copy.db");
    let store = open(&old).await;
    store.backup(&copy).await.unwrap();
    store.close().await;
    let restored = directory.path().join("restored.db");
    std::fs::copy(&copy, &restored).unwrap();
    let store = open(&restored).await;
    store.check().await.unwrap();
    world::check(&store).await;
}
