//! Holders: which process needs which entries in a file.
//!
//! A holder is a file that its process keeps locked. The system releases the lock when the process ends, in any way.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::FileRecord;
use crate::document::Entries;
use crate::error::{ConfigError, io_error};
use crate::modes::make_file_private;

const PREFIX: &str = "holder-";

/// The content of a holder's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Claim {
    by: String,
    pid: u32,
    pub(crate) entries: Entries,
}

impl Claim {
    pub(crate) fn new(by: &str, entries: Entries) -> Self {
        Self { by: by.to_owned(), pid: std::process::id(), entries }
    }

    /// Returns the holder for messages.
    pub(crate) fn owner(&self) -> String {
        format!("{} (process {})", self.by, self.pid)
    }
}

/// A holder of this process.
#[derive(Debug)]
pub(crate) struct Holder {
    _lock: File,
}

impl Holder {
    pub(crate) fn register(record: &FileRecord, claim: &Claim) -> Result<Self, ConfigError> {
        let cannot = |error| io_error("write", &record.directory)(error);
        let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&record.directory).map_err(cannot)?;
        make_file_private(file.as_file()).map_err(cannot)?;
        file.as_file().lock().map_err(cannot)?;
        let bytes = serde_json::to_vec(claim).unwrap_or_default();
        crate::file_size::check(&bytes).and_then(|()| file.write_all(&bytes)).map_err(cannot)?;
        let (lock, _) = file.keep().map_err(|error| cannot(error.error))?;
        Ok(Self { _lock: lock })
    }
}

/// Returns the claims of all live holders. Removes the files of the others.
pub(crate) fn living(record: &FileRecord) -> Result<Vec<Claim>, ConfigError> {
    let mut claims = Vec::new();
    for path in all(&record.directory)? {
        match locked(&path)? {
            Some(file) => {
                let claim = serde_json::from_reader(&file);
                claims.push(claim.map_err(|_| ConfigError::Journal { path, problem: "is damaged" })?);
            }
            None => fs::remove_file(&path).map_err(io_error("remove", &path))?,
        }
    }
    Ok(claims)
}

/// Whether any holder is alive. Changes nothing.
pub(crate) fn any_living(directory: &Path) -> Result<bool, ConfigError> {
    for path in all(directory)? {
        match locked(&path) {
            Ok(Some(_)) => return Ok(true),
            Err(ConfigError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            other => _ = other?,
        }
    }
    Ok(false)
}

fn all(directory: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut paths = Vec::new();
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(paths),
        Err(error) => return Err(io_error("read", directory)(error)),
    };
    for entry in entries {
        let entry = entry.map_err(io_error("read", directory))?;
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}

/// Opens and locks the file. Returns `None` if its process is dead.
fn locked(path: &Path) -> Result<Option<File>, ConfigError> {
    let file = File::open(path).map_err(io_error("read", path))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(io_error("lock", path)(error)),
    }
}
