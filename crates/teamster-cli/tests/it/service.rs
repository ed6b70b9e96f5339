//! The unit for systemd in `packaging/systemd`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{command, ended};

pub(crate) fn unit() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd/teamster.service")).unwrap()
}

/// Returns the values of a setting.
pub(crate) fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

#[test]
#[expect(clippy::disallowed_macros, reason = "the line is for the person who runs the test")]
fn systemd_accepts_the_unit() {
    let found = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        assert!(std::env::var_os("CI").is_none(), "systemd-analyze is missing (get it: apt-get install systemd)");
        eprintln!("skipped: systemd-analyze is not installed (get it: apt-get install systemd)");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("teamster.service");
    // Programs of the unit must exist.
    fs::write(&file, unit().replace("/usr/local/bin/teamster", env!("CARGO_BIN_EXE_teamster"))).unwrap();
    let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
    let problems = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && problems.is_empty(), "{problems}");
}

#[test]
fn a_stop_by_systemd_waits_longer_than_the_shutdown() {
    let unit = unit();
    let [stop] = values(&unit, "TimeoutStopSec")[..] else { panic!("one time limit") };
    let config = teamster_gateway::config::Config::default();
    // `serve` itself waits 15 seconds longer.
    assert!(stop.parse::<u64>().unwrap() > config.timing.shutdown_timeout.as_secs() + 15, "{stop}");
    assert_eq!(values(&unit, "KillMode"), ["mixed"]);
}

#[test]
fn the_command_accepts_the_arguments_of_the_unit() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.toml");
    let unit = unit();
    let commands = [values(&unit, "ExecStart"), values(&unit, "ExecStartPre")].concat();
    assert_eq!(commands.len(), 2);
    for line in commands {
        let line = line.strip_prefix("/usr/local/bin/teamster serve ").unwrap();
        let line = line.replace("/etc/teamster/config.toml", missing.to_str().unwrap());
        let line = line.replace("/var/lib/teamster", directory.path().to_str().unwrap());
        let ended = ended(command("serve", "", &line.split(' ').collect::<Vec<_>>()));
        // The arguments are accepted, and then the file is missing.
        assert!(ended.err.contains("missing.toml"), "{}", ended.err);
        assert!(!ended.err.contains("unexpected argument"), "{}", ended.err);
    }
}
