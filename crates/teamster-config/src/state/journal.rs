//! The journal of a file: its content before the first merge, and the states that merges gave it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileRecord, JOURNAL, hash};
use crate::document::{Entries, Location};
use crate::error::{ConfigError, io_error};
use crate::target::Content;

const VERSION: u32 = 1;

/// The journal of a file that contains entries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Journal {
    version: u32,
    /// The resolved path of the file.
    pub(crate) path: OsString,
    #[serde(alias = "place")] // its name in version 1 before the first release
    pub(crate) location: Location,
    /// The initial content without entries, if a merge created the file.
    pub(crate) template: String,
    /// The hash of the user's content, which is the name of a file beside the journal. `None` if the file did not exist.
    base: Option<String>,
    /// The states that stand for the user's content, the newest first: those that were written, and those that they replaced.
    pub(crate) states: Vec<State>,
    /// The directory below which the file's path must contain no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<OsString>,
    /// The directories that were created for the file.
    pub(crate) made: Vec<OsString>,
    /// The name of the temporary file of a replacement.
    pub(crate) temporary: OsString,
}

/// The part that the journals of all versions have in common.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A content of the file, and the entries in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// `None` if there is no file.
    hash: Option<String>,
    pub(crate) entries: Entries,
}

impl State {
    pub(crate) fn of(content: &Content, entries: Entries) -> Self {
        Self { hash: hash_of(content), entries }
    }
}

impl Journal {
    pub(crate) fn new(
        path: &Path,
        (location, template): (&Location, &str),
        base: &Content,
        states: Vec<State>,
    ) -> Self {
        let random: String = std::iter::repeat_with(random_letter).take(12).collect();
        Self {
            version: VERSION,
            path: path.as_os_str().to_owned(),
            location: location.clone(),
            template: template.to_owned(),
            base: hash_of(base),
            states,
            within: None,
            made: Vec::new(),
            temporary: format!(".teamster-{random}.tmp").into(),
        }
    }

    /// Returns `None` if there is no journal. Then nothing was changed.
    pub(crate) fn load(record: &FileRecord) -> Result<Option<Self>, ConfigError> {
        Self::load_from(&record.directory)
    }

    pub(crate) fn load_from(directory: &Path) -> Result<Option<Self>, ConfigError> {
        let path = directory.join(JOURNAL);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let problem = match serde_json::from_slice::<Version>(&bytes) {
            Ok(Version { version: VERSION }) => match serde_json::from_slice(&bytes) {
                Ok(journal) => return Ok(Some(journal)),
                Err(_) => "is damaged; restore the file by hand from what is beside it",
            },
            Ok(_) => "is of a newer version; restore with that one",
            Err(_) => "is damaged; restore the file by hand from what is beside it",
        };
        Err(ConfigError::Journal { path, problem })
    }

    /// Writes the journal. Writes the user's content before it, if it is not saved yet.
    pub(crate) fn save(&self, record: &FileRecord, base: &Content, step: fn(&'static str)) -> Result<(), ConfigError> {
        if let (Content::Bytes(bytes), Some(name)) = (base, &self.base)
            && !record.directory.join(name).exists()
        {
            record.write(name, bytes)?;
            step("the original is saved");
        }
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        record.write(JOURNAL, &bytes)?;
        step("the journal is written");
        Ok(())
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }

    /// Returns the directory below which the path must contain no link.
    pub(crate) fn within(&self) -> Option<PathBuf> {
        self.within.as_ref().map(PathBuf::from)
    }

    /// Returns the user's content.
    pub(crate) fn base(&self, record: &FileRecord) -> Result<Content, ConfigError> {
        let Some(name) = &self.base else { return Ok(Content::Absent) };
        let path = record.directory.join(name);
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        if hash(&bytes) == *name {
            return Ok(Content::Bytes(bytes));
        }
        Err(ConfigError::Journal { path, problem: "is damaged: it is not what was saved" })
    }

    /// Returns the state with this content: one that was written, or the user's own content without entries.
    pub(crate) fn state_of(&self, content: &Content) -> Option<State> {
        let hash = hash_of(content);
        let known = self.states.iter().find(|state| state.hash == hash).cloned();
        known.or_else(|| (self.base == hash).then(|| State { hash, entries: Entries::new() }))
    }

    /// Returns all sets of entries that may be in the file, the newest first.
    pub(crate) fn put(&self) -> Vec<Entries> {
        self.states.iter().map(|state| state.entries.clone()).collect()
    }
}

fn hash_of(content: &Content) -> Option<String> {
    match content {
        Content::Absent => None,
        Content::Bytes(bytes) => Some(hash(bytes)),
    }
}

/// Returns a letter from the seed of the standard library's hash maps.
fn random_letter() -> char {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let letter = RandomState::new().build_hasher().finish() % 26;
    char::from(b'a' + u8::try_from(letter).unwrap_or_default())
}
