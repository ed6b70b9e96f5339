//! Writes a configuration file: all of it or nothing, with its permissions, and only if it is still as it was read.

use std::fs::{DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::error::is_absent;

/// A text that starts with it is read without it.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The mode of a new file: it may get secrets.
const PRIVATE: u32 = 0o600;

/// A file that is locked against other commands, and its text.
#[derive(Debug)]
pub(super) struct LockedFile {
    /// The file itself, not a link to it.
    path: PathBuf,
    /// The bytes; `None` if there is no file.
    bytes: Option<Vec<u8>>,
    /// The lock of its directory.
    _lock: File,
}

impl LockedFile {
    /// Locks a file and reads it. It may be missing.
    ///
    /// # Errors
    /// Its directory cannot be created or locked, or the file cannot be read.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = target(path)?;
        let directory = directory_of(&path);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let lock = File::open(directory)?;
        lock.lock()?;
        let bytes = read(&path)?;
        Ok(Self { path, bytes, _lock: lock })
    }

    /// Returns the text, without a byte order mark. A missing file is empty.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub(super) fn text(&self) -> io::Result<&str> {
        let bytes = self.bytes.as_deref().unwrap_or_default();
        let text = std::str::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))?;
        Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
    }

    /// Replaces the file. Its mode and its owner stay. A file without permission to write is kept.
    ///
    /// # Errors
    /// The file cannot be written, or another program has changed it. Then it is as before.
    pub(super) fn replace(self, text: &str) -> io::Result<()> {
        let metadata = match std::fs::metadata(&self.path) {
            Ok(metadata) => Some(metadata),
            Err(error) if is_absent(&error) => None,
            Err(error) => return Err(error),
        };
        if metadata.as_ref().is_some_and(|metadata| metadata.mode() & 0o222 == 0) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
        }
        let directory = directory_of(&self.path);
        let mut file = tempfile::Builder::new().prefix(".teamster-config-").tempfile_in(directory)?;
        if self.bytes.as_deref().is_some_and(|bytes| bytes.starts_with(BYTE_ORDER_MARK.as_bytes())) {
            file.write_all(BYTE_ORDER_MARK.as_bytes())?;
        }
        file.write_all(text.as_bytes())?;
        let mode = metadata.as_ref().map_or(PRIVATE, |metadata| metadata.mode() & 0o7777);
        if let Some(metadata) = &metadata {
            let own = file.as_file().metadata()?;
            if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
                std::os::unix::fs::fchown(file.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
        }
        file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        if read(&self.path)? != self.bytes {
            return Err(io::Error::other("another program has changed it meanwhile: try again"));
        }
        file.persist(&self.path).map_err(|error| error.error)?;
        File::open(directory)?.sync_all()
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
        }
        Ok(_) => std::fs::read(path).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Follows links to the file, which may be missing.
fn target(path: &Path) -> io::Result<PathBuf> {
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&path) {
            Ok(link) => path = directory_of(&path).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}
