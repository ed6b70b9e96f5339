//! Opens a file: refuses a file that is not a store of this or an older release, and migrates older stores.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt as _};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::failure::{Context, Failure};
use super::writer::WAL_LIMIT_BYTES;
use crate::error::{Result, StoreError};

/// Marks a file as a store of Teamster: `TmSt` in ASCII.
const APPLICATION_ID: i32 = 0x546d_5374;

/// The schemas in order. A release that changes the schema adds one; it never changes an earlier one.
pub(super) const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql"), include_str!("schema/2.sql")];

/// The size of a page of the file.
const PAGE_BYTES: u64 = 4096;

/// The number of statements that a connection keeps prepared.
const CACHED_STATEMENTS: usize = 256;

/// Opens the writing connection. The file is created if it is missing.
pub(super) fn connect_writer(context: Context<'_>, max_bytes: Option<u64>, migrations: &[&str]) -> Result<Connection> {
    refuse_network(context.path)?;
    create_private(context.path)?;
    let db = connect(context)?;
    identify(&db, context, migrations)?;
    make_private(context.path);
    set_up(&db, max_bytes).map_err(|error| context.database("set up", error))?;
    migrate(&db, context, migrations)?;
    Ok(db)
}

/// Opens a connection that cannot write.
pub(super) fn connect_reader(context: Context<'_>) -> Result<Connection> {
    let db = connect(context)?;
    db.execute_batch("PRAGMA query_only = ON").map_err(|error| context.database("open", error))?;
    Ok(db)
}

fn connect(context: Context<'_>) -> Result<Connection> {
    let open = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(context.path, flags)?;
        db.busy_timeout(context.busy_timeout)?;
        db.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
        db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA temp_store = MEMORY;")?;
        Ok(db)
    };
    open().map_err(|error| context.database("open", error))
}

/// Creates the file for this user only. The files beside it get the same permissions from `SQLite`.
fn create_private(path: &Path) -> Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Err(StoreError::ReadOnly { path: path.to_owned() })
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Err(StoreError::DiskFull { path: path.to_owned() })
            }
            _ => Err(Context::io("create", error)),
        },
    }
}

/// Removes the permissions of other users from a store and the files beside it. A file of another user keeps its
/// permissions.
fn make_private(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        let is_open = |found: &std::fs::Metadata| found.permissions().mode() & 0o077 != 0;
        if std::fs::metadata(&file).is_ok_and(|found| is_open(&found)) {
            // After an error, the file has its earlier permissions.
            _ = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600));
        }
    }
}

/// `SQLite` needs locks that network file systems do not provide reliably.
fn refuse_network(path: &Path) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A directory that cannot be checked is reported when the file is created.
    let Ok(status) = rustix::fs::statfs(directory) else { return Ok(()) };
    match network_kind(i128::from(status.f_type)) {
        Some(kind) => Err(StoreError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Returns the name of a network file system by its number in `statfs(2)`.
fn network_kind(number: i128) -> Option<&'static str> {
    match number & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0x517b => Some("SMB"),
        0xff53_4d42 => Some("CIFS"),
        0xfe53_4d42 => Some("SMB2"),
        0x5346_414f => Some("AFS"),
        _ => None,
    }
}

/// Checks whether the file is empty or a store of this release or an older one. Nothing is written before this check.
fn identify(db: &Connection, context: Context<'_>, migrations: &[&str]) -> Result<()> {
    let read = || {
        let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let tables: u32 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((application, version, tables))
    };
    let supported = u32::try_from(migrations.len()).unwrap_or(u32::MAX);
    let path = || context.path.to_owned();
    match read().map_err(|error| context.database("open", error))? {
        (APPLICATION_ID, found, _) if found > supported => {
            Err(StoreError::NewerSchema { path: path(), found, supported })
        }
        (APPLICATION_ID, ..) | (0, 0, 0) => Ok(()),
        _ => Err(StoreError::ForeignFile { path: path() }),
    }
}

fn set_up(db: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    // FULL flushes the log at each commit. NORMAL would lose accepted messages, and use event numbers twice, after a power
    // loss.
    db.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
         PRAGMA journal_size_limit = {WAL_LIMIT_BYTES};"
    ))?;
    if let Some(max_bytes) = max_bytes {
        // SQLite does not set a limit below the present size.
        db.execute_batch(&format!("PRAGMA max_page_count = {}", (max_bytes / PAGE_BYTES).max(1)))?;
    }
    Ok(())
}

/// Applies the missing migrations in one transaction. Another process may do so at the same time.
fn migrate(db: &Connection, context: Context<'_>, migrations: &[&str]) -> Result<()> {
    let apply = || -> Result<(), Failure> {
        db.execute_batch("BEGIN IMMEDIATE")?;
        identify(db, context, migrations)?;
        let version: usize = db.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))? as usize;
        for migration in migrations.iter().skip(version) {
            db.execute_batch(migration)?;
        }
        if version < migrations.len() {
            db.pragma_update(None, "application_id", APPLICATION_ID)?;
            db.pragma_update(None, "user_version", u32::try_from(migrations.len()).unwrap_or(u32::MAX))?;
        }
        db.execute_batch("COMMIT")?;
        Ok(())
    };
    apply().map_err(|failure| {
        _ = db.execute_batch("ROLLBACK");
        context.failure("migrate", failure)
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn context(path: &Path) -> Context<'_> {
        Context { path, busy_timeout: Duration::from_secs(5) }
    }

    #[test]
    fn the_files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let db = connect_writer(context(&path), None, MIGRATIONS).unwrap();
        db.execute_batch("INSERT INTO channel_state VALUES ('a', '1')").unwrap();
        let files: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(Result::unwrap).collect();
        assert!(files.len() >= 2, "{files:?}");
        for file in files {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        }
    }

    #[test]
    fn each_commit_is_flushed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let db = connect_writer(context(&path), None, MIGRATIONS).unwrap();
        let synchronous: i64 = db.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((synchronous, journal.as_str()), (2, "wal"));
    }

    #[test]
    fn an_older_store_is_migrated_with_its_data() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let insert = "INSERT INTO channel_state VALUES ('offset', '7')";
        connect_writer(context(&path), None, MIGRATIONS).unwrap().execute_batch(insert).unwrap();
        let next = [MIGRATIONS, &["ALTER TABLE channel_state ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"]].concat();
        for _ in 0..2 {
            let db = connect_writer(context(&path), None, &next).unwrap();
            let row = "SELECT key || value || note FROM channel_state";
            assert_eq!(db.query_row(row, [], |row| row.get::<_, String>(0)).unwrap(), "offset7none");
        }
        let refused = connect_writer(context(&path), None, MIGRATIONS);
        let expected = u32::try_from(next.len()).unwrap();
        assert!(matches!(refused, Err(StoreError::NewerSchema { found, .. }) if found == expected), "{refused:?}");
    }

    #[test]
    fn a_failed_migration_leaves_the_older_store_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        drop(connect_writer(context(&path), None, MIGRATIONS).unwrap());
        let broken = [MIGRATIONS, &["CREATE TABLE half (a TEXT); CREATE TABLE half (a TEXT);"]].concat();
        let failed = connect_writer(context(&path), None, &broken);
        assert!(matches!(failed, Err(StoreError::Database { action: "migrate", .. })), "{failed:?}");
        let db = connect_writer(context(&path), None, MIGRATIONS).unwrap();
        let half: u32 =
            db.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'half'", [], |row| row.get(0)).unwrap();
        assert_eq!(half, 0);
    }

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_kind(0x6969), Some("NFS"));
        assert_eq!(network_kind(i128::from(0xff53_4d42_u32.cast_signed())), Some("CIFS"));
        assert_eq!(network_kind(0xef53), None);
    }
}
