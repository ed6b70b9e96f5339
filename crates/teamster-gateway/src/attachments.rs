//! Attachments, stored by the hash of their content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// An attachment of a message, as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAttachment {
    /// The sender's file name, for people only.
    pub name: String,
    /// The media type, as the sender states it.
    pub media_type: String,
    /// The hash of the content: SHA-256 in hexadecimal digits.
    pub hash: String,
    /// The size in bytes.
    pub size: u64,
}

/// The files of a data directory. A file's name is the hash of its content, so that no sender can choose it.
#[derive(Clone, Debug)]
pub struct Attachments {
    directory: Arc<Path>,
    /// The largest size of all files in bytes.
    limit: u64,
    /// The size of all files. `None` before the first one is added: it is read from the disk then.
    used: Arc<Mutex<Option<u64>>>,
}

impl Attachments {
    /// Uses this directory. It is created with the first file.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into().into(), limit: u64::MAX, used: Arc::default() }
    }

    /// Limits the size of all files in bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Stores a content durably, and returns its hash.
    ///
    /// # Errors
    /// The disk cannot be written, or the files would be larger than the limit (`QuotaExceeded`).
    pub async fn put(&self, bytes: Vec<u8>) -> io::Result<String> {
        let files = self.clone();
        on_thread(move || {
            let hash = base16ct::lower::encode_string(&Sha256::digest(&bytes));
            let path = path_of(&files.directory, &hash).ok_or_else(|| io::Error::other("invalid hash"))?;
            if mark_used(&path).is_ok() {
                return Ok(hash);
            }
            let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            files.reserve(size)?;
            let written = write(path.parent().unwrap_or(&files.directory), &path, &bytes);
            if written.is_err() {
                files.release(size);
            }
            written.map(|()| hash)
        })
        .await
    }

    /// Deletes the files that were not stored for this long, and returns their number.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub async fn remove_older(&self, age: Duration) -> io::Result<usize> {
        let files = self.clone();
        on_thread(move || {
            let before = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
            let mut removed = 0;
            for (path, metadata) in stored(&files.directory)? {
                if metadata.modified()? < before && std::fs::remove_file(&path).is_ok() {
                    files.release(metadata.len());
                    removed += 1;
                }
            }
            Ok(removed)
        })
        .await
    }

    /// Returns the hashes of the contents that were stored or named by a message last before a time.
    pub async fn unused_since(&self, time: SystemTime) -> io::Result<Vec<String>> {
        let directory = Arc::clone(&self.directory);
        on_thread(move || {
            let files = stored(&directory)?.into_iter();
            let unused = files.filter(|(_, metadata)| metadata.modified().is_ok_and(|used| used < time));
            Ok(unused.filter_map(|(path, _)| hash_of(&path)).collect())
        })
        .await
    }

    /// Deletes contents, but none that was used after a time.
    pub async fn delete_unused(&self, hashes: Vec<String>, time: SystemTime) -> io::Result<()> {
        let files = self.clone();
        on_thread(move || {
            for path in hashes.iter().filter_map(|hash| path_of(&files.directory, hash)) {
                let metadata = std::fs::metadata(&path)?;
                // A message may have used it meanwhile.
                if metadata.modified()? < time {
                    std::fs::remove_file(path)?;
                    files.release(metadata.len());
                }
            }
            Ok(())
        })
        .await
    }

    fn reserve(&self, size: u64) -> io::Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match *used {
            Some(used) => used,
            None => stored(&self.directory)?.iter().map(|(_, metadata)| metadata.len()).sum(),
        };
        let after = now.saturating_add(size);
        *used = Some(if after > self.limit { now } else { after });
        if after > self.limit { Err(io::ErrorKind::QuotaExceeded.into()) } else { Ok(()) }
    }

    fn release(&self, size: u64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.map(|used| used.saturating_sub(size));
    }

    /// Returns the size of a content in bytes. The file is then kept as long as a new one, because a message will refer
    /// to it.
    pub async fn size(&self, hash: &str) -> io::Result<u64> {
        let path = path_of(&self.directory, hash)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this is not the hash of a file"))?;
        on_thread(move || mark_used(&path)).await
    }

    /// Reads a content.
    pub async fn get(&self, hash: &str) -> io::Result<Vec<u8>> {
        let path = path_of(&self.directory, hash)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this is not the hash of a file"))?;
        on_thread(move || std::fs::read(path)).await
    }
}

fn write(parent: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    std::fs::create_dir_all(parent)?;
    let mut file = tempfile::NamedTempFile::new_in(parent)?;
    io::Write::write_all(&mut file, bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    std::fs::File::open(parent)?.sync_all()
}

/// Records that a content is used now, and returns its size.
fn mark_used(path: &Path) -> io::Result<u64> {
    let file = std::fs::File::options().write(true).open(path)?;
    file.set_modified(SystemTime::now())?;
    Ok(file.metadata()?.len())
}

/// Returns all files, also those that a crash has left. A file that is being deleted is skipped.
fn stored(directory: &Path) -> io::Result<Vec<(PathBuf, std::fs::Metadata)>> {
    let entries = |directory: &Path| match std::fs::read_dir(directory) {
        Ok(entries) => entries.collect::<io::Result<Vec<_>>>(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    };
    let mut found = Vec::new();
    for folder in entries(directory)? {
        if folder.file_type()?.is_dir() {
            let files = entries(&folder.path())?;
            found.extend(files.iter().filter_map(|file| Some((file.path(), file.metadata().ok()?))));
        }
    }
    Ok(found)
}

/// Returns the hash of the content of a file. `None` if it is another file, such as one that a crash has left.
fn hash_of(path: &Path) -> Option<String> {
    let (directory, folder, file) = (path.parent()?.parent()?, path.parent()?.file_name()?, path.file_name()?);
    let hash = format!("{}{}", folder.to_str()?, file.to_str()?);
    (path_of(directory, &hash)? == path).then_some(hash)
}

/// Returns the path of a content. `None` if the text is not a hash.
fn path_of(directory: &Path, hash: &str) -> Option<PathBuf> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let (start, rest) = (hash.get(..2)?, hash.get(2..)?);
    (hash.len() == 64 && hash.bytes().all(is_digit)).then(|| directory.join(start).join(rest))
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_content_is_found_by_its_hash_only() {
        let directory = tempfile::tempdir().unwrap();
        let files = Attachments::in_directory(directory.path());
        let hash = files.put(b"hello".to_vec()).await.unwrap();
        assert_eq!(hash, files.put(b"hello".to_vec()).await.unwrap());
        assert_eq!(files.get(&hash).await.unwrap(), b"hello");
        assert_eq!(files.size(&hash).await.unwrap(), 5);
        for other in ["", "../../etc/passwd", "ab", &"g".repeat(64), &hash.to_uppercase()] {
            assert_eq!(files.get(other).await.unwrap_err().kind(), io::ErrorKind::NotFound, "{other}");
        }
    }

    #[tokio::test]
    async fn all_files_have_a_limit_also_after_a_restart_and_deleted_ones_make_room() {
        let directory = tempfile::tempdir().unwrap();
        let files = || Attachments::in_directory(directory.path()).with_limit(10);
        let first = files();
        let hash = first.put(b"123456".to_vec()).await.unwrap();
        first.put(b"123456".to_vec()).await.expect("the same content is stored once");
        for files in [first.clone(), files()] {
            let refused = files.put(b"abcdef".to_vec()).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::QuotaExceeded);
        }
        first.put(b"abcd".to_vec()).await.unwrap();
        assert_eq!(first.remove_older(Duration::from_hours(1)).await.unwrap(), 0);
        let old = std::fs::File::options().write(true).open(path_of(directory.path(), &hash).unwrap()).unwrap();
        old.set_modified(SystemTime::now() - Duration::from_hours(2)).unwrap();
        assert_eq!(first.remove_older(Duration::from_hours(1)).await.unwrap(), 1);
        assert_eq!(first.get(&hash).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        first.put(b"abcdef".to_vec()).await.unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn other_users_cannot_read_a_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let files = Attachments::in_directory(directory.path());
        let hash = files.put(b"hello".to_vec()).await.unwrap();
        let mode = std::fs::metadata(path_of(directory.path(), &hash).unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[tokio::test]
    async fn a_content_is_deleted_only_if_it_was_not_used_since_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let files = Attachments::in_directory(directory.path().join("files"));
        assert_eq!(files.unused_since(SystemTime::now()).await.unwrap(), [""; 0]);
        let (old, used) = (files.put(b"old".to_vec()).await.unwrap(), files.put(b"used".to_vec()).await.unwrap());
        let hour_ago = SystemTime::now() - Duration::from_hours(1);
        for hash in [&old, &used] {
            let path = path_of(&files.directory, hash).unwrap();
            std::fs::File::options().write(true).open(path).unwrap().set_modified(hour_ago).unwrap();
        }
        let time = SystemTime::now() - Duration::from_mins(30);
        let mut unused = files.unused_since(time).await.unwrap();
        unused.sort_unstable();
        let mut both = vec![old.clone(), used.clone()];
        both.sort_unstable();
        assert_eq!(unused, both);
        // A message names it, before it is deleted.
        assert_eq!(files.size(&used).await.unwrap(), 4);
        files.delete_unused(unused, time).await.unwrap();
        assert!(files.get(&old).await.is_err());
        assert_eq!(files.get(&used).await.unwrap(), b"used");
    }
}
