//! What a request names on disk: its directories and attachments.

use std::path::{Path, PathBuf};

use teamster_types::request::{Attachment, RequestError};

use super::RunError;
use crate::threads::blocking;

/// The maximum size of an attachment, in bytes: the most that a vendor accepts in one request.
const MAX_ATTACHMENT_BYTES: u64 = 32 << 20;

/// Returns the absolute working directory of a request.
pub(crate) fn working_directory(asked: Option<&Path>) -> Result<PathBuf, RunError> {
    let own = || std::env::current_dir().map_err(RunError::NoWorkingDirectory);
    let cwd = match asked {
        Some(path) if path.is_absolute() => path.to_owned(),
        Some(path) => own()?.join(path),
        None => own()?,
    };
    directory("cwd", &cwd)?;
    Ok(cwd)
}

/// Checks that a path is a directory.
pub(super) fn directory(field: &'static str, path: &Path) -> Result<(), RequestError> {
    if path.is_dir() {
        return Ok(());
    }
    Err(RequestError::NotADirectory { field, path: path.display().to_string() })
}

/// Replaces the paths of attachments with the contents of the files. Blocks until the disk has answered.
pub(crate) fn read_attachments(attachments: &mut [Attachment], cwd: &Path) -> Result<(), RequestError> {
    attachments.iter_mut().try_for_each(|attachment| read_attachment(attachment, cwd))
}

/// Replaces the paths of attachments with the contents of the files, on a thread that may wait for the disk.
pub(crate) async fn read_attachments_on_thread(
    mut attachments: Vec<Attachment>,
    cwd: PathBuf,
) -> Result<Vec<Attachment>, RequestError> {
    if attachments.iter().all(|attachment| matches!(attachment, Attachment::Data { .. })) {
        return Ok(attachments);
    }
    blocking(move || read_attachments(&mut attachments, &cwd).map(|()| attachments)).await
}

fn read_attachment(attachment: &mut Attachment, cwd: &Path) -> Result<(), RequestError> {
    let Attachment::Path(path) = attachment else { return Ok(()) };
    let wrong = |problem: String| RequestError::Attachment { name: path.display().to_string(), problem };
    let whole = cwd.join(&*path);
    let size = std::fs::metadata(&whole).map_err(|error| wrong(error.to_string()))?;
    if !size.is_file() {
        return Err(wrong("it is not a regular file".to_owned()));
    }
    if size.len() > MAX_ATTACHMENT_BYTES {
        return Err(wrong(format!("it has {} bytes; the maximum is {MAX_ATTACHMENT_BYTES}", size.len())));
    }
    let data = std::fs::read(&whole).map_err(|error| wrong(error.to_string()))?;
    let name = whole.file_name().unwrap_or_default().to_string_lossy().into_owned();
    *attachment = Attachment::Data { name, data };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_of_attachments_are_read_on_a_thread_and_errors_name_the_file() {
        let home = teamster_process::PrivateDir::create(None, "attachments").unwrap();
        std::fs::write(home.path().join("notes.txt"), "three lines").unwrap();
        let read = async |name: &str| {
            read_attachments_on_thread(vec![Attachment::Path(name.into())], home.path().to_owned()).await
        };
        let notes = Attachment::Data { name: "notes.txt".to_owned(), data: b"three lines".to_vec() };
        assert_eq!(read("notes.txt").await.unwrap(), [notes]);
        for (name, problem) in [("missing.txt", "No such file"), (".", "not a regular file")] {
            let error = read(name).await.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(problem), "{error}");
        }
    }
}
