//! Finds the files of sessions in a store with one file for each session.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use teamster_agents::agent::session_store::{IdPart, SessionFiles};

use super::directory::Directory;

/// The maximum number of entries of directories.
const MAX_ENTRIES: usize = 500_000;

/// Which files may be wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filter<'a> {
    /// Only sessions of this working directory.
    pub(crate) directory: Option<&'a Directory>,
    /// Only sessions whose id starts with this text.
    pub(crate) id_prefix: &'a str,
    /// Only files that were changed after this time.
    pub(crate) changed_after: Option<SystemTime>,
}

/// A file that may be a wanted session.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) id: IdPart,
    pub(crate) modified: SystemTime,
}

/// The files that were found, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) files: Vec<Candidate>,
    /// Files and directories that cannot be read, with the reason.
    pub(crate) skipped: Vec<(PathBuf, String)>,
}

/// Searches the directory of a store.
pub(crate) fn search(store: &SessionFiles, root: &Path, filter: Filter<'_>) -> Candidates {
    let mut search = Search { store, root, filter, entries: 0, found: Candidates::default() };
    search.directory(root, store.depth);
    let mut found = search.found;
    found.files.sort_by(|one, other| (other.modified, &other.path).cmp(&(one.modified, &one.path)));
    found
}

struct Search<'a> {
    store: &'a SessionFiles,
    root: &'a Path,
    filter: Filter<'a>,
    /// The number of entries that were read.
    entries: usize,
    found: Candidates,
}

impl Search<'_> {
    fn skip(&mut self, path: &Path, reason: impl std::fmt::Display) {
        self.found.skipped.push((path.to_owned(), reason.to_string()));
    }

    /// Searches a directory, in which files are this many levels below.
    fn directory(&mut self, directory: &Path, depth: usize) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            // The agent was never used, or a file has the name of a directory.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return,
            Err(error) => return self.skip(directory, error),
        };
        for entry in entries {
            self.entries += 1;
            if self.entries > MAX_ENTRIES {
                return self.skip(directory, "there are too many files");
            }
            match entry {
                Ok(entry) if depth > 0 => self.directory(&entry.path(), depth - 1),
                Ok(entry) => self.file(entry.path()),
                Err(error) => return self.skip(directory, error),
            }
        }
    }

    fn file(&mut self, path: PathBuf) {
        let relative = path.strip_prefix(self.root).unwrap_or(&path);
        let filter = self.filter;
        let Some(id) = (self.store.id)(relative).filter(|id| id.may_begin_with(filter.id_prefix)) else { return };
        let may_belong = filter.directory.is_none_or(|directory| {
            directory.forms().into_iter().any(|directory| (self.store.may_belong)(relative, directory))
        });
        if !may_belong {
            return;
        }
        match fs::metadata(&path) {
            Ok(metadata) => {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                if filter.changed_after.is_none_or(|after| modified > after) {
                    self.found.files.push(Candidate { path, id, modified });
                }
            }
            Err(error) => self.skip(&path, error),
        }
    }
}
