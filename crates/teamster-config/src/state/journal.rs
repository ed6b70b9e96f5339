//! The journal of a file: what it was before the first merge, and what we made of it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Station, hash};
use crate::document::{Entries, Place};
use crate::error::{ConfigError, io_error};
use crate::target::Content;

pub(crate) const NAME: &str = "journal.json";

const VERSION: u32 = 1;

/// What is known of a file into which entries were put.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Journal {
    version: u32,
    /// The file's own path.
    pub(crate) path: OsString,
    pub(crate) place: Place,
    /// What the file holds beside entries, if we made it.
    pub(crate) template: String,
    /// The user's content, by its hash, which is the name of a file beside the journal; or there was no file.
    base: Option<String>,
    /// Contents that stand for the user's one, the newest first: what we wrote, and what it was written over.
    pub(crate) states: Vec<State>,
    /// The directory below which the file's path must hold no link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<OsString>,
    /// Directories that we made for the file.
    pub(crate) made: Vec<OsString>,
    /// The name of a file that is there for a moment while the file is replaced.
    pub(crate) temporary: OsString,
}

/// What every version's journal has.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A content of the file, and which entries are in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// `None` where there is no file.
    hash: Option<String>,
    pub(crate) entries: Entries,
}

impl State {
    pub(crate) fn of(content: &Content, entries: Entries) -> Self {
        Self { hash: hash_of(content), entries }
    }
}

impl Journal {
    pub(crate) fn new(path: &Path, (place, template): (&Place, &str), base: &Content, states: Vec<State>) -> Self {
        let random: String = std::iter::repeat_with(random_letter).take(12).collect();
        Self {
            version: VERSION,
            path: path.as_os_str().to_owned(),
            place: place.clone(),
            template: template.to_owned(),
            base: hash_of(base),
            states,
            within: None,
            made: Vec::new(),
            temporary: format!(".teamster-{random}.tmp").into(),
        }
    }

    /// `None` if there is none: nothing was changed then.
    pub(crate) fn load(station: &Station) -> Result<Option<Self>, ConfigError> {
        Self::load_from(&station.directory)
    }

    pub(crate) fn load_from(directory: &Path) -> Result<Option<Self>, ConfigError> {
        let path = directory.join(NAME);
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

    /// Writes it, and before that the content of the user, if that is not there yet.
    pub(crate) fn save(&self, station: &Station, base: &Content, step: fn(&'static str)) -> Result<(), ConfigError> {
        if let (Content::Bytes(bytes), Some(name)) = (base, &self.base)
            && !station.directory.join(name).exists()
        {
            station.write(name, bytes)?;
            step("the original is saved");
        }
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        station.write(NAME, &bytes)?;
        step("the journal is written");
        Ok(())
    }

    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(&self.path)
    }

    /// The directory below which the path must hold no link.
    pub(crate) fn within(&self) -> Option<PathBuf> {
        self.within.as_ref().map(PathBuf::from)
    }

    /// The user's content.
    pub(crate) fn base(&self, station: &Station) -> Result<Content, ConfigError> {
        let Some(name) = &self.base else { return Ok(Content::Absent) };
        let path = station.directory.join(name);
        let bytes = fs::read(&path).map_err(io_error("read", &path))?;
        if hash(&bytes) == *name {
            return Ok(Content::Bytes(bytes));
        }
        Err(ConfigError::Journal { path, problem: "is damaged: it is not what was saved" })
    }

    /// Which state a content is of. Any of ours, or the user's own, which has no entries of ours.
    pub(crate) fn state_of(&self, content: &Content) -> Option<State> {
        let hash = hash_of(content);
        let known = self.states.iter().find(|state| state.hash == hash).cloned();
        known.or_else(|| (self.base == hash).then(|| State { hash, entries: Entries::new() }))
    }

    /// All that may have been put into the file, the newest first.
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

/// Of what the standard library's hash maps are seeded with.
fn random_letter() -> char {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let letter = RandomState::new().build_hasher().finish() % 26;
    char::from(b'a' + u8::try_from(letter).unwrap_or_default())
}
