//! The directories whose project files are used: a list in the user's state directory, one path per line.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::error::{ConfigError, is_absent};
use crate::plan::Inputs;

/// Returns the file of the list.
pub(crate) fn list_file(inputs: &impl Inputs) -> Option<PathBuf> {
    let directory = |name: &str| inputs.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")))?;
    Some(state.join("teamster/trusted-projects"))
}

/// Returns the trusted directories.
///
/// # Errors
/// The list exists and cannot be read.
pub(crate) fn trusted(inputs: &mut impl Inputs) -> Result<Vec<PathBuf>, ConfigError> {
    let Some(file) = list_file(inputs) else { return Ok(Vec::new()) };
    match inputs.file(&file) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(PathBuf::from).collect()),
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        Err(source) => Err(ConfigError::Unreadable { file, source }),
    }
}

/// Adds a directory to the list, or removes it. Returns whether the list has changed.
///
/// # Errors
/// The list cannot be read or written, or the path cannot be a line of it.
pub(super) fn change(file: &Path, directory: &Path, is_trusted: bool) -> io::Result<bool> {
    let invalid = |problem| io::Error::new(io::ErrorKind::InvalidInput, problem);
    let line = directory.to_str().ok_or_else(|| invalid("the path is not UTF-8"))?;
    // The end of a line may be `\r\n`.
    if line.contains(['\n', '\r']) {
        return Err(invalid("the path contains a line break"));
    }
    if let Some(parent) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut list = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(file)?;
    // Two commands at once must not lose an entry.
    list.lock()?;
    let mut text = String::new();
    list.read_to_string(&mut text)?;
    let mut lines: Vec<&str> = text.lines().filter(|known| *known != line).collect();
    let was_trusted = text.lines().any(|known| known == line);
    if was_trusted == is_trusted {
        return Ok(false);
    }
    if is_trusted {
        lines.push(line);
    }
    let text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    list.seek(SeekFrom::Start(0))?;
    list.write_all(text.as_bytes())?;
    list.set_len(text.len() as u64)?;
    list.sync_all()?;
    Ok(true)
}
