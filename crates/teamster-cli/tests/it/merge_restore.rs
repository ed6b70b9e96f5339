//! A host is killed at any moment of a run that changes a configuration file, while another run lives. After the end of the other
//! run and `teamster doctor --restore`, the file has its original bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::command::{ended, teamster, wait};

/// Kills of each format. (More of them, and at each single step, are in `teamster-config`.)
const KILLS: u32 = 25;

/// The script of the run that is killed. It takes longer than any test.
const STAYS: &str = "sleep 60";

struct Home {
    folder: tempfile::TempDir,
    agent: &'static str,
    file: PathBuf,
    theirs: &'static str,
}

impl Home {
    fn new(agent: &'static str, file: &str, theirs: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::create_dir_all(folder.path().join("project")).unwrap();
        fs::write(&file, theirs).unwrap();
        Self { folder, agent, file, theirs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Sets the directories of the command to this home.
    fn at_home(&self, mut command: Command) -> Command {
        command.env("HOME", self.folder.path()).env("XDG_STATE_HOME", self.path("state"));
        command.env("TEAMSTER_LEDGER_DIR", self.path("ledger"));
        command
    }

    /// Starts a run with a server of this name.
    fn run(&self, server: &str, script: &str) -> Child {
        let servers = format!(r#"{{"{server}": {{"command": "/bin/true"}}}}"#);
        let cwd = self.path("project");
        let args = [
            "-a",
            self.agent,
            "-C",
            cwd.to_str().unwrap(),
            "--permission=full",
            "--mcp-delivery=merge-restore",
            "--mcp-config",
        ];
        let mut command = self.at_home(teamster(script, &[&args[..], &[&servers, "x"]].concat()));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn is_theirs(&self) -> bool {
        fs::read_to_string(&self.file).unwrap() == self.theirs
    }

    /// Kills one run after a time, while another run ends by itself after its time. Returns whether the file had to be restored.
    fn kill(&self, after: Duration, other: Duration, other_is_first: bool) -> bool {
        let lives = format!("sleep {}", other.as_secs_f64());
        let first = other_is_first.then(|| self.run("other", &lives));
        let mut killed = self.run("killed", STAYS);
        let mut lives = first.unwrap_or_else(|| self.run("other", &lives));
        sleep(after);
        killed.kill().unwrap();
        killed.wait().unwrap();
        wait(&mut lives);
        let needed = !self.is_theirs();
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_teamster"));
        doctor.env_clear().args(["doctor", "--restore"]);
        let report = ended(self.at_home(doctor));
        assert_eq!(report.code, Some(0), "{}{}", report.out, report.err);
        assert_eq!(fs::read_to_string(&self.file).unwrap(), self.theirs, "{}", report.out);
        needed
    }
}

/// Whether the directory contains no other file.
fn is_alone(file: &Path) -> bool {
    fs::read_dir(file.parent().unwrap()).unwrap().count() == 1
}

/// Kills at random moments. Some of them leave entries to restore.
fn killed_at_any_moment(agent: &'static str, file: &str, theirs: &'static str) {
    let mut runner = TestRunner::new(Config { cases: KILLS, failure_persistence: None, ..Config::default() });
    let moments = (0..300_u64, 0..200_u64, any::<bool>());
    let result = runner.run(&moments, |(after, other, other_is_first)| {
        let home = Home::new(agent, file, theirs);
        home.kill(Duration::from_millis(after), Duration::from_millis(other), other_is_first);
        prop_assert!(is_alone(&home.file));
        Ok(())
    });
    result.unwrap();
    // If the run is killed long after the other one has ended, `doctor` must restore the file.
    let leaves = |_| Home::new(agent, file, theirs).kill(Duration::from_secs(1), Duration::ZERO, true);
    assert!((0..20).any(leaves), "no kill happened while the file was changed");
}

#[test]
fn a_host_killed_at_any_moment_leaves_codexs_configuration_as_it_was() {
    killed_at_any_moment("codex", ".codex/config.toml", "# mine\r\nmodel = \"m\" # c\n[mcp_servers]\n# none\n");
}

#[test]
fn a_host_killed_at_any_moment_leaves_gemini_clis_settings_as_they_were() {
    killed_at_any_moment(
        "gemini",
        "project/.gemini/settings.json",
        "{\n\t// mine\n\t\"ui\": {\"hideTips\": true,},\n}",
    );
}

#[test]
fn a_host_killed_at_any_moment_leaves_opencodes_configuration_as_it_was() {
    let theirs = "{\n  // mine\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n  },\n}\r\n";
    killed_at_any_moment("opencode", "project/opencode.jsonc", theirs);
}
