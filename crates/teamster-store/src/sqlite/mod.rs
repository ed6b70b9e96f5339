//! The store in one `SQLite` file, for the workers of one machine. Several processes may open it at a time.
//!
//! One thread writes, in transactions that start with `BEGIN IMMEDIATE`, and a few connections read. No operation
//! blocks the async executor. The rules are those of the model (`memory`); each file here implements the same
//! operations as the file of that name there.

mod access;
mod claim;
mod conversations;
mod deliveries;
mod delivery_steps;
mod effects;
mod failure;
mod finish;
mod intake;
mod log;
mod maintenance;
mod open;
mod options;
mod permissions;
mod query;
mod readers;
mod retention;
mod rows;
mod schedules;
mod values;
mod work;
mod writer;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::task::spawn_blocking;

use failure::{Context, Outcome};
use open::{MIGRATIONS, connect_reader, connect_writer};
pub use options::SqliteOptions;
use readers::Readers;
use writer::Writer;

use crate::error::{Result, StoreError};

/// A store in a file. Clones share its connections.
///
/// Its methods need a Tokio runtime. Call [`SqliteStore::close`] at the end: it waits for the last commit.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    path: Arc<Path>,
    options: SqliteOptions,
    writer: Writer,
    readers: Readers,
}

impl SqliteStore {
    /// Opens a file, or creates it if it is missing. Its directory must exist.
    ///
    /// Fails with `ForeignFile`, `NewerSchema`, `NetworkFileSystem`, `Corrupt`, `ReadOnly`, `DiskFull` or `Locked`. A file that is
    /// refused is not changed.
    pub async fn open(path: impl Into<PathBuf>, options: SqliteOptions) -> Result<Self> {
        let path: Arc<Path> = path.into().into();
        let file = Arc::clone(&path);
        blocking(move || {
            let context = Context { path: &file, busy_timeout: options.busy_timeout };
            let db = connect_writer(context, options.max_bytes, MIGRATIONS)?;
            let writer = Writer::start(db, file.to_path_buf(), options.busy_timeout);
            let writer = writer.map_err(|error| Context::io("start the thread of", error))?;
            let readers = Readers::new(&file, options);
            Ok(Self { path: Arc::clone(&file), options, writer, readers })
        })
        .await
    }

    /// Finishes the operations that wait, and closes the file. Later operations fail with `Closed`.
    pub async fn close(&self) {
        self.readers.close();
        self.writer.close().await;
    }

    /// Checks the whole file. It takes time in proportion to its size; other operations run meanwhile.
    pub async fn check(&self) -> Result<()> {
        let (path, options) = (Arc::clone(&self.path), self.options);
        blocking(move || check(Context { path: &path, busy_timeout: options.busy_timeout })).await
    }

    /// Writes a consistent copy to a new file while other operations run. The copy is checked before it gets its name.
    ///
    /// To restore it, stop all gateways, move the store and the files `-wal` and `-shm` beside it away, and put the copy in its
    /// place.
    pub async fn backup(&self, copy: impl Into<PathBuf>) -> Result<()> {
        let (path, options, copy) = (Arc::clone(&self.path), self.options, copy.into());
        blocking(move || backup(Context { path: &path, busy_timeout: options.busy_timeout }, &copy)).await
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn write<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Outcome<T> + Clone + Send + 'static,
    ) -> Result<T> {
        self.writer.run(operation).await
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.run(query).await
    }

    /// Runs a query of a token.
    async fn read_token<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.run_for_token(query).await
    }

    /// Runs a query that may have to read a whole table.
    async fn search<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Outcome<T> + Send + 'static,
    ) -> Result<T> {
        self.readers.search(query).await
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    spawn_blocking(work).await.map_err(|_| StoreError::Closed)?
}

fn check(context: Context<'_>) -> Result<()> {
    let db = connect_reader(context)?;
    let failed = |error| context.database("check", error);
    let found: String = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(failed)?;
    let orphans: u32 =
        db.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0)).map_err(failed)?;
    let found = match (found.as_str(), orphans) {
        ("ok", 0) => return Ok(()),
        ("ok", _) => format!("{orphans} rows refer to missing rows"),
        _ => found,
    };
    Err(StoreError::Corrupt { path: context.path.to_owned(), source: Arc::new(io::Error::other(found)) })
}

fn backup(context: Context<'_>, copy: &Path) -> Result<()> {
    let failed =
        |error: io::Error| Context::io("back up", io::Error::new(error.kind(), format!("{}: {error}", copy.display())));
    if copy.exists() {
        return Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "the file exists")));
    }
    let mut partial = copy.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = || {
        // VACUUM INTO takes an empty file, which gives the copy its permissions.
        let new = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial);
        drop(new.map_err(failed)?);
        let db = connect_reader(context)?;
        let name = partial.to_str().ok_or(StoreError::Invalid { reason: "the path of the copy must be UTF-8" })?;
        db.execute_batch("PRAGMA query_only = OFF").map_err(|error| context.database("back up", error))?;
        db.execute("VACUUM INTO ?1", [name]).map_err(|error| context.database("back up", error))?;
        check(Context { path: &partial, ..context })?;
        File::open(&partial).and_then(|file| file.sync_all()).map_err(failed)?;
        fs::rename(&partial, copy).map_err(failed)?;
        let directory = copy.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
    };
    written().inspect_err(|_| _ = fs::remove_file(&partial))
}
