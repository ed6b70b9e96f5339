//! What a request names on disk: its directories and attachments.

use std::path::{Path, PathBuf};

use teamster_types::request::{Attachment, RequestError, RunRequest};

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

/// Makes a relative path of the CLI absolute. It refers to the directory of this process, not to that of the run, which may be
/// untrusted. A name without a slash is searched in PATH.
pub(super) fn absolute_program(request: &mut RunRequest) -> Result<(), RunError> {
    let Some(path) = request.cli_path.as_mut() else { return Ok(()) };
    if path.is_relative() && path.components().count() > 1 {
        *path = std::env::current_dir().map_err(RunError::NoWorkingDirectory)?.join(&*path);
    }
    Ok(())
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
    attachments: &mut [Attachment],
    cwd: PathBuf,
) -> Result<(), RequestError> {
    let is_path = |attachment: &&mut Attachment| matches!(attachment, Attachment::Path(_));
    let mut paths: Vec<_> = attachments.iter_mut().filter(is_path).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let mut read: Vec<Attachment> = paths.iter().map(|attachment| (**attachment).clone()).collect();
    // After an error, all attachments are as they were.
    let read = blocking(move || read_attachments(&mut read, &cwd).map(|()| read)).await?;
    for (attachment, data) in paths.iter_mut().zip(read) {
        **attachment = data;
    }
    Ok(())
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
            let mut attachments = vec![Attachment::Path(name.into())];
            let read = read_attachments_on_thread(&mut attachments, home.path().to_owned()).await;
            read.map(|()| attachments)
        };
        let notes = Attachment::Data { name: "notes.txt".to_owned(), data: b"three lines".to_vec() };
        assert_eq!(read("notes.txt").await.unwrap(), [notes]);
        for (name, problem) in [("missing.txt", "No such file"), (".", "not a regular file")] {
            let error = read(name).await.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(problem), "{error}");
        }
    }
}
