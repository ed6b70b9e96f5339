//! Attachments, stored by the hash of their content.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
}

impl Attachments {
    /// Uses this directory. It is created with the first file.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into().into() }
    }

    /// Stores a content durably, and returns its hash.
    pub async fn put(&self, bytes: Vec<u8>) -> io::Result<String> {
        let directory = Arc::clone(&self.directory);
        on_thread(move || {
            let hash = base16ct::lower::encode_string(&Sha256::digest(&bytes));
            let path = path_of(&directory, &hash).ok_or_else(|| io::Error::other("invalid hash"))?;
            if path.exists() {
                return Ok(hash);
            }
            let parent = path.parent().unwrap_or(&directory);
            std::fs::create_dir_all(parent)?;
            let mut file = tempfile::NamedTempFile::new_in(parent)?;
            io::Write::write_all(&mut file, &bytes)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            std::fs::File::open(parent)?.sync_all()?;
            Ok(hash)
        })
        .await
    }

    /// Returns the size of a content in bytes.
    pub async fn size(&self, hash: &str) -> io::Result<u64> {
        let path = path_of(&self.directory, hash)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this is not the hash of a file"))?;
        on_thread(move || Ok(std::fs::metadata(path)?.len())).await
    }

    /// Reads a content.
    pub async fn get(&self, hash: &str) -> io::Result<Vec<u8>> {
        let path = path_of(&self.directory, hash)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this is not the hash of a file"))?;
        on_thread(move || std::fs::read(path)).await
    }
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
}
