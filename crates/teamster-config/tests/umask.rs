//! What is made under any umask. The umask is the process's, so that this test has a process of its own.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::umask;
use teamster_config::document::{Format, Location};
use teamster_config::{Merge, RestoreLog, RestoreOutcome};

fn modes(directory: &Path, found: &mut Vec<(bool, u32)>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        found.push((metadata.is_dir(), metadata.permissions().mode() & 0o777));
        if metadata.is_dir() {
            modes(&entry.path(), found);
        }
    }
}

#[test]
fn files_and_directories_get_their_modes_whatever_the_umask_is_and_are_gone_afterwards() {
    for mask in [0o777, 0o277, 0o477, 0o177, 0o077] {
        let home = tempfile::tempdir().unwrap();
        umask(Mode::from_raw_mode(mask));
        let journals = RestoreLog::in_directory(home.path().join("a/state/journals"));
        let merge = Merge {
            path: home.path().join("project/.agent/settings.json"),
            location: Location { format: Format::Jsonc, at: vec!["servers".to_owned()] },
            entries: [("ours".to_owned(), serde_json::json!({"command": "x"}))].into(),
            template: String::new(),
            by: "a run".to_owned(),
            within: None,
        };
        let merged = journals.merge(&merge).unwrap();
        let mut found = Vec::new();
        modes(home.path(), &mut found);
        // a, state, journals, the file's own, project, .agent; and in them the lock, holder, journal and file.
        assert_eq!(found.iter().filter(|(is_directory, _)| *is_directory).count(), 6, "{mask:o}: {found:?}");
        for (is_directory, mode) in found {
            assert_eq!(mode, if is_directory { 0o700 } else { 0o600 }, "{mask:o}");
        }
        assert_eq!(merged.restore().unwrap().how, RestoreOutcome::Exactly);
        assert!(!home.path().join("project").exists());
        assert_eq!(fs::read_dir(journals.directory()).unwrap().count(), 0);
    }
}
