//! Reads a file below the working directory of an agent.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

/// A file to send.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) media_type: String,
    pub(super) bytes: Vec<u8>,
}

/// Why a file is not sent. The agent reads it.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{} is not a file below the working directory", .0.display())]
    NotBelow(PathBuf),
    #[error("{} belongs to the gateway, which does not send its own files", .0.display())]
    Private(PathBuf),
    #[error("{} is not a regular file", .0.display())]
    NotRegular(PathBuf),
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{} cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
}

/// Reads a regular file below a directory. Symbolic links are resolved; their target must be below it too. `private` has real
/// paths: neither they nor what is below them is read.
pub(super) async fn read(
    directory: PathBuf,
    path: PathBuf,
    private: Vec<PathBuf>,
    limit: u64,
) -> Result<Found, FileError> {
    let named = path.clone();
    let work = tokio::task::spawn_blocking(move || read_now(&directory, &path, &private, limit));
    work.await.unwrap_or_else(|error| Err(FileError::Read { path: named, source: io::Error::other(error) }))
}

fn read_now(directory: &Path, path: &Path, private: &[PathBuf], limit: u64) -> Result<Found, FileError> {
    let not_below = || FileError::NotBelow(path.to_owned());
    let failed = |source| FileError::Read { path: path.to_owned(), source };
    let root = directory.canonicalize().map_err(failed)?;
    let real = root.join(path).canonicalize().map_err(|_| not_below())?;
    let relative = real.strip_prefix(&root).map_err(|_| not_below())?;
    if private.iter().any(|private| real.starts_with(private)) {
        return Err(FileError::Private(path.to_owned()));
    }
    // The path may change after it was resolved: this directory cannot be left.
    let inside = Dir::open_ambient_dir(&root, ambient_authority()).map_err(failed)?;
    let mut options = OpenOptions::new();
    // A pipe must not block the thread.
    options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = inside.open_with(relative, &options).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => failed(error),
        _ => not_below(),
    })?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(FileError::NotRegular(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limit {
        return Err(FileError::TooLarge { path: path.to_owned(), limit });
    }
    // The name that the agent has given is shown, not that of a link's target.
    let name = path.file_name().or_else(|| real.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let media_type = mime_guess::from_path(path).first_or_octet_stream().essence_str().to_owned();
    Ok(Found { name, media_type, bytes })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn outcome(directory: &Path, path: impl AsRef<Path>) -> Result<String, String> {
        let private = [directory.canonicalize().unwrap().join("private")];
        let found = read_now(directory, path.as_ref(), &private, 100).map_err(|error| error.to_string())?;
        Ok(format!("{} {} {}", found.name, found.media_type, String::from_utf8_lossy(&found.bytes)))
    }

    #[test]
    fn files_below_the_directory_are_read_by_each_of_their_paths() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("work");
        fs::create_dir_all(directory.join("sub")).unwrap();
        fs::write(directory.join("sub/a.txt"), "text").unwrap();
        symlink("sub/a.txt", directory.join("link.pdf")).unwrap();
        symlink(directory.join("sub"), directory.join("absolute")).unwrap();
        let expected = Ok("a.txt text/plain text".to_owned());
        assert_eq!(outcome(&directory, "sub/a.txt"), expected);
        assert_eq!(outcome(&directory, directory.join("sub/a.txt")), expected);
        assert_eq!(outcome(&directory, "sub/../absolute/a.txt"), expected);
        assert_eq!(outcome(&directory, "link.pdf"), Ok("link.pdf application/pdf text".to_owned()));
    }

    #[test]
    fn nothing_outside_the_directory_is_read() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("work");
        fs::create_dir(&directory).unwrap();
        let secret = temporary.path().join("secret");
        fs::write(&secret, "s3cret").unwrap();
        fs::create_dir(temporary.path().join("work-2")).unwrap();
        fs::write(temporary.path().join("work-2/a"), "s3cret").unwrap();
        symlink(&secret, directory.join("link")).unwrap();
        symlink("..", directory.join("up")).unwrap();
        for path in ["../secret", "link", "up/secret", "/etc/hostname", "../work-2/a", "missing", ""] {
            assert!(outcome(&directory, path).is_err(), "{path}");
        }
        assert!(outcome(&directory, &secret).is_err());
    }

    #[test]
    fn a_private_file_below_the_directory_is_not_read_by_any_of_its_paths() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path();
        fs::create_dir(directory.join("private")).unwrap();
        fs::create_dir(directory.join("private-2")).unwrap();
        fs::write(directory.join("private/token"), "s3cret").unwrap();
        fs::write(directory.join("private-2/note"), "text").unwrap();
        symlink("private/token", directory.join("link")).unwrap();
        symlink("private", directory.join("other")).unwrap();
        for path in ["private/token", "link", "other/token", "private-2/../private/token"] {
            let refused = outcome(directory, path).unwrap_err();
            assert!(refused.contains("belongs to the gateway"), "{path}: {refused}");
        }
        assert!(outcome(directory, directory.join("private/token")).is_err());
        assert_eq!(outcome(directory, "private-2/note"), Ok("note application/octet-stream text".to_owned()));
    }

    #[test]
    fn large_files_directories_and_pipes_are_refused() {
        let temporary = tempfile::tempdir().unwrap();
        fs::write(temporary.path().join("large"), vec![0; 101]).unwrap();
        fs::create_dir(temporary.path().join("directory")).unwrap();
        let pipe = temporary.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert_eq!(outcome(temporary.path(), "large"), Err("large has more than 100 bytes".to_owned()));
        assert_eq!(outcome(temporary.path(), "directory"), Err("directory is not a regular file".to_owned()));
        assert_eq!(outcome(temporary.path(), "pipe"), Err("pipe is not a regular file".to_owned()));
    }
}
