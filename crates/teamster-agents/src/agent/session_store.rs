//! The stores in which the CLIs keep their sessions: where they are, and how their content is read.
//!
//! Nothing here opens a file. The crate `teamster` finds and opens the stores, read-only, and passes their content to the
//! readers. Content is untrusted: every reader accepts arbitrary bytes, and its memory is bounded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::agent::line::with_json;
use teamster_types::text::UntrustedText;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The maximum bytes of a prompt or an answer in a [`SessionRecord`]. The rest is cut off.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// The maximum characters of a title.
const MAX_TITLE_CHARS: usize = 200;

/// The maximum bytes of an id, a path or a name.
const MAX_NAME_BYTES: usize = 4096;

/// Returns the value of an environment variable of the agent, if it is set and not empty.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// How an agent's CLI stores its sessions.
#[derive(Clone, Copy, Debug)]
pub enum SessionStore {
    /// One file for each session.
    Files(&'static SessionFiles),
    /// An SQLite database.
    Database(&'static SessionDatabase),
}

/// A store with one file for each session. A file contains one JSON document per line; if its name ends with `.zst`, it is
/// compressed with Zstandard.
#[derive(Debug)]
pub struct SessionFiles {
    /// Returns the directory of the store.
    pub root: fn(Variables<'_>) -> Option<PathBuf>,
    /// The levels of directories between the directory of the store and the files.
    pub depth: usize,
    /// Returns what the path of a file shows about the id of its session; `None` if the file is no session. The path is
    /// relative to the directory of the store.
    pub id: fn(&Path) -> Option<IdPart>,
    /// Whether a file, with such a path, may be a session of a working directory.
    pub may_belong: fn(&Path, &Path) -> bool,
    /// The file that names the working directory, relative to the directory of a session's file.
    pub directory_file: Option<&'static str>,
    /// The file with the names that people gave to sessions.
    pub names: Option<NamesFile>,
    /// Creates a reader for one file.
    pub reader: fn() -> Box<dyn SessionReader>,
}

/// A file with the names that people gave to sessions, one in each line. The last line with an id counts.
#[derive(Debug)]
pub struct NamesFile {
    /// The path, relative to the directory of the store.
    pub path: &'static str,
    /// Returns the id and the name in a line.
    pub read: fn(&[u8]) -> Option<(String, UntrustedText)>,
}

/// What the name of a file shows about the id of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdPart {
    /// The id.
    Whole(String),
    /// The id starts with this text.
    Start(String),
}

impl IdPart {
    /// Whether the id may start with a prefix.
    pub fn may_begin_with(&self, prefix: &str) -> bool {
        match self {
            Self::Whole(id) => id.starts_with(prefix),
            Self::Start(start) => start.starts_with(prefix) || prefix.starts_with(start.as_str()),
        }
    }
}

/// A store in an SQLite database.
#[derive(Debug)]
pub struct SessionDatabase {
    /// Returns the path of the database.
    pub path: fn(Variables<'_>) -> Option<PathBuf>,
    /// The query of sessions, the newest first. Its columns are: id, title, directory, model, cost in US dollars, time of
    /// creation and of the last change in milliseconds, number of turns. Its parameters are: 1 and 2 two forms of the
    /// working directory, or null; 3 a prefix of the id; 4 the maximum number of rows.
    pub sessions: &'static str,
    /// The query of the last texts of a session, the newest first. Its columns are: role (`user` or `assistant`), id of the
    /// message, text. Its parameter is the id of the session.
    pub texts: &'static str,
    /// Returns the name of the model in the column of the first query.
    pub model: fn(&str) -> Option<String>,
}

/// Reads the lines of one file.
pub trait SessionReader {
    /// Reads one line, without its line end.
    fn line(&mut self, line: &[u8]);

    /// A line was too long, so it was not read.
    fn skipped_line(&mut self) {}

    /// Returns the working directory, once it was read.
    fn directory(&self) -> Option<&Path> {
        None
    }

    /// Whether a prompt of a person was read.
    fn has_prompt(&self) -> bool;

    /// Returns the time in the last line that has one, as it is stored.
    fn last_time(&self) -> Option<&str>;

    /// Returns the session; `None` if the file has no prompt of a person, such as the file of a subagent.
    ///
    /// # Errors
    /// The file is not a session of this agent.
    fn finish(self: Box<Self>) -> Result<Option<SessionRecord>, NotASession>;
}

/// A file that is not a session of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a session of {0}")]
pub struct NotASession(pub &'static str);

/// The content of a stored session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRecord {
    /// The id, if the content has it.
    pub id: Option<String>,
    /// The title: the person's, the agent's, or the start of the first prompt.
    pub title: Option<UntrustedText>,
    /// The working directory.
    pub directory: Option<PathBuf>,
    /// The model of the last answer.
    pub model: Option<String>,
    /// The cost in US dollars.
    pub cost_usd: Option<f64>,
    /// When the session was created.
    pub created: Option<SystemTime>,
    /// When the last message was stored.
    pub updated: Option<SystemTime>,
    /// The number of prompts; `None` if a part of the content could not be read.
    pub turns: Option<u64>,
    /// The last prompt and its answer.
    pub last_exchange: Exchange,
}

/// The last prompt of a session, and its answer. Long texts are cut off at [`MAX_TEXT_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exchange {
    /// The prompt.
    pub prompt: Option<UntrustedText>,
    /// The last message of the answer.
    pub answer: Option<UntrustedText>,
    /// The message to which the answer belongs.
    message: String,
}

impl Exchange {
    /// Starts an exchange with a prompt.
    pub fn start(&mut self, prompt: &str) {
        *self = Self { prompt: Some(start_of(prompt, MAX_TEXT_BYTES).into()), ..Self::default() };
    }

    /// Adds a text of the answer. A text of another message replaces the answer, a text of the same message is appended.
    pub fn answer(&mut self, message: &str, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        match &mut self.answer {
            Some(answer) if !message.is_empty() && self.message == message => {
                let room = MAX_TEXT_BYTES.saturating_sub(answer.len() + 1);
                answer.push_str("\n");
                answer.push_str(start_of(text, room));
            }
            answer => {
                *answer = Some(start_of(text, MAX_TEXT_BYTES).into());
                start_of(message, MAX_NAME_BYTES).clone_into(&mut self.message);
            }
        }
    }
}

/// Returns the title for a prompt: its start, on one line. `None` if the prompt is blank.
pub fn title_of(prompt: &str) -> Option<UntrustedText> {
    let mut title = String::new();
    let mut room = MAX_TITLE_CHARS;
    for word in start_of(prompt, MAX_TEXT_BYTES).split_whitespace() {
        if !title.is_empty() {
            // A space needs a character after it.
            if room < 2 {
                title.push('…');
                break;
            }
            title.push(' ');
            room -= 1;
        }
        let count = word.chars().count();
        title.extend(word.chars().take(room));
        if count > room {
            title.push('…');
            break;
        }
        room -= count;
    }
    Some(title).filter(|title| !title.is_empty()).map(Into::into)
}

/// Returns the name of a file, if it is UTF-8.
pub(crate) fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// Returns the start of a text, with at most this many bytes.
pub(crate) fn start_of(text: &str, max_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default()
}

/// Returns a text that is short enough for an id, a path or a name.
pub(crate) fn name_of(text: &str) -> Option<String> {
    Some(text).filter(|text| !text.is_empty() && text.len() <= MAX_NAME_BYTES).map(str::to_owned)
}

/// Parses a time in RFC 3339.
pub(crate) fn time_of(text: &str) -> Option<SystemTime> {
    let time = OffsetDateTime::parse(start_of(text, 64), &Rfc3339).ok()?;
    let milliseconds = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()?;
    time_of_milliseconds(milliseconds)
}

/// Returns the time with this number of milliseconds since 1970.
pub fn time_of_milliseconds(milliseconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

/// Returns a directory that a variable names, or one under the home directory.
pub(crate) fn directory(variables: Variables<'_>, variable: &str, default: &str) -> Option<PathBuf> {
    match variables(variable) {
        Some(directory) => Some(directory.into()),
        None => Some(PathBuf::from(variables("HOME")?).join(default)),
    }
}

/// Whether a text has the form of a UUID.
pub(crate) fn is_uuid(text: &str) -> bool {
    let is_valid = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_valid)
}

/// Reads a line of a session file. A damaged line does not make the others unreadable. Returns whether the line has content.
pub(crate) fn read_line(line: &[u8], read: impl FnOnce(&str) -> serde_json::Result<()>) -> bool {
    let has_content = !line.trim_ascii().is_empty();
    if has_content {
        _ = with_json(line, read);
    }
    has_content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_start_of_a_prompt_on_one_line() {
        let title = |prompt: &str| title_of(prompt).map(UntrustedText::into_string);
        assert_eq!(title(" Fix\n\tthe  test\n"), Some("Fix the test".to_owned()));
        assert_eq!(title(" \n"), None);
        let long = title(&"é".repeat(1000)).unwrap();
        assert_eq!(long.chars().count(), 201);
        assert!(long.ends_with('…'));
        let full = title(&format!("{} next", "a".repeat(200))).unwrap();
        assert_eq!((full.chars().count(), full.ends_with("a…")), (201, true));
    }

    #[test]
    fn the_answer_is_the_last_message() {
        let mut exchange = Exchange::default();
        exchange.start("Hi");
        exchange.answer("a", "Let me look.");
        exchange.answer("b", "Found it.");
        exchange.answer("b", "Done.");
        exchange.answer("c", "  ");
        assert_eq!(exchange.answer.as_deref(), Some("Found it.\nDone."));
        exchange.start("And?");
        assert_eq!((exchange.prompt.as_deref(), exchange.answer), (Some("And?"), None));
    }

    #[test]
    fn the_start_of_an_id_in_a_files_name_excludes_other_ids() {
        let start = IdPart::Start("0ba1884a".to_owned());
        assert!(start.may_begin_with("0ba1") && start.may_begin_with("0ba1884a-861b"));
        assert!(!start.may_begin_with("0ba2") && !start.may_begin_with("0ba1884b-861b"));
        assert!(!IdPart::Whole("abc".to_owned()).may_begin_with("abcd"));
    }
}
