//! `teamster doctor --fix`: offers to install, update and log in agents.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rexpect::process::Signal;
use tempfile::TempDir;

use crate::command::{ended, lives, until};
use crate::screen::{SIZES, Terminal};

/// A Codex CLI whose login asks for a word.
const CODEX: &str = r#"case $1 in
    --version) echo "codex-cli $(cat "$0.version")" ;;
    login) printf 'Word: '; read -r word; mkdir -p "$HOME/.codex"; echo "$word" > "$HOME/.codex/auth.json" ;;
esac"#;

/// Installs this CLI.
const NPM: &str = r#"[ "$1" = prefix ] && { echo /opt/global; exit; }
echo "$@" >> "$HOME/npm-calls"; echo noise
cp "$HOME/codex" "$HOME/bin/codex"; echo 0.169.0 > "$HOME/bin/codex.version""#;

/// A home directory with programs.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new(npm: Option<&str>) -> Self {
        let home = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(home.file("bin")).unwrap();
        write_program(&home.file("codex"), CODEX);
        if let Some(npm) = npm {
            write_program(&home.file("bin/npm"), npm);
        }
        home
    }

    /// Returns a home with this version of Codex.
    fn with_codex(npm: &str, version: &str) -> Self {
        let home = Self::new(Some(npm));
        write_program(&home.file("bin/codex"), CODEX);
        fs::write(home.file("bin/codex.version"), version).unwrap();
        home
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn doctor(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
        let path = format!("{}:/usr/bin:/bin", self.file("bin").to_str().unwrap());
        command.env_clear().env("PATH", path).env("HOME", self.folder.path()).env("TERM", "xterm");
        command.env("TEAMSTER_LEDGER_DIR", self.file("ledger")).env("XDG_STATE_HOME", self.file("state"));
        command.args(["doctor", "--fix"]).args(args).stdin(Stdio::null());
        command
    }

    fn terminal(&self, args: &[&str]) -> Terminal {
        Terminal::start(&self.doctor(args), SIZES[0])
    }

    fn npm_calls(&self) -> String {
        fs::read_to_string(self.file("npm-calls")).unwrap_or_default()
    }
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_missing_agent_is_installed_and_logged_in_after_two_questions() {
    let home = Home::new(Some(NPM));
    let mut terminal = home.terminal(&["--agent", "codex"]);
    terminal.wait_for("Run npm install -g @openai/codex? [y/N, q to quit]");
    assert_eq!(home.npm_calls(), "", "nothing runs before the answer");
    terminal.press("y\n");
    terminal.wait_for("Run codex login? [y/N, q to quit]");
    terminal.press("y\n");
    terminal.wait_for("Word:");
    terminal.press("hello\n");
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    assert_eq!(home.npm_calls(), "install -g @openai/codex\n");
    assert_eq!(fs::read_to_string(home.file(".codex/auth.json")).unwrap(), "hello\n");
    assert_snapshot!(terminal.text());
}

#[test]
fn a_refused_step_changes_nothing_and_the_code_is_that_of_the_verdict() {
    let home = Home::new(Some(NPM));
    for answer in ["n\n", "\n", "\x04", "yess\n"] {
        let mut terminal = home.terminal(&["--agent", "codex"]);
        terminal.wait_for("[y/N, q to quit]");
        terminal.press(answer);
        assert_eq!(terminal.wait_for_exit(), 1, "{}", terminal.text());
    }
    assert_eq!(home.npm_calls(), "");
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let npm = format!("printf 'installing\\n' > \"$HOME/now\"; until test -e \"$HOME/go\"; do sleep 0.02; done; {NPM}");
    let home = Home::new(Some(&npm));
    let mut terminal = home.terminal(&["--agent", "codex"]);
    terminal.wait_for("[y/N, q to quit]");
    terminal.press("y\n");
    until("npm runs", || home.file("now").exists());
    terminal.press("y\n");
    fs::write(home.file("go"), "").unwrap();
    terminal.wait_for("Run codex login? [y/N, q to quit]");
    terminal.press("n\n");
    // An agent without a login can run.
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    assert!(!home.file(".codex").exists());
}

#[test]
fn all_agents_that_are_not_ready_are_offered_unless_one_is_named() {
    let home = Home::new(Some(NPM));
    let mut terminal = home.terminal(&[]);
    for package in ["@anthropic-ai/claude-code", "@openai/codex", "@google/gemini-cli", "opencode-ai"] {
        terminal.wait_for(&format!("Run npm install -g {package}? [y/N, q to quit]"));
        terminal.press(if package.contains("codex") { "y\n" } else { "n\n" });
        if package.contains("codex") {
            terminal.wait_for("Run codex login? [y/N, q to quit]");
            terminal.press("n\n");
        }
    }
    // The agent that is installed now is the default one.
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
}

#[test]
fn an_older_version_is_updated() {
    let home = Home::with_codex(NPM, "0.1.0");
    fs::create_dir(home.file(".codex")).unwrap();
    fs::write(home.file(".codex/auth.json"), "{}").unwrap();
    let mut doctor = home.doctor(&["--yes", "--agent", "codex"]);
    doctor.env("CODEX_API_KEY", "k");
    let fixed = ended(doctor);
    assert_eq!(fixed.code, Some(0), "{}{}", fixed.out, fixed.err);
    assert_eq!(home.npm_calls(), "install -g @openai/codex\n");
    assert!(fixed.out.contains("too old") && fixed.out.contains("0.169.0 (tested)"), "{}", fixed.out);
    let again = ended(home.doctor(&["--yes", "--agent", "codex"]));
    assert!(again.out.starts_with("there is nothing to fix\n"), "{}", again.out);
}

#[test]
fn without_a_terminal_it_is_refused_and_with_yes_no_login_is_started() {
    let home = Home::new(Some(NPM));
    let refused = ended(home.doctor(&["--agent", "codex"]));
    assert_eq!((refused.code, &*refused.out), (Some(2), ""));
    assert!(refused.err.contains("needs a terminal") && refused.err.contains("--yes"), "{}", refused.err);
    let fixed = ended(home.doctor(&["--agent", "codex", "--yes"]));
    // Without a login, the agent cannot answer.
    assert_eq!(fixed.code, Some(1), "{}{}", fixed.out, fixed.err);
    assert!(fixed.out.contains("  npm install -g @openai/codex, into /opt/global\n"), "{}", fixed.out);
    assert!(fixed.out.contains("  to log in, run codex login\n"), "{}", fixed.out);
    let mut again = home.doctor(&["--agent", "codex", "--yes"]);
    again.env("CODEX_API_KEY", "made-up");
    assert_eq!(ended(again).code, Some(0));
    assert!(!home.file(".codex").exists());
    assert!(!fixed.out.contains("noise"));
}

#[test]
fn a_failure_of_npm_is_shown_with_its_code_and_its_error_output() {
    let home = Home::new(Some("printf 'npm error code EACCES \\033[2J\\n' >&2; exit 243"));
    let failed = ended(home.doctor(&["--agent", "codex", "--yes"]));
    assert_eq!(failed.code, Some(1));
    assert!(failed.err.contains("error: npm exited with code 243\n"), "{}", failed.err);
    assert!(failed.err.contains("npm error code EACCES ⟦ESC⟧[2J\n"), "{}", failed.err);
    assert!(failed.err.contains("hint: npm may not write there"), "{}", failed.err);

    let missing = Home::new(None);
    let mut doctor = missing.doctor(&["--agent", "codex", "--yes"]);
    doctor.env("PATH", missing.file("bin"));
    let failed = ended(doctor);
    assert_eq!(failed.code, Some(1));
    assert!(failed.err.contains("error: npm is not installed\n hint: install Node.js"), "{}", failed.err);

    let elsewhere = ended(Home::new(Some("true")).doctor(&["--agent", "codex", "--yes"]));
    assert!(elsewhere.err.contains("npm succeeded, but codex is not in PATH"), "{}", elsewhere.err);
}

#[test]
fn ctrl_c_stops_npm_with_all_its_processes() {
    let npm =
        "trap '' INT TERM; (trap '' INT TERM; sleep 300) & echo $! > \"$HOME/child\"; echo $$ > \"$HOME/pid\"; wait";
    let home = Home::new(Some(npm));
    let mut terminal = home.terminal(&["--agent", "codex"]);
    terminal.wait_for("[y/N, q to quit]");
    terminal.press("y\n");
    until("npm runs", || home.file("pid").exists());
    terminal.press("\x03");
    terminal.press("\x03");
    assert_eq!(terminal.wait_for_exit(), 130, "{}", terminal.text());
    assert!(!lives(&home.file("pid")) && !lives(&home.file("child")));
}

#[test]
fn ctrl_c_or_a_signal_stops_a_login_with_all_its_processes() {
    let stubborn = "case $1 in --version) echo 0.169.0;; *) trap '' INT TERM; stty -icanon -echo; sleep 300 & echo $! > \"$HOME/child\"; \
        echo $$ > \"$HOME/pid\"; echo started; wait; wait;; esac";
    for signal in [None, Some(Signal::SIGTERM)] {
        let home = Home::with_codex(NPM, "");
        write_program(&home.file("bin/codex"), stubborn);
        let mut terminal = home.terminal(&["--agent", "codex"]);
        terminal.wait_for("Run codex login? [y/N, q to quit]");
        terminal.press("y\n");
        terminal.wait_for("started");
        match signal {
            None => terminal.press("\x03"),
            Some(signal) => terminal.signal(signal),
        }
        assert_eq!(terminal.wait_for_exit(), 130, "{}", terminal.text());
        assert!(!lives(&home.file("pid")) && !lives(&home.file("child")));
        assert!(terminal.sends_lines(), "the settings of the terminal are restored");
    }
}

#[test]
fn q_at_a_question_ends_the_questions() {
    let home = Home::new(Some(NPM));
    let mut terminal = home.terminal(&[]);
    terminal.wait_for("Run npm install -g @anthropic-ai/claude-code? [y/N, q to quit]");
    terminal.press("q\n");
    assert_eq!(terminal.wait_for_exit(), 1, "{}", terminal.text());
    assert_eq!(terminal.text().matches("[y/N, q to quit]").count(), 1, "{}", terminal.text());
    assert_eq!(home.npm_calls(), "");
}

#[test]
fn ctrl_c_at_a_question_ends_the_command() {
    let home = Home::new(Some(NPM));
    let mut terminal = home.terminal(&[]);
    terminal.wait_for("[y/N, q to quit]");
    terminal.press("\x03");
    assert_eq!(terminal.wait_for_exit(), 130, "{}", terminal.text());
    assert_eq!(home.npm_calls(), "");
}
