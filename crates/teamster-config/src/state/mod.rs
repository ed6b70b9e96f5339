//! The state of merges on disk: a directory and a lock for each edited file.
//!
//! Invariants: only this user can enter the directory; a journal is complete or does not exist; the state of a file is changed
//! only with its lock held.

pub(crate) mod holder;
pub(crate) mod journal;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use crate::error::{ConfigError, io_error};
use crate::modes::{self, make_file_private};
use crate::target::sync_directory;

/// The maximum wait for other holders of a lock, which hold it for some milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// The directory of the original contents of files that could not be restored.
const KEPT: &str = "kept";

/// The name of the journal of a file.
const JOURNAL: &str = "journal.json";

const LOCK_SUFFIX: &str = ".lock";

/// The state of an edited file, with its lock held.
#[derive(Debug)]
pub(crate) struct FileRecord {
    /// It may not exist.
    pub(crate) directory: PathBuf,
    lock_path: PathBuf,
    root: PathBuf,
    _lock: File,
}

impl FileRecord {
    /// Locks the state of a file. Creates the directory for journals if it does not exist.
    pub(crate) fn of(root: &Path, file: &Path) -> Result<Self, ConfigError> {
        make_private(root)?;
        let name = hash(file.as_os_str().as_encoded_bytes());
        Self::named(root, name.get(..32).unwrap_or_default())
    }

    pub(crate) fn named(root: &Path, name: &str) -> Result<Self, ConfigError> {
        let lock_path = root.join(format!("{name}{LOCK_SUFFIX}"));
        let lock = lock(&lock_path)?;
        Ok(Self { directory: root.join(name), lock_path, root: root.to_owned(), _lock: lock })
    }

    /// Returns the names of all states. Returns none if the directory does not exist.
    pub(crate) fn all(root: &Path) -> Result<Vec<String>, ConfigError> {
        match fs::symlink_metadata(root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            _ => check_private(root)?,
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(root).map_err(io_error("read", root))? {
            let name = entry.map_err(io_error("read", root))?.file_name();
            let name = name.to_string_lossy();
            let name = name.strip_suffix(LOCK_SUFFIX).unwrap_or(&name);
            if name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                names.push(name.to_owned());
            }
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    pub(crate) fn make(&self) -> Result<(), ConfigError> {
        make_private(&self.directory)
    }

    /// Writes a complete file durably.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), ConfigError> {
        write_synced(&self.directory, name, bytes)
    }

    /// Keeps the original content of a file for its user. Returns its path.
    pub(crate) fn keep(&self, file: &Path, original: &[u8]) -> Result<PathBuf, ConfigError> {
        let directory = self.root.join(KEPT);
        make_private(&directory)?;
        let hash = hash(original);
        let file_name = file.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{}-{file_name}", hash.get(..12).unwrap_or_default());
        write_synced(&directory, &name, original)?;
        Ok(directory.join(name))
    }

    /// Removes the state. The journal is removed first: without it, nothing counts as changed.
    pub(crate) fn remove(self, step: fn(&'static str)) -> Result<(), ConfigError> {
        let cannot = |path: &Path, result: io::Result<()>| match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", path)(error)),
            _ => Ok(()),
        };
        let journal = self.directory.join(JOURNAL);
        cannot(&journal, fs::remove_file(&journal))?;
        step("the journal is removed");
        cannot(&self.directory, fs::remove_dir_all(&self.directory))?;
        step("the directory is removed");
        cannot(&self.lock_path, fs::remove_file(&self.lock_path))
    }
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        _ = std::fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
        text
    })
}

fn write_synced(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), ConfigError> {
    let path = directory.join(name);
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(directory)?; // mode 0600
        make_file_private(file.as_file())?;
        crate::file_size::check(bytes)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&path)?;
        sync_directory(directory)
    };
    write().map_err(io_error("write", &path))
}

/// Takes the lock. The last holder removes its file, so the lock is taken again if the path names another file.
fn lock(path: &Path) -> Result<File, ConfigError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let file = open_lock(path).map_err(io_error("open", path))?;
        match file.try_lock() {
            Ok(()) => {
                let same =
                    |there: &fs::Metadata, ours: &fs::Metadata| (there.dev(), there.ino()) == (ours.dev(), ours.ino());
                let ours = file.metadata().map_err(io_error("open", path))?;
                if fs::symlink_metadata(path).is_ok_and(|there| same(&there, &ours)) {
                    return Ok(file);
                }
            }
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(io_error("lock", path)(error)),
        }
        if Instant::now() > deadline {
            return Err(ConfigError::Busy { path: path.to_owned() });
        }
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    let file = options.open(path)?;
    make_file_private(&file)?;
    Ok(file)
}

/// Creates a directory that only this user can enter, and its missing parents.
fn make_private(path: &Path) -> Result<(), ConfigError> {
    modes::make_private(path).map_err(io_error("make", path))?;
    check_private(path)
}

fn check_private(path: &Path) -> Result<(), ConfigError> {
    let metadata = fs::symlink_metadata(path).map_err(io_error("read", path))?;
    let problem = if !metadata.is_dir() {
        "it is a link or no directory"
    } else if metadata.uid() != geteuid().as_raw() {
        "it belongs to another user"
    } else if metadata.mode() & 0o077 != 0 {
        "other users may enter it; `chmod 700` it"
    } else {
        return Ok(());
    };
    Err(ConfigError::Refused { path: path.to_owned(), problem })
}
