//! A user's home with a project, and scripted agents that are installed under their usual names.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// The directories of other programs, such as Git.
const SYSTEM: &str = "/usr/local/bin:/usr/bin:/bin";

/// A root directory with `home/dev`, the project `home/dev/app`, and `bin`.
pub(crate) struct Workspace {
    root: TempDir,
}

impl Workspace {
    /// The length of its path is always the same, since some lines are wrapped.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir_in("/tmp").unwrap();
        for name in ["bin", "home/dev/app"] {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_teamster"), root.path().join("bin/teamster")).unwrap();
        Self { root }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("home/dev/app")
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Installs a program that plays this scenario.
    pub(crate) fn install(&self, agent: &str, scenario: &str) {
        let script = self.path(format!("{agent}.toml"));
        std::fs::write(&script, scenario).unwrap();
        let (teamster, script) = (env!("CARGO_BIN_EXE_teamster"), script.to_str().unwrap());
        self.install_script(agent, &format!("exec {teamster} fake --agent {agent} --script {script} -- \"$@\""));
    }

    /// Installs a program that runs this shell script.
    pub(crate) fn install_script(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns `teamster` in the project, with only the installed programs.
    pub(crate) fn teamster(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/teamster"));
        command.args(args).env_clear().env("PATH", self.path("bin"));
        self.set_up(&mut command);
        command
    }

    /// Returns a line for a shell in the project. It is shown after a prompt, as if it had been typed.
    pub(crate) fn line(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "printf '$ %s\\n' \"$1\"; eval \"$1\"", "sh", line]);
        command.env_clear().env("PATH", format!("{}:{SYSTEM}", self.path("bin").to_str().unwrap()));
        self.set_up(&mut command);
        command
    }

    fn set_up(&self, command: &mut Command) {
        command.env("HOME", self.path("home/dev")).env("TEAMSTER_LEDGER_DIR", self.path("ledger"));
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").current_dir(self.project());
    }

    /// Replaces the path of the root, which differs each time.
    pub(crate) fn neutral(&self, text: &str) -> String {
        text.replace(self.root.path().to_str().unwrap(), "")
    }
}
