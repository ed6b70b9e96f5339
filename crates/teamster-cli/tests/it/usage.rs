//! The usage journal, and `teamster usage`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{ANSWER, Ended, Running, command, ended, teamster, until};
use crate::screen::{SIZES, Terminal};

/// A home directory with a journal.
struct Home {
    folder: TempDir,
    journal: PathBuf,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let journal = folder.path().join("usage.ndjson");
        Self { folder, journal }
    }

    /// Adds the home and the journal to the environment of a command.
    fn with_journal(&self, mut command: Command) -> Command {
        command.env("HOME", self.folder.path()).env("TEAMSTER_USAGE_JOURNAL", &self.journal);
        command.current_dir(self.folder.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        ended(self.with_journal(teamster(ANSWER, &[args, &["the secret prompt"]].concat())))
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.journal).unwrap_or_default()
    }

    fn entries(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns `teamster usage`.
    fn usage(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("TZ", "UTC").arg("usage").args(args).stdin(Stdio::null());
        self.with_journal(command)
    }

    fn sums(&self, args: &[&str]) -> Value {
        let usage = ended(self.usage(&[&["--output", "json"], args].concat()));
        assert_eq!(usage.code, Some(0), "{}", usage.err);
        serde_json::from_str(&usage.out).unwrap()
    }
}

#[test]
fn a_run_appends_one_private_line_without_its_prompt_and_its_answer() {
    let home = Home::new();
    let run = home.run(&[]);
    assert_eq!((run.code, run.err.contains("journal")), (Some(0), false), "{}", run.err);
    assert_eq!(fs::metadata(&home.journal).unwrap().permissions().mode() & 0o777, 0o600);
    let entries = home.entries();
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&entry["agent"], &entry["outcome"]), (&"claude".into(), &"success".into()));
    assert_eq!(entry["directory"], home.folder.path().canonicalize().unwrap().to_str().unwrap());
    assert!(entry["usage"]["outputTokens"].as_u64() > Some(0) && entry["costUsd"].as_f64() > Some(0.0), "{entry}");
    let fields: Vec<_> = entry.as_object().unwrap().keys().map(String::as_str).collect();
    let names = "agent costUsd directory durationMs model outcome sessionId teamsterUsage time usage usageScope";
    assert_eq!(fields, names.split(' ').collect::<Vec<_>>());
    assert!(!home.text().contains("secret"));
    // The sum is that of the line.
    let sums = home.sums(&[]);
    assert_eq!((&sums["total"]["usage"], &sums["total"]["costUsd"]), (&entry["usage"], &entry["costUsd"]));
}

#[test]
fn without_the_setting_nothing_is_stored_and_usage_names_it() {
    let home = Home::new();
    let mut run = teamster(ANSWER, &["hi"]);
    run.env("HOME", home.folder.path());
    assert_eq!(ended(run).code, Some(0));
    assert!(!home.journal.exists());
    let mut usage = home.usage(&[]);
    usage.env_remove("TEAMSTER_USAGE_JOURNAL");
    let usage = ended(usage);
    assert_eq!(usage.code, Some(0), "{}", usage.err);
    assert_snapshot!(usage.out.replace(home.folder.path().to_str().unwrap(), "~"));
    let mut json = home.usage(&["--output", "json"]);
    json.env_remove("TEAMSTER_USAGE_JOURNAL");
    let json = ended(json);
    assert_eq!((json.code, &*json.out), (Some(2), ""));
    assert!(json.err.contains("the usage journal is off"), "{}", json.err);
}

#[test]
fn the_file_the_command_line_and_a_profile_set_the_journal_and_a_project_cannot() {
    let home = Home::new();
    let config = home.folder.path().join("c.toml");
    fs::write(
        &config,
        "[defaults]\nusage_journal = 'a.ndjson'\noutput = 'ndjson'\n[profiles.p]\nusage_journal = 'b.ndjson'\n",
    )
    .unwrap();
    let lines = |name: &str| fs::read_to_string(home.folder.path().join(name)).unwrap_or_default().lines().count();
    let run = |args: &[&str]| {
        let mut run = teamster(ANSWER, &[args, &["--config", config.to_str().unwrap(), "hi"]].concat());
        run.env("HOME", home.folder.path()).current_dir(home.folder.path());
        assert_eq!(ended(run).code, Some(0));
    };
    run(&[]);
    run(&["--profile", "p"]);
    run(&["--usage-journal", "c.ndjson"]);
    assert_eq!(["a.ndjson", "b.ndjson", "c.ndjson"].map(lines), [1, 1, 1]);
    let mut usage = home.usage(&["--config", config.to_str().unwrap(), "--profile", "p", "--by", "agent"]);
    usage.env_remove("TEAMSTER_USAGE_JOURNAL");
    let usage = ended(usage);
    assert!(usage.out.contains("claude"), "{} {}", usage.out, usage.err);
    fs::write(home.folder.path().join(".teamster.toml"), "[defaults]\nusage_journal = 'd'\n").unwrap();
    let mut trust = Command::new(env!("CARGO_BIN_EXE_teamster"));
    trust.env_clear().env("HOME", home.folder.path()).args(["config", "trust"]).arg(home.folder.path());
    let trust = ended(trust);
    assert!(trust.err.contains(".teamster.toml:2: usage_journal: a project's file cannot set it"), "{}", trust.err);
}

#[test]
fn twenty_runs_at_once_append_twenty_whole_lines() {
    let home = Home::new();
    let runs: Vec<_> = (0..20)
        .map(|_| Running::start(&mut home.with_journal(teamster(ANSWER, &["--output", "json", "hi"]))))
        .collect();
    for run in runs {
        let run = run.end();
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    let entries = home.entries();
    assert_eq!(entries.len(), 20);
    let tokens: u64 = entries.iter().map(|entry| entry["usage"]["outputTokens"].as_u64().unwrap()).sum();
    let sums = home.sums(&["--by", "directory"]);
    assert_eq!((&sums["total"]["runs"], &sums["total"]["usage"]["outputTokens"]), (&20.into(), &tokens.into()));
}

#[test]
fn a_command_that_is_killed_leaves_no_line_that_hides_others() {
    let home = Home::new();
    for _ in 0..10 {
        let mut run = Running::start(&mut home.with_journal(teamster(ANSWER, &["--output", "ndjson", "hi"])));
        // The line is written at this moment.
        run.next_event("done");
        run.signal(Signal::KILL);
        assert_eq!(run.wait_for_exit().unwrap_or(0), 0);
    }
    let whole = home.entries().len();
    // A disk that is full cuts a line.
    fs::write(&home.journal, home.text() + r#"{"teamsterUsage":1,"time":"2026-11-24T07:0"#).unwrap();
    assert_eq!(home.run(&[]).code, Some(0));
    let sums = home.sums(&[]);
    assert_eq!((&sums["total"]["runs"], &sums["skippedLines"]), (&(whole + 1).into(), &1.into()));
    let text = ended(home.usage(&[]));
    assert!(text.err.contains("1 line skipped: incomplete, or not of the usage journal"), "{}", text.err);
}

#[test]
fn a_journal_that_cannot_be_written_is_one_warning_and_the_run_succeeds() {
    let home = Home::new();
    let pipe = home.folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [Path::new("/dev/full"), &home.folder.path().join("missing/usage.ndjson"), &pipe, home.folder.path()] {
        let path = path.to_str().unwrap();
        let run = home.run(&["--usage-journal", path]);
        assert_eq!(run.code, Some(0), "{path} {}", run.err);
        let warning = format!("cannot write the usage journal {path}: ");
        assert_eq!(run.err.matches(&warning).count(), 1, "{path} {}", run.err);
    }
    assert!(!home.folder.path().join("missing").exists());
    let failed = ended(home.usage(&["--usage-journal", pipe.to_str().unwrap()]));
    assert_eq!(failed.code, Some(1));
    assert!(failed.err.contains("it is not a regular file"), "{}", failed.err);
}

#[test]
fn the_state_directory_is_created_for_the_journal() {
    let home = Home::new();
    let path = home.folder.path().join(".local/state/teamster/usage.ndjson");
    let run = home.run(&["--usage-journal", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 1, "{}", run.err);
}

#[test]
fn each_turn_of_a_session_and_of_a_chat_appends_a_line() {
    const AGENT: &str =
        "read -r opening; while read -r line; do case $line in *'\"user\"'*) cat \"$CAPTURE\";; esac; done";
    let home = Home::new();
    let mut session = home.with_journal(command("session", AGENT, &[]));
    let mut session = Running::start(session.stdin(Stdio::piped()));
    session.type_in(b"{\"type\":\"send\",\"text\":\"one\"}\n{\"type\":\"send\",\"text\":\"two\"}\n");
    assert_eq!(session.end().code, Some(0));
    assert_eq!(home.entries().len(), 2);

    let mut chat = home.with_journal(command("chat", AGENT, &["three"]));
    chat.env("TERM", "xterm");
    let mut terminal = Terminal::start(&chat, (100, 60));
    until("the turn is stored", || home.text().lines().count() == 3);
    terminal.press("\x04");
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    assert_eq!(home.entries().len(), 3);
}

#[test]
fn a_turn_after_a_change_of_the_model_is_stored_with_the_new_model() {
    let home = Home::new();
    // An agent that fails reports no model.
    let mut session = home.with_journal(command("session", "exit 3", &["--model", "old"]));
    let mut session = Running::start(session.stdin(Stdio::piped()));
    session.type_in(b"{\"type\":\"set_model\",\"model\":\"new\"}\n{\"type\":\"send\",\"text\":\"one\"}\n");
    session.end();
    let models: Vec<_> = home.entries().iter().map(|entry| entry["model"].clone()).collect();
    assert_eq!(models, ["new"]);
}

#[test]
fn a_turn_after_a_change_of_the_agent_is_stored_for_that_agent() {
    let home = Home::new();
    let mut chat = home.with_journal(command("chat", ANSWER, &["one"]));
    let bin = home.folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("codex"), "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(bin.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    chat.env("TERM", "xterm").env("PATH", format!("{}:/usr/bin:/bin", bin.to_str().unwrap()));
    let mut terminal = Terminal::start(&chat, (100, 60));
    until("the turn is stored", || home.text().lines().count() == 1);
    terminal.press("/agent codex\r");
    terminal.wait_for("new conversation with codex");
    // The turn fails.
    terminal.press("two\r");
    until("the turn is stored", || home.text().lines().count() == 2);
    terminal.press("\x04");
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    let agents: Vec<_> = home.entries().iter().map(|entry| entry["agent"].clone()).collect();
    assert_eq!(agents, ["claude", "codex"]);
}

/// Writes a journal of several days, agents, models and directories.
fn write_history(home: &Home) {
    let line = |time: &str, agent: &str, model: &str, directory: &str, tokens: u64, cost: &str| {
        format!(
            r#"{{"teamsterUsage":1,"time":"{time}","agent":"{agent}","model":"{model}","directory":"{directory}","usage":{{"inputTokens":{tokens},"cacheReadTokens":{},"cacheWriteTokens":12,"outputTokens":34}}{cost},"outcome":"success","durationMs":5}}"#,
            tokens * 100
        ) + "\n"
    };
    let in_home = home.folder.path().join("src/app");
    let text = [
        line(
            "2026-11-22T10:00:00Z",
            "claude",
            "claude-opus-4-8",
            in_home.to_str().unwrap(),
            1234,
            r#","costUsd":1.25"#,
        ),
        line(
            "2026-11-23T10:00:00Z",
            "claude",
            "claude-haiku-4-5",
            in_home.to_str().unwrap(),
            56789,
            r#","costUsd":0.125"#,
        ),
        line(
            "2026-11-23T11:00:00Z",
            "codex",
            "gpt-5.5-codex",
            "/srv/a-long-name-of-a-directory/and-another-one/project",
            7,
            "",
        ),
        "not a line of the journal\n".to_owned(),
    ];
    fs::write(&home.journal, text.concat()).unwrap();
}

#[test]
fn the_table_fits_the_terminal() {
    let home = Home::new();
    write_history(&home);
    for (by, size, color) in [
        ("day", SIZES[0], true),
        ("agent", SIZES[1], false),
        ("model", SIZES[0], false),
        ("directory", SIZES[0], false),
    ] {
        let mut usage = home.usage(&["--by", by]);
        usage.env("TERM", "xterm-256color");
        if !color {
            usage.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::start(&usage, size);
        assert_eq!(terminal.wait_for_exit(), 0);
        assert_snapshot!(format!("usage_by_{by}"), if color { terminal.styled_snapshot() } else { terminal.text() });
    }
}

#[test]
fn only_runs_since_a_time_are_summed() {
    let home = Home::new();
    write_history(&home);
    let sums = home.sums(&["--by", "model", "--since", "2026-11-23"]);
    assert_eq!(sums["total"]["runs"], 2);
    assert_eq!(sums["rows"][0]["model"], "claude-haiku-4-5");
    assert_eq!(sums["since"], "2026-11-23T00:00:00Z");
    let none = ended(home.usage(&["--since", "1s"]));
    assert!(none.out.ends_with("has no runs in this time\n"), "{}", none.out);
    let wrong = ended(home.usage(&["--since", "yesterday"]));
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.err.contains("a duration (7d, 12h) or a date (2026-11-24) is needed"), "{}", wrong.err);
}
