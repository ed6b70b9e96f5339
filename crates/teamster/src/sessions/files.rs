//! Lists the sessions of a store with one file for each session.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use teamster_agents::agent::session_store::{SessionFiles, Variables};
use teamster_types::text::UntrustedText;

use super::found::Found;
use crate::stores::content::{Extent, MAX_LINE, MAX_START, open, read_candidate};
use crate::stores::search::{Filter, search};

/// The maximum number of names of sessions.
const MAX_NAMES: usize = 100_000;

/// Reads the sessions that match the query, the newest files first.
pub(super) fn read(store: &SessionFiles, variables: Variables<'_>, found: &mut Found<'_>) {
    let Some(root) = (store.root)(variables) else { return };
    let filter = Filter {
        directory: found.directory.as_ref(),
        id_prefix: found.id_prefix(),
        changed_after: found.updated_after(),
    };
    let candidates = search(store, &root, filter);
    for (path, reason) in candidates.skipped {
        found.skip(&path, reason);
    }
    let names = read_names(store, &root, found);
    for candidate in candidates.files {
        if found.is_full() {
            return;
        }
        let is_wanted = |directory: &Path| found.directory.as_ref().is_none_or(|wanted| wanted.is(directory));
        match read_candidate(store, &candidate, Extent::Whole, is_wanted) {
            Ok(Some((id, mut record))) => {
                record.title = names.get(&id).cloned().or(record.title);
                found.add(id, record);
            }
            Ok(None) => {}
            Err(reason) => found.skip(&candidate.path, reason),
        }
    }
}

/// Reads the names that people gave to sessions, by their ids.
fn read_names(store: &SessionFiles, root: &Path, found: &mut Found<'_>) -> HashMap<String, UntrustedText> {
    let mut names = HashMap::new();
    let Some(file) = &store.names else { return names };
    let path = root.join(file.path);
    let mut read = || -> io::Result<()> {
        let mut content = BufReader::new(open(&path)?.take(MAX_START));
        loop {
            let mut line = Vec::new();
            if (&mut content).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let entry = (file.read)(&line).filter(|_| names.len() < MAX_NAMES);
            names.extend(entry);
        }
    };
    match read() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => found.skip(&path, error),
        _ => {}
    }
    names
}
