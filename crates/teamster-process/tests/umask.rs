//! The modes of created files under any umask. The umask belongs to the process, so this test has
//! its own process.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use rustix::{fs::Mode, process::umask};
use teamster_process::{Ledger, PrivateDir};

fn modes(directory: &Path) -> Vec<(bool, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        found.push((metadata.is_dir(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            found.extend(modes(&entry.path()));
        }
    }
    found
}

#[test]
fn private_files_and_the_ledger_have_their_modes_under_any_umask_and_are_removed() {
    for mask in [0o777, 0o277, 0o477, 0o177, 0o077] {
        let home = tempfile::tempdir().unwrap();
        umask(Mode::from_raw_mode(mask));
        let private = PrivateDir::create(Some(home.path()), "private-").unwrap();
        private.write("settings.json", b"{}").unwrap();
        let ledger = Ledger::in_directory(home.path().join("a/b/ledger"));
        let run = ledger.register("a run").unwrap();
        let files = run.private_dir().unwrap();
        files.write("secret", b"x").unwrap();
        let found = modes(home.path());
        // private, a, b, ledger, runs, the run's own, its files; and settings, entry, secret.
        assert_eq!(found.iter().filter(|(is_directory, _)| *is_directory).count(), 7, "{mask:o}: {found:?}");
        assert_eq!(found.len(), 10, "{mask:o}: {found:?}");
        for (is_directory, mode) in found {
            assert_eq!(mode, if is_directory { 0o700 } else { 0o600 }, "{mask:o}");
        }
        drop((private, files, run));
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["a"], "{mask:o}: the user's own directories may stay");
        assert!(!home.path().join("a/b/ledger").exists(), "{mask:o}");
    }
}
