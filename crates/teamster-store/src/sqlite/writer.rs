//! The writer: one thread that owns the writing connection.
//!
//! Operations that wait at the same time share one transaction, and so one flush of the disk. Each is in a savepoint of its own:
//! one that fails leaves no trace and does not affect the others. If the transaction is lost, for example because the disk is
//! full, each of them runs again in a transaction of its own. A caller gets its result after the commit only.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::failure::{Context, Outcome};
use crate::error::{Result, StoreError};

/// The largest number of operations in one transaction. It bounds how long the first of them waits.
const GROUP: usize = 64;

/// The number of operations that wait for the writer. Further callers wait in `send`.
const QUEUE: usize = 256;

/// The size from which the write-ahead log is cut off after it was copied into the file.
pub(super) const WAL_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Sends operations to the writer's thread.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    commands: mpsc::Sender<Command>,
}

enum Command {
    Run(Box<dyn Job>),
    Close(oneshot::Sender<()>),
}

/// An operation that waits for the writer.
trait Job: Send {
    /// Runs the operation, and returns its error. It may run again.
    fn run(&mut self, db: &Connection, context: Context<'_>) -> Option<StoreError>;

    /// Sends the result to the caller: the operation's, or the error of the commit.
    fn reply(self: Box<Self>, commit: Result<()>);
}

struct Pending<T, F> {
    operation: F,
    result: Option<Result<T>>,
    caller: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Outcome<T> + Clone + Send,
{
    fn run(&mut self, db: &Connection, context: Context<'_>) -> Option<StoreError> {
        let operation = self.operation.clone();
        let result = operation(db).map_err(|failure| context.failure("write to", failure));
        let error = result.as_ref().err().cloned();
        self.result = Some(result);
        error
    }

    fn reply(self: Box<Self>, commit: Result<()>) {
        let result = match (self.result, commit) {
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), _) | (_, Err(error)) => Err(error),
            (None, Ok(())) => Err(StoreError::Closed),
        };
        // The caller may have dropped its future.
        _ = self.caller.send(result);
    }
}

impl Writer {
    /// Starts the thread. It ends after `close`, or when the last `Writer` is dropped.
    pub(super) fn start(db: Connection, path: PathBuf, busy_timeout: Duration) -> std::io::Result<Self> {
        let (commands, queue) = mpsc::channel(QUEUE);
        let name = "teamster-store".to_owned();
        thread::Builder::new().name(name).spawn(move || serve(db, queue, Context { path: &path, busy_timeout }))?;
        Ok(Self { commands })
    }

    /// Runs an operation in a transaction, and returns after the commit.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        operation: impl FnOnce(&Connection) -> Outcome<T> + Clone + Send + 'static,
    ) -> Result<T> {
        let (caller, result) = oneshot::channel();
        let job = Pending { operation, result: None, caller };
        self.commands.send(Command::Run(Box::new(job))).await.map_err(|_| StoreError::Closed)?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    /// Finishes the operations that wait, and closes the file.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Close(done)).await.is_ok() {
            _ = closed.await;
        }
    }
}

fn serve(db: Connection, mut queue: mpsc::Receiver<Command>, context: Context<'_>) {
    let mut closing = None;
    while closing.is_none()
        && let Some(first) = queue.blocking_recv()
    {
        let mut jobs = Vec::new();
        let mut next = Some(first);
        while let Some(command) = next {
            match command {
                Command::Run(job) => jobs.push(job),
                Command::Close(done) => {
                    closing = Some(done);
                    queue.close();
                    break;
                }
            }
            next = if jobs.len() < GROUP { queue.try_recv().ok() } else { None };
        }
        run_all(&db, jobs, context);
    }
    // Operations that were sent before the close.
    while let Some(Command::Run(job)) = queue.blocking_recv() {
        run_all(&db, vec![job], context);
    }
    if let Err(error) = shut_down(&db) {
        tracing::warn!(path = %context.path.display(), %error, "the write-ahead log stays beside the store");
    }
    drop(db);
    if let Some(done) = closing {
        _ = done.send(());
    }
}

fn shut_down(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("PRAGMA optimize; PRAGMA wal_checkpoint(TRUNCATE);")
}

/// A transaction that was lost, with its jobs.
struct Lost {
    jobs: Vec<Box<dyn Job>>,
    error: StoreError,
}

/// Runs jobs in one transaction, or each in its own, so that the error of one job does not fail another.
fn run_all(db: &Connection, jobs: Vec<Box<dyn Job>>, context: Context<'_>) {
    let is_group = jobs.len() > 1;
    match run_group(db, jobs, context) {
        Ok(()) => {}
        Err(Lost { jobs, .. }) if is_group => jobs.into_iter().for_each(|job| run_all(db, vec![job], context)),
        Err(Lost { jobs, error }) => fail_all(jobs, &error),
    }
}

fn run_group(db: &Connection, mut jobs: Vec<Box<dyn Job>>, context: Context<'_>) -> Result<(), Lost> {
    if let Err(error) = db.execute_batch("BEGIN IMMEDIATE") {
        fail_all(jobs, &context.database("write to", error));
        return Ok(());
    }
    let run = jobs.iter_mut().try_for_each(|job| in_savepoint(db, job.as_mut(), context));
    let done = run.and_then(|()| db.execute_batch("COMMIT").map_err(|error| context.database("write to", error)));
    if let Err(error) = done {
        _ = db.execute_batch("ROLLBACK");
        return Err(Lost { jobs, error });
    }
    for job in jobs {
        job.reply(Ok(()));
    }
    Ok(())
}

fn fail_all(jobs: Vec<Box<dyn Job>>, error: &StoreError) {
    for job in jobs {
        job.reply(Err(error.clone()));
    }
}

/// Runs a job in a savepoint. An error means that the whole transaction is lost.
fn in_savepoint(db: &Connection, job: &mut dyn Job, context: Context<'_>) -> Result<()> {
    let execute = |sql| {
        let done = db.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        done.map(drop).map_err(|error| context.database("write to", error))
    };
    execute("SAVEPOINT operation")?;
    let error = job.run(db, context);
    // After some errors, such as a full disk, SQLite ends the transaction itself.
    if db.is_autocommit() {
        return Err(error.unwrap_or(StoreError::Closed));
    }
    if error.is_some() {
        execute("ROLLBACK TO operation")?;
    }
    execute("RELEASE operation")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::open::{MIGRATIONS, connect_writer};
    use super::super::query::run;
    use super::*;

    fn insert(key: &'static str, length: usize) -> (Box<dyn Job>, oneshot::Receiver<Result<usize>>) {
        let (caller, result) = oneshot::channel();
        let operation = move |db: &Connection| {
            run(db, "INSERT INTO channel_state (key, value) VALUES (?1, ?2)", [key.to_owned(), "x".repeat(length)])
        };
        (Box::new(Pending { operation, result: None, caller }), result)
    }

    #[test]
    fn a_full_disk_fails_only_the_operation_that_does_not_fit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let context = Context { path: Path::new(&path), busy_timeout: Duration::from_secs(5) };
        let db = connect_writer(context, Some(1 << 20), MIGRATIONS).unwrap();
        for round in [["a", "b", "c"], ["d", "e", "f"]] {
            let (jobs, results): (Vec<_>, Vec<_>) =
                [insert(round[0], 10), insert(round[1], 2 << 20), insert(round[2], 10)].into_iter().unzip();
            run_all(&db, jobs, context);
            let results: Vec<_> = results.into_iter().map(|result| result.blocking_recv().unwrap()).collect();
            assert!(matches!(results[..], [Ok(1), Err(StoreError::DiskFull { .. }), Ok(1)]), "{results:?}");
        }
        let keys: String =
            db.query_row("SELECT group_concat(key, '') FROM channel_state", [], |row| row.get(0)).unwrap();
        assert_eq!(keys, "acdf");
    }
}
