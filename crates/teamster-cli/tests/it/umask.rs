//! Runs under any umask, as a user who has no right but those that modes give.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::command::{ANSWER, capture, ended};

/// Everything below a directory.
fn below(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        found.push(entry.path().to_string_lossy().into_owned());
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        }
    }
    found
}

#[test]
fn a_run_works_and_leaves_nothing_whatever_the_umask_is() {
    for umask in ["0777", "0277", "0077"] {
        let temporary = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMPDIR", temporary.path());
        command.env("HOME", temporary.path()).env("FAKE_CLI", ANSWER).env("CAPTURE", capture("text"));
        command.env("BACKEND_CLI_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh"));
        command.args([
            "-c",
            "umask $0; exec \"$@\"",
            umask,
            env!("CARGO_BIN_EXE_teamster"),
            "run",
            "--output",
            "ndjson",
        ]);
        command.args(["--system-prompt", "A private file holds this.", "hi"]).current_dir("/").stdin(Stdio::null());
        if geteuid().is_root() {
            chown(temporary.path(), Some(65534), Some(65534)).unwrap();
            command.uid(65534).gid(65534);
        }
        let end = ended(command);
        assert_eq!(end.code, Some(0), "{umask}: {}{}", end.out, end.err);
        assert_eq!(below(temporary.path()), Vec::<String>::new(), "{umask}");
    }
}
