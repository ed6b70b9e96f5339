//! The directory with the data of a gateway, its lock, and the token of the operator.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use uuid::Uuid;

use crate::plan::Inputs;

/// The file of the operator's token.
const TOKEN: &str = "token";

/// The file that a gateway locks.
const LOCK: &str = "gateway.lock";

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    #[error("the gateway with process id {pid} uses {}: stop it, or use another directory with --data-dir", path.to_string_lossy())]
    InUse { path: PathBuf, pid: String },
    #[error("cannot use the data directory {}: {source}", path.to_string_lossy())]
    Unusable { path: PathBuf, source: io::Error },
}

/// A data directory that no other gateway uses. The lock is held until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct DataDir {
    /// Its file is locked. The lock belongs to this process: processes that it starts do not inherit it, so agents that outlive
    /// a killed gateway do not block the next one.
    _lock: File,
    /// The name of the place where agents keep their session files. It is the same after each start.
    pub(crate) host: String,
}

/// Returns the default directory, if the environment names a place for data.
pub(crate) fn default_directory(inputs: &impl Inputs) -> Option<PathBuf> {
    let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = directory("XDG_DATA_HOME").or_else(|| Some(directory("HOME")?.join(".local/share")))?;
    Some(data.join("teamster"))
}

/// Creates a directory if it is missing, and locks it.
///
/// # Errors
/// Another gateway uses it, or it cannot be written.
pub(crate) fn open(path: &Path) -> Result<DataDir, DataDirError> {
    let unusable = |source| DataDirError::Unusable { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unusable)?;
    check_owner(path).map_err(unusable)?;
    let lock = path.join(LOCK);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(lock)
        .map_err(unusable)?;
    take_lock(&mut file, path)?;
    let pid = format!("{}\n", std::process::id());
    let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
    written.map_err(unusable)?;
    let host = host(&path.join("host")).map_err(unusable)?;
    // The lock ends when any descriptor of the file is closed, so there is only this one.
    Ok(DataDir { _lock: file, host })
}

/// Checks that a directory could be opened, and creates nothing.
///
/// # Errors
/// Another gateway uses it, or other users can write it.
pub(crate) fn check(path: &Path) -> Result<(), DataDirError> {
    let unusable = |source| DataDirError::Unusable { path: path.to_owned(), source };
    if !path.exists() {
        return Ok(());
    }
    check_owner(path).map_err(unusable)?;
    match OpenOptions::new().read(true).write(true).open(path.join(LOCK)) {
        Ok(mut file) => take_lock(&mut file, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(unusable(error)),
    }
}

/// Locks the file, until it is closed.
fn take_lock(file: &mut File, directory: &Path) -> Result<(), DataDirError> {
    match fcntl_lock(&*file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::ACCESS | Errno::AGAIN) => {
            let mut pid = String::new();
            // The other process may not have written it yet.
            _ = file.read_to_string(&mut pid);
            let pid = Some(pid.trim()).filter(|pid| !pid.is_empty()).unwrap_or("unknown").to_owned();
            Err(DataDirError::InUse { path: directory.to_owned(), pid })
        }
        Err(error) => Err(DataDirError::Unusable { path: directory.to_owned(), source: error.into() }),
    }
}

/// Checks that no other user can replace files of a directory.
fn check_owner(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user: name a directory of your own with --data-dir"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(io::Error::other(
            "other users can write it: chmod go-w, or name another directory with --data-dir",
        ));
    }
    Ok(())
}

/// Returns the name of this machine for the store. It is generated once.
fn host(file: &Path) -> io::Result<String> {
    match fs::read_to_string(file) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let name = Uuid::new_v4().to_string();
    let partial = file.with_extension("partial");
    let mut written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    written.write_all(format!("{name}\n").as_bytes())?;
    written.sync_all()?;
    fs::rename(&partial, file)?;
    Ok(name)
}

/// Returns the file with the first token.
pub(crate) fn token_file(directory: &Path) -> PathBuf {
    directory.join(TOKEN)
}

/// Reads the token of the operator.
///
/// # Errors
/// The file cannot be read or is empty.
pub(crate) fn read_token(directory: &Path) -> io::Result<String> {
    let text = fs::read_to_string(token_file(directory))?;
    let token = text.trim();
    if token.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty"));
    }
    Ok(token.to_owned())
}
