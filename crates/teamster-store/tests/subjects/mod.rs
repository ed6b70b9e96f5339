//! The implementations under test.

use async_trait::async_trait;
use teamster_store::conformance::{Instance, Subject};
use teamster_store::{MemoryStore, SqliteOptions, SqliteStore, Store};
use tempfile::TempDir;

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap().block_on(future)
}

pub(crate) struct InMemory;

#[async_trait]
impl Subject for InMemory {
    async fn create(&self) -> Box<dyn Instance> {
        Box::new(Memory(MemoryStore::new()))
    }
}

struct Memory(MemoryStore);

#[async_trait]
impl Instance for Memory {
    fn store(&self) -> &dyn Store {
        &self.0
    }

    async fn reopen(&mut self) {}
}

pub(crate) struct Sqlite;

#[async_trait]
impl Subject for Sqlite {
    async fn create(&self) -> Box<dyn Instance> {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory).await;
        Box::new(File { directory, store })
    }
}

struct File {
    directory: TempDir,
    store: SqliteStore,
}

async fn open(directory: &TempDir) -> SqliteStore {
    SqliteStore::open(directory.path().join("store.db"), SqliteOptions::default()).await.unwrap()
}

#[async_trait]
impl Instance for File {
    fn store(&self) -> &dyn Store {
        &self.store
    }

    async fn reopen(&mut self) {
        self.store.close().await;
        self.store = open(&self.directory).await;
        self.store.check().await.unwrap();
    }
}
