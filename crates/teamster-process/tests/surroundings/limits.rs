//! Hosts that may open few files.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use teamster_process::Ledger;

use crate::host_in;

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial!(a_registration_leaves_nothing_with_any_number_of_descriptors)]
}

fn a_registration_leaves_nothing_with_any_number_of_descriptors() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let outcomes: Vec<_> = (4..12)
        .map(|descriptors| {
            let seen = host_in(&format!("ulimit -n {descriptors}; exec \"$HOST\" register '{}'", ledger.display()));
            let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(left.is_empty(), "{descriptors}: {left:?}, {seen}");
            seen
        })
        .collect();
    for outcome in ["registered", "not registered"] {
        assert!(outcomes.iter().any(|seen| seen.lines().any(|line| line == outcome)), "{outcomes:?}");
    }
}

/// Registers a run, and removes it.
pub(crate) fn register(ledger: &str) {
    let run = Ledger::in_directory(Path::new(ledger)).register("claude");
    println!("{}", if run.is_ok() { "registered" } else { "not registered" });
}
