//! Finds one session in a store: by its id, or the one of a directory that was used last.

use std::path::PathBuf;
use std::time::SystemTime;

use teamster_agents::agent::SessionStore;
use teamster_agents::agent::session_store::{SessionFiles, SessionRecord, Variables};

use super::content::{Extent, read_candidate};
use super::search::{Filter, search};

/// What identifies a stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) directory: Option<PathBuf>,
    /// When it was used last.
    pub(crate) updated: Option<SystemTime>,
}

impl Found {
    fn new((id, record): (String, SessionRecord)) -> Self {
        Self { id, directory: record.directory, updated: record.updated }
    }
}

/// Whether this build can read a store, and the store exists.
pub(crate) fn is_readable(store: SessionStore, variables: Variables<'_>) -> bool {
    match store {
        SessionStore::Files(store) => (store.root)(variables).is_some_and(|root| root.is_dir()),
        SessionStore::Database(store) => {
            cfg!(feature = "sessions") && (store.path)(variables).is_some_and(|path| path.is_file())
        }
    }
}

/// Returns the session that was used last. A session that cannot be read is left out.
pub(crate) fn newest(store: SessionStore, variables: Variables<'_>, filter: Filter<'_>) -> Option<Found> {
    match store {
        SessionStore::Files(store) => newest_file(store, variables, filter),
        #[cfg(feature = "sessions")]
        SessionStore::Database(store) => {
            use super::database::{Wanted, read};
            let Filter { directory, id_prefix, changed_after } = filter;
            let rows = read(store, variables, Wanted { directory, id_prefix, limit: 1, with_exchange: false });
            let found = rows.sessions.into_iter().next().map(Found::new);
            found.filter(|found| changed_after.is_none() || found.updated > changed_after)
        }
        #[cfg(not(feature = "sessions"))]
        SessionStore::Database(_) => None,
    }
}

fn newest_file(store: &SessionFiles, variables: Variables<'_>, filter: Filter<'_>) -> Option<Found> {
    let root = (store.root)(variables)?;
    let mut newest: Option<Found> = None;
    for candidate in search(store, &root, filter).files {
        // The time of the last message is at most that of the file, unless the file was copied. Then more files are read.
        if newest.as_ref().is_some_and(|found| found.updated >= Some(candidate.modified)) {
            break;
        }
        let is_wanted = |stored: &std::path::Path| filter.directory.is_none_or(|directory| directory.is(stored));
        let Ok(Some(read)) = read_candidate(store, &candidate, Extent::Ends, is_wanted) else { continue };
        let found = Found::new(read);
        let is_there = filter.directory.is_none() || found.directory.is_some();
        let is_new = filter.changed_after.is_none() || found.updated > filter.changed_after;
        let is_newer = newest.as_ref().is_none_or(|newest| (found.updated, &found.id) > (newest.updated, &newest.id));
        if is_there && is_new && is_newer && found.id.starts_with(filter.id_prefix) {
            newest = Some(found);
        }
    }
    newest
}

/// Returns the session with this id. A session that cannot be read is not found.
pub(crate) fn find(store: SessionStore, variables: Variables<'_>, id: &str) -> Option<Found> {
    let filter = Filter { id_prefix: id, ..Filter::default() };
    match store {
        SessionStore::Files(store) => {
            let candidates = search(store, &(store.root)(variables)?, filter).files;
            let mut read = candidates.iter().filter_map(|candidate| {
                read_candidate(store, candidate, Extent::Ends, |_| true).ok().flatten().map(Found::new)
            });
            read.find(|found| found.id == id)
        }
        #[cfg(feature = "sessions")]
        SessionStore::Database(store) => {
            use super::database::{Wanted, read};
            let wanted = Wanted { directory: None, id_prefix: id, limit: 16, with_exchange: false };
            let rows = read(store, variables, wanted);
            rows.sessions.into_iter().find(|(found, _)| found == id).map(Found::new)
        }
        #[cfg(not(feature = "sessions"))]
        SessionStore::Database(_) => None,
    }
}
