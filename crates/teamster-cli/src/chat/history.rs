//! The history file: the texts that were submitted in a directory. Only the user can read it.
//!
//! A file holds the texts of one directory, one JSON string per line, the oldest first.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The number of texts that are kept.
const KEPT: usize = 1000;

/// The number of texts at which the file is shortened.
const MAX_TEXTS: usize = 2 * KEPT;

/// The history file of a directory.
#[derive(Debug)]
pub(super) struct HistoryFile(Option<File>);

impl HistoryFile {
    /// Opens the file of a directory and returns its texts. Without a usable file, the history is empty and not stored.
    pub(super) fn open(directory: &Path) -> (Self, Vec<String>) {
        let opened = path(directory).and_then(|path| open(&path).ok());
        match opened {
            Some((file, texts)) => (Self(Some(file)), texts),
            None => (Self(None), Vec::new()),
        }
    }

    /// Appends a text. A text that starts with a space is not stored. An error is ignored: the text is sent anyway.
    pub(super) fn append(&mut self, text: &str) {
        if let Some(file) = &mut self.0
            && !text.starts_with(' ')
        {
            let line = format!("{}\n", serde_json::Value::from(text));
            _ = file.lock().and_then(|()| file.write_all(line.as_bytes()));
            _ = file.unlock();
        }
    }
}

/// Returns the path of the file for this directory.
fn path(directory: &Path) -> Option<PathBuf> {
    let base = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = base("XDG_STATE_HOME").or_else(|| Some(base("HOME")?.join(".local/state")))?;
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let is_plain = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.');
    let name: String = directory.file_name().unwrap_or_default().to_string_lossy().chars().filter(is_plain).collect();
    let name: String = name.trim_start_matches('.').chars().take(40).collect();
    let file = format!("{name}-{:016x}.jsonl", hash(directory.as_os_str().as_bytes()));
    Some(state.join("teamster/chat-history.d").join(file))
}

/// Returns the FNV-1a hash, which is the same in each version of the command.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn open(path: &Path) -> io::Result<(File, Vec<String>)> {
    if let Some(directory) = path.parent() {
        make_directories(directory)?;
    }
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the history is not a regular file"));
    }
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.lock()?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    // An incomplete line was left by a crash.
    let mut texts: Vec<String> =
        String::from_utf8_lossy(&content).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if texts.len() > MAX_TEXTS {
        texts.drain(..texts.len() - KEPT);
        let lines: Vec<String> = texts.iter().map(|text| serde_json::Value::from(text.as_str()).to_string()).collect();
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(format!("{}\n", lines.join("\n")).as_bytes())?;
    } else if !content.is_empty() && !content.ends_with(b"\n") {
        file.write_all(b"\n")?;
    }
    file.unlock()?;
    Ok((file, texts))
}

/// Creates missing directories with mode 0700, independent of the umask.
fn make_directories(directory: &Path) -> io::Result<()> {
    let missing: Vec<_> = directory.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_readable_by_its_owner_only_and_keeps_its_texts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/history");
        let (file, texts) = open(&path).unwrap();
        assert!(texts.is_empty());
        let mut history = HistoryFile(Some(file));
        history.append("two\nlines");
        history.append(" secret");
        history.append("\"quoted\"");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(open(&path).unwrap().1, ["two\nlines", "\"quoted\""]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_damaged_line_is_skipped_and_a_long_history_is_shortened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let mut lines: Vec<String> = (0..=MAX_TEXTS).map(|number| format!("\"{number}\"")).collect();
        lines.push("\"cut".to_owned());
        let content = lines.join("\n");
        std::fs::write(&path, content).unwrap();
        let (file, texts) = open(&path).unwrap();
        assert_eq!((texts.len(), texts.last().map(String::as_str)), (KEPT, Some("2000")));
        HistoryFile(Some(file)).append("new");
        assert_eq!(open(&path).unwrap().1.len(), KEPT + 1);
    }

    #[test]
    fn two_chats_in_a_directory_lose_no_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let (one, other) = (open(&path).unwrap().0, open(&path).unwrap().0);
        let append = |file: File, name: &'static str| {
            std::thread::spawn(move || {
                let mut history = HistoryFile(Some(file));
                (0..100).for_each(|number| history.append(&format!("{name} {number}")));
            })
        };
        for thread in [append(one, "a"), append(other, "b")] {
            thread.join().unwrap();
        }
        assert_eq!(open(&path).unwrap().1.len(), 200);
    }
}
