//! Instructions for agents: texts and files of the operator, with placeholders.
//!
//! Values of placeholders are chosen by strangers, so they are written as one line of quoted text. They cannot end a line,
//! start a heading or close a quotation.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use teamster::text::without_bom;
use teamster_store::{ConversationId, Timestamp};

use crate::config;
use crate::error::GatewayError;
use crate::event::rfc3339;

/// The largest file of instructions. Agents get them with every session.
const MAX_FILE: u64 = 256 << 10;

/// The longest value of a placeholder, in characters.
const MAX_VALUE: usize = 200;

/// The values of placeholders. Names and chats are chosen by strangers.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'a> {
    /// The channel.
    pub channel: &'a str,
    /// The chat.
    pub chat: &'a str,
    /// The author.
    pub author: &'a str,
    /// The conversation.
    pub conversation: ConversationId,
    /// The time.
    pub now: Timestamp,
}

/// The instructions of the operator.
#[derive(Debug, Default)]
pub struct Instructions {
    files: Vec<InstructionFile>,
}

/// A file, and its last content that could be read.
#[derive(Debug)]
struct InstructionFile {
    path: PathBuf,
    last: Mutex<Option<Content>>,
}

#[derive(Clone, Debug)]
struct Content {
    stamp: Stamp,
    text: String,
}

/// The attributes by which a change of the file is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Instructions {
    /// Uses the files of a configuration. They are read at their use.
    pub fn new(config: &config::Instructions) -> Self {
        let file = |path: &PathBuf| InstructionFile { path: path.clone(), last: Mutex::default() };
        Self { files: config.files.iter().map(file).collect() }
    }

    /// Reads all files, so that a missing one is an error of the start.
    ///
    /// # Errors
    /// A file cannot be read, is too large, or is not UTF-8.
    pub fn check(&self) -> Result<(), GatewayError> {
        self.files.iter().try_for_each(|file| {
            let refused = |error| GatewayError::Config(format!("instructions: {}: {error}", file.path.display()));
            file.read().map(|_| ()).map_err(refused)
        })
    }

    /// Returns the instructions of files and of `texts`, with placeholders replaced.
    ///
    /// Files that have changed are read again. A file that cannot be read keeps its last content, and the operator is warned.
    pub fn render(&self, texts: &[String], placeholders: &Placeholders<'_>) -> String {
        let files = self.files.iter().filter_map(InstructionFile::text);
        let parts = files.chain(texts.iter().cloned()).map(|part| replace(part.trim(), placeholders));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

impl InstructionFile {
    /// Returns the content, or the last one that could be read.
    fn text(&self) -> Option<String> {
        self.read().unwrap_or_else(|error| {
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|last| last.text.clone());
            let kept = if last.is_some() { "its last content is used" } else { "it is left out" };
            tracing::warn!(file = %self.path.display(), %error, "cannot read instructions; {kept}");
            last
        })
    }

    /// Reads the file if it has changed.
    fn read(&self) -> io::Result<Option<String>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&std::fs::metadata(&self.path)?);
        if let Some(last) = last.as_ref().filter(|last| last.stamp == stamp) {
            return Ok(Some(last.text.clone()));
        }
        let read = read(&self.path)?;
        let text = read.text.clone();
        *last = Some(read);
        Ok(Some(text))
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Reads a regular file. A pipe or a device would block the turn.
fn read(path: &Path) -> io::Result<Content> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|size| size > MAX_FILE) {
        let problem = format!("has more than {MAX_FILE} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    let text = String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "is not UTF-8"))?;
    let text = without_bom(&text).to_owned();
    Ok(Content { stamp: Stamp::of(&metadata), text })
}

/// Replaces the placeholders of a text. Values are not searched for placeholders.
fn replace(text: &str, placeholders: &Placeholders<'_>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        replaced.push_str(before);
        let found = after.split_once('}').and_then(|(name, after)| Some((value(name, placeholders)?, after)));
        if let Some((value, after)) = found {
            replaced.push_str(&value);
            rest = after;
        } else {
            replaced.push('{');
            rest = after;
        }
    }
    replaced.push_str(rest);
    replaced
}

fn value(name: &str, placeholders: &Placeholders<'_>) -> Option<String> {
    Some(match name {
        "channel" => quote(placeholders.channel),
        "chat" => quote(placeholders.chat),
        "author" => quote(placeholders.author),
        "conversation" => placeholders.conversation.to_string(),
        "time" => rfc3339(placeholders.now),
        _ => return None,
    })
}

/// Returns an untrusted value as one line of JSON text, in which all characters except plain ones are escaped.
fn quote(value: &str) -> String {
    let mut quoted = String::from('"');
    for (count, character) in value.chars().enumerate() {
        if count == MAX_VALUE {
            quoted.push_str("...");
            break;
        }
        if character.is_alphanumeric() || " -_.:@+#/=,".contains(character) {
            quoted.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                // Writing to a text cannot fail.
                _ = write!(quoted, "\\u{unit:04x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
