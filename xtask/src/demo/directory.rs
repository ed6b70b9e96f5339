//! The directories of the demo.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

/// A home, a project and a directory for temporary files.
pub(super) struct DemoDirectory {
    root: tempfile::TempDir,
}

impl DemoDirectory {
    pub(super) fn new() -> Result<Self> {
        let root = tempfile::Builder::new().prefix("teamster-demo-").tempdir();
        let directory = Self { root: root.context("cannot create a temporary directory")? };
        for folder in [directory.home(), directory.project(), directory.temporary()] {
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        for (name, text) in [("README.md", "# A folder to read\n"), ("main.rs", "fn main() {}\n")] {
            let file = directory.project().join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(directory)
    }

    /// Sets the directories and the environment of the command. It inherits only the variables that a terminal needs.
    pub(super) fn apply(&self, command: &mut Command) {
        for name in ["PATH", "LANG", "LC_ALL", "TERM", "COLORTERM", "NO_COLOR"] {
            if let Some(value) = env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", self.home()).env("TMPDIR", self.temporary()).current_dir(self.project());
    }

    pub(super) fn remove(self) -> Result<()> {
        self.root.close().context("cannot remove the temporary directory")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }
}
