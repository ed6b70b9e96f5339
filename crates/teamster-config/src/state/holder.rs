//! Holders: who needs which entries in a file, for as long as they live.
//!
//! A holder is a file that its process keeps locked. The system frees it with the process, however that ends.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Station;
use crate::document::Entries;
use crate::error::{ConfigError, io_error};
use crate::modes::make_file_private;

const PREFIX: &str = "holder-";

/// What a holder says of itself.
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

    /// For people.
    pub(crate) fn owner(&self) -> String {
        format!("{} (process {})", self.by, self.pid)
    }
}

/// A holder of ours.
#[derive(Debug)]
pub(crate) struct Holder {
    _lock: File,
}

impl Holder {
    pub(crate) fn register(station: &Station, claim: &Claim) -> Result<Self, ConfigError> {
        let cannot = |error| io_error("write", &station.directory)(error);
        let mut file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&station.directory).map_err(cannot)?;
        make_file_private(file.as_file()).map_err(cannot)?;
        file.as_file().lock().map_err(cannot)?;
        let bytes = serde_json::to_vec(claim).unwrap_or_default();
        crate::file_size::check(&bytes).and_then(|()| file.write_all(&bytes)).map_err(cannot)?;
        let (lock, _) = file.keep().map_err(|error| cannot(error.error))?;
        Ok(Self { _lock: lock })
    }
}

/// The claims of all who live. Files of others are removed.
pub(crate) fn living(station: &Station) -> Result<Vec<Claim>, ConfigError> {
    let mut claims = Vec::new();
    for path in all(&station.directory)? {
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

/// Whether anybody lives. Nothing is changed.
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

/// The file, if its process lives.
fn locked(path: &Path) -> Result<Option<File>, ConfigError> {
    let file = File::open(path).map_err(io_error("read", path))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(io_error("lock", path)(error)),
    }
}
