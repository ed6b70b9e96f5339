//! Reads stores in an SQLite database.
//!
//! The database is opened read-only, and so are the files beside it: SQLite would otherwise create them. A process that writes
//! to the database is not disturbed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row, params};
use teamster_agents::agent::session_store::{
    Exchange, SessionDatabase, SessionRecord, Variables, time_of_milliseconds, title_of,
};

use super::directory::Directory;

/// The time that a writer may lock the database.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The time limit of all queries.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The number of steps of SQLite between two checks of the time.
const STEPS: i32 = 10_000;

/// The maximum bytes of a value or a row.
const MAX_VALUE: i32 = 16 << 20;

/// Which sessions are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Only sessions of this working directory.
    pub(crate) directory: Option<&'a Directory>,
    /// Only sessions whose id starts with this text.
    pub(crate) id_prefix: &'a str,
    /// At most this many sessions, the newest ones.
    pub(crate) limit: usize,
    /// Whether their last exchange is read.
    pub(crate) with_exchange: bool,
}

/// What was read of a database.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// The sessions with their ids, the newest first.
    pub(crate) sessions: Vec<(String, SessionRecord)>,
    /// The path of the database and the reason, if it cannot be read.
    pub(crate) skipped: Option<(PathBuf, String)>,
}

/// Reads sessions. An error hides none that was read before it.
pub(crate) fn read(store: &SessionDatabase, variables: Variables<'_>, wanted: Wanted<'_>) -> Rows {
    let mut rows = Rows::default();
    let Some(path) = (store.path)(variables) else { return rows };
    let skip = |path: &Path, reason: String| Some((path.to_owned(), reason));
    match fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => {
            if let Err(error) = read_database(store, &path, wanted, &mut rows.sessions) {
                rows.skipped = skip(&path, error.to_string());
            }
        }
        Ok(_) => rows.skipped = skip(&path, "it is not a regular file".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => rows.skipped = skip(&path, error.to_string()),
    }
    rows
}

fn read_database(
    store: &SessionDatabase,
    path: &Path,
    wanted: Wanted<'_>,
    sessions: &mut Vec<(String, SessionRecord)>,
) -> rusqlite::Result<()> {
    let database = open(path)?;
    let forms = wanted.directory.map(|directory| directory.forms().map(Path::to_string_lossy));
    let [given, canonical] = match forms {
        Some([given, canonical]) => [Some(given), Some(canonical)],
        None => [None, None],
    };
    let limit = i64::try_from(wanted.limit).unwrap_or(i64::MAX);
    let mut statement = database.prepare(store.sessions)?;
    let mut rows = statement.query(params![given, canonical, wanted.id_prefix, limit])?;
    let mut problem = None;
    loop {
        match rows.next() {
            Ok(Some(row)) => sessions.extend(record(store, row)?),
            Ok(None) => break,
            Err(error) => {
                problem = Some(error);
                break;
            }
        }
    }
    for (id, record) in sessions.iter_mut().filter(|_| wanted.with_exchange) {
        match last_exchange(&database, store, id) {
            Ok(exchange) => record.last_exchange = exchange,
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    problem.map_or(Ok(()), Err)
}

/// Opens a database. No file is created or changed.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let beside = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let has_log = fs::metadata(beside("-wal")).is_ok_and(|log| log.len() > 0);
    // Without a log, or without its index, SQLite would create files. Then the database alone is read.
    let options = if has_log && beside("-shm").exists() { "mode=ro&readonly_shm=1" } else { "mode=ro&immutable=1" };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut database = Connection::open_with_flags(uri(path, options), flags)?;
    database.busy_timeout(LOCK_TIMEOUT)?;
    database.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE)?;
    let deadline = Instant::now() + TIME_LIMIT;
    database.progress_handler(STEPS, Some(move || Instant::now() > deadline))?;
    // The schema is untrusted too.
    database.pragma_update(None, "trusted_schema", false)?;
    Ok(database)
}

/// Returns the URI of a file for SQLite.
fn uri(path: &Path, options: &str) -> PathBuf {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte) {
            uri.push(*byte);
        } else {
            uri.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    uri.push(b'?');
    uri.extend_from_slice(options.as_bytes());
    PathBuf::from(OsString::from_vec(uri))
}

/// Reads a row of the query of sessions.
fn record(store: &SessionDatabase, row: &Row<'_>) -> rusqlite::Result<Option<(String, SessionRecord)>> {
    let time =
        |column: usize| -> rusqlite::Result<_> { Ok(number(row.get_ref(column)?).and_then(time_of_milliseconds)) };
    let Some(id) = text(row.get_ref(0)?) else { return Ok(None) };
    let cost_usd = match row.get_ref(4)? {
        ValueRef::Real(cost) => Some(cost).filter(|cost| cost.is_finite() && *cost >= 0.0),
        _ => None,
    };
    let record = SessionRecord {
        title: text(row.get_ref(1)?).and_then(|title| title_of(&title)),
        directory: text(row.get_ref(2)?).map(PathBuf::from),
        model: text(row.get_ref(3)?).and_then(|model| (store.model)(&model)),
        cost_usd,
        created: time(5)?,
        updated: time(6)?,
        turns: number(row.get_ref(7)?),
        ..SessionRecord::default()
    };
    Ok(Some((id, record)))
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

fn number(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Integer(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

/// Reads the last prompt of a session and its answer.
fn last_exchange(database: &Connection, store: &SessionDatabase, id: &str) -> rusqlite::Result<Exchange> {
    let mut statement = database.prepare(store.texts)?;
    let mut rows = statement.query([id])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let [role, message, text] = [text(row.get_ref(0)?), text(row.get_ref(1)?), text(row.get_ref(2)?)];
        let is_prompt = role.as_deref() == Some("user");
        let message = message.unwrap_or_default();
        // A prompt may have several parts.
        if texts.last().is_some_and(|(was_prompt, last, _)| *was_prompt && *last != message) {
            break;
        }
        texts.push((is_prompt, message, text.unwrap_or_default()));
    }
    let mut exchange = Exchange::default();
    let prompt: Vec<&str> = texts.iter().rev().filter(|(is_prompt, ..)| *is_prompt).map(|(.., text)| &**text).collect();
    if !prompt.is_empty() {
        exchange.start(&prompt.join("\n"));
    }
    for (_, message, text) in texts.iter().rev().filter(|(is_prompt, ..)| !is_prompt) {
        exchange.answer(message, text);
    }
    Ok(exchange)
}
