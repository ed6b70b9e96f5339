//! `teamster config set` and `teamster config unset`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{Ended, ended};

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(".config/teamster/config.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
    }

    fn teamster(&self, args: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.folder.path()).args(args);
        ended(std::mem::replace(command.stdin(Stdio::null()).current_dir(self.folder.path()), Command::new("true")))
    }

    fn set(&self, args: &[&str]) -> Ended {
        self.teamster(&[&["config", "set"], args].concat())
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_value_is_written_below_its_example_and_every_other_line_stays() {
    let home = Home::new();
    home.teamster(&["config", "init"]);
    let before = home.text();
    let set = home.set(&["usage_journal", "~/usage.ndjson"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    let after = home.text();
    assert!(after.contains("# usage_journal = \"FILE\"\nusage_journal = \"~/usage.ndjson\"\n"), "{after}");
    assert_eq!(
        after.replace("usage_journal = \"~/usage.ndjson\"\n", ""),
        before.replace("usage_journal = \"~/usage.ndjson\"\n", "")
    );
    let line = after.lines().position(|line| line.starts_with("usage_journal")).unwrap() + 1;
    assert!(set.out.contains(&format!("config.toml:{line}: usage_journal = \"~/usage.ndjson\"")), "{}", set.out);
    // The block that broke every command once.
    let usage = home.teamster(&["usage"]);
    assert!(usage.out.contains("has no runs"), "{} {}", usage.out, usage.err);
    assert_eq!(home.teamster(&["config", "unset", "usage_journal"]).code, Some(0));
    assert_eq!(home.text(), before);
    let usage = home.teamster(&["usage"]);
    assert!(
        usage.out.contains("teamster config set usage_journal '~/.local/state/teamster/usage.ndjson'"),
        "{}",
        usage.out
    );
}

#[test]
fn values_have_the_types_of_their_keys() {
    let home = Home::new();
    for (args, line) in [
        (&["model", "5"][..], "model = \"5\""),
        (&["max-turns", "20"], "max_turns = 20"),
        (&["max-budget", "0.5"], "max_budget = 0.5"),
        (&["mcp_strict", "true"], "mcp_strict = true"),
        (&["timeout", "5m"], "timeout = \"5m\""),
        (&["allow_tool", "Bash(git diff:*)"], "allow_tool = [\"Bash(git diff:*)\"]"),
        (&["add_dir", "/a", "/b"], "add_dir = [\n  \"/a\",\n  \"/b\",\n]"),
        (&["env", "{ A = '1' }"], "env = { A = '1' }"),
        (&["profiles.review.permission", "read-only"], "[profiles.review]\npermission = \"read-only\""),
        (&["serve.limits.max_running", "4"], "[serve.limits]\nmax_running = 4"),
        (&["effort", "low", "--config", ".config/teamster/config.toml"], "effort = \"low\""),
        (&["serve.listen", "127.0.0.1:4780"], "listen = \"127.0.0.1:4780\""),
    ] {
        let set = home.set(args);
        assert_eq!(set.code, Some(0), "{args:?}: {}", set.err);
        assert!(home.text().contains(line), "{args:?}: {}", home.text());
    }
    assert_eq!(mode(&home.file()), 0o600);
    let shown = home.teamster(&["config", "show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
}

#[test]
fn a_value_that_is_not_valid_is_not_written() {
    let home = Home::new();
    home.write("[defaults]\nmodel = 'm' # mine\n");
    let before = home.text();
    for (args, problem) in [
        (&["max_turns", "many"][..], "max_turns: invalid value \"many\": a whole number from 1 is needed"),
        (&["permission", "all"], "permission: invalid value \"all\": use read-only, ask, edit, full"),
        (&["resume", "x"], "resume: it belongs to one call: use --resume"),
        (&["modle", "x"], "unknown setting \"modle\"; did you mean \"model\"?"),
        (&["serve.limits.max_runing", "4"], "did you mean \"max_running\"?"),
        (&["profile.x.model", "m"], "unknown setting \"profile.x.model\"; did you mean \"profiles\"?"),
        (&["model", "a", "b"], "model has one value"),
        (&["defaults", "x"], "unknown setting \"defaults\""),
        (&["allow_tool", "Bash("], "the closing bracket is missing"),
    ] {
        let set = home.set(args);
        assert_eq!(set.code, Some(2), "{args:?}: {} {}", set.out, set.err);
        assert!(set.err.contains(problem), "{args:?}: {}", set.err);
        assert_eq!(home.text(), before);
    }
}

#[test]
fn a_file_with_an_error_is_kept_and_the_error_names_its_lines() {
    let home = Home::new();
    home.teamster(&["config", "init"]);
    let text = home.text() + "[defaults]\nusage_journal = 'x'\n";
    home.write(&text);
    let open = text.lines().position(|line| line == "[defaults]").unwrap() + 1;
    let again = text.lines().count() - 1;
    let expected = format!("config.toml:{again}: [defaults] is already open in line {open}: move these lines there");
    for args in [&["config", "set", "model", "m"][..], &["run", "hi"], &["usage"]] {
        let refused = home.teamster(args);
        assert_eq!(refused.code, Some(2), "{args:?}");
        assert!(refused.err.contains(&expected), "{args:?}: {}", refused.err);
    }
    assert_eq!(home.text(), text);
    home.write("[defaults]\nmodel = 'a'\n[profiles.p]\nmodel = 'b'\n\nmodel = 'c'\n");
    let twice = home.set(&["effort", "low"]);
    assert!(twice.err.contains("config.toml:6: the key \"model\" is set twice, first in line 4"), "{}", twice.err);
    // A wrong value can be corrected.
    home.write("[defaults]\nmodel = 5\n");
    let shown = home.teamster(&["run", "hi"]);
    assert!(shown.err.contains("config.toml:2: model: a text is needed: model = \"5\""), "{}", shown.err);
    assert_eq!(home.set(&["model", "m"]).code, Some(0));
    assert_eq!(home.text(), "[defaults]\nmodel = \"m\"\n");
    home.write("[profile.x]\nmodel = 'm'\n");
    let wrong = home.teamster(&["run", "hi"]);
    assert!(wrong.err.contains("config.toml:1: unknown table [profile.x]: write [profiles.x]"), "{}", wrong.err);
}

#[test]
fn a_link_stays_a_link_and_the_mode_of_the_file_is_kept() {
    let home = Home::new();
    let real = home.folder.path().join("dotfiles.toml");
    fs::write(&real, "\u{feff}[defaults]\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(home.file().parent().unwrap()).unwrap();
    symlink("../../dotfiles.toml", home.file()).unwrap();
    let set = home.set(&["model", "m"]);
    assert_eq!(set.code, Some(0), "{}", set.err);
    assert!(fs::symlink_metadata(home.file()).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "\u{feff}[defaults]\nmodel = \"m\"\n");
    assert_eq!(mode(&real), 0o640);
    // A link to a file that does not exist yet.
    fs::remove_file(&real).unwrap();
    assert_eq!(home.set(&["model", "n"]).code, Some(0));
    assert_eq!(fs::read_to_string(&real).unwrap(), "[defaults]\nmodel = \"n\"\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let refused = home.set(&["model", "o"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("it is read-only"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&real).unwrap(), "[defaults]\nmodel = \"n\"\n");
    let left: Vec<_> = fs::read_dir(home.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".teamster-config-")), "{left:?}");
}

#[test]
fn two_commands_at_once_lose_no_value() {
    let home = Home::new();
    let keys = ["model", "effort", "agent", "max_turns", "timeout", "deadline"];
    let values = ["m", "low", "claude", "3", "5m", "6m"];
    std::thread::scope(|scope| {
        for (key, value) in keys.into_iter().zip(values) {
            let home = &home;
            scope.spawn(move || assert_eq!(home.set(&[key, value]).code, Some(0), "{key}"));
        }
    });
    let text = home.text();
    assert!(keys.iter().all(|key| text.contains(&format!("\n{key} = "))), "{text}");
}

#[test]
fn a_variable_that_overrides_the_value_is_named() {
    let home = Home::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("HOME", home.folder.path()).env("BACKEND_MODEL", "x").stdin(Stdio::null());
    let set = ended(std::mem::replace(command.args(["config", "set", "model", "m"]), Command::new("true")));
    assert!(set.err.contains("the variable BACKEND_MODEL overrides it in this shell"), "{}", set.err);
}
