//! The reports of `teamster doctor`.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::command::{Ended, Running, ended, sent, wait};

/// Returns `teamster doctor` with this script as the agent's CLI.
fn doctor(script: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("FAKE_CLI", script);
    command.env("BACKEND_CLI_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh"));
    command.arg("doctor").args(args);
    command
}

fn claude(ended: &Ended) -> Value {
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    let agents = document["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["agent"] == "claude").unwrap().clone()
}

#[test]
fn an_agent_that_can_run_is_reported_with_its_version_and_features() {
    let report = ended(doctor("echo '2.1.197 (Claude Code)'", &["--json"]));
    assert_eq!(report.code, Some(0), "{}", report.err);
    let claude = claude(&report);
    assert_eq!(claude["canRun"], true);
    assert_eq!(claude["version"], "2.1.197");
    assert_eq!(claude["versionStatus"], "tested");
    assert_eq!(claude["features"]["--schema"]["support"], "yes");
}

#[test]
fn names_of_credentials_are_reported_but_never_their_values() {
    let mut command = doctor("echo 9.9.9", &[]);
    command.env("ANTHROPIC_API_KEY", "sk-the-secret").env("ANTHROPIC_AUTH_TOKEN", "");
    let report = ended(command);
    assert!(report.out.contains("ANTHROPIC_API_KEY"), "{}", report.out);
    assert!(!report.out.contains("ANTHROPIC_AUTH_TOKEN"), "an empty variable is no credential");
    assert!(!report.out.contains("sk-the-secret"));
    assert!(report.out.contains("newer than 2.1.197"), "{}", report.out);
}

#[test]
fn the_credential_that_is_used_and_billed_is_named_with_how_to_use_the_other() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".claude")).unwrap();
    fs::write(home.path().join(".claude/.credentials.json"), r#"{"claudeAiOauth": {"accessToken": "sk-login"}}"#)
        .unwrap();
    let report = |args: &[&str], key: Option<&str>| {
        let mut command = doctor("echo 2.1.197", args);
        command.env("HOME", home.path()).envs(key.map(|key| ("ANTHROPIC_API_KEY", key)));
        let report = ended(command);
        assert!(!report.out.contains("sk-"), "{}", report.out);
        report
    };
    let text = report(&[], Some("sk-key")).out;
    let line =
        "ANTHROPIC_API_KEY is used and billed, not ~/.claude/.credentials.json; to use the login: --env-only HOME";
    assert!(text.contains(line), "{text}");
    assert_eq!(
        claude(&report(&["--json"], Some("sk-key")))["credential"],
        json!({"kind": "api_key", "name": "ANTHROPIC_API_KEY"})
    );
    assert!(!report(&[], None).out.contains("is used and billed"), "there is no other one");
    assert_eq!(claude(&report(&["--json"], None))["credential"], json!({"kind": "login"}));
    assert!(report(&["--verbose"], None).out.contains("billed       the login (~/.claude/.credentials.json)"));
}

#[test]
fn a_version_with_control_characters_is_escaped() {
    let script = r"printf '9.9.9-\033]52;c;eA==\007\n'";
    let mut screen = rexpect::session::spawn_command(doctor(script, &[]), Some(20_000)).unwrap();
    let report = sent(&screen.exp_eof().unwrap());
    assert!(report.contains("9.9.9-⟦ESC⟧]52;c;eA==⟦BEL⟧"), "{report:?}");
    assert!(report.chars().all(|c| matches!(c, '\r' | '\n') || !c.is_control()), "{report:?}");
}

#[test]
fn a_program_gets_no_key_when_its_version_is_requested() {
    let script = r#"echo "9.${#ANTHROPIC_API_KEY}${#OPENAI_API_KEY}.${#EDITOR}""#;
    let mut command = doctor(script, &["--json"]);
    command.env("ANTHROPIC_API_KEY", "sk-a").env("OPENAI_API_KEY", "sk-o").env("EDITOR", "vi");
    assert_eq!(claude(&ended(command))["version"], "9.00.2");
}

#[test]
fn an_agent_that_cannot_run_is_reported_with_a_remedy_and_code_1() {
    let mut command = doctor("", &[]);
    command.env("BACKEND_CLI_PATH", "no-such-cli");
    let report = ended(command);
    assert_eq!(report.code, Some(1));
    assert!(report.out.contains("✗ claude    not installed"), "{}", report.out);
    assert!(report.out.contains("npm install -g @anthropic-ai/claude-code"), "{}", report.out);
    assert!(!report.out.contains("acp"), "an agent without a program is no problem: {}", report.out);
}

#[test]
fn a_program_that_is_not_an_agent_is_a_problem() {
    for (script, problem) in [("echo usage: something", "not a version"), ("exit 3", "printed nothing")] {
        let ended = ended(doctor(script, &[]));
        assert_eq!(ended.code, Some(1));
        assert!(ended.out.contains(problem), "{}", ended.out);
    }
}

/// A ledger with a run whose host has exited, and the marker of that run's processes.
struct CrashedRun {
    home: tempfile::TempDir,
    mark: String,
}

fn crashed_run() -> CrashedRun {
    // `cargo test` runs several of these tests in one process.
    static LAST: AtomicU32 = AtomicU32::new(0);
    let home = tempfile::tempdir().unwrap();
    let mark = format!("TEAMSTER_TREE_doctor_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
    let run = home.path().join("ledger/runs/abcdefghijklmnop");
    DirBuilder::new().recursive(true).mode(0o700).create(&run).unwrap();
    let entry = json!({
        "version": 1,
        "here": {
            "boot": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
            "pidNamespace": fs::metadata("/proc/self/ns/pid").unwrap().ino(),
        },
        "label": "claude",
        "mark": mark,
        "began": 1_790_000_000,
        // No process can have this pid.
        "host": { "pid": i32::MAX, "start": 1 },
    });
    fs::write(run.join("entry.json"), entry.to_string()).unwrap();
    CrashedRun { home, mark }
}

impl CrashedRun {
    fn doctor(&self, args: &[&str]) -> Command {
        let mut command = doctor("echo '2.1.197 (Claude Code)'", args);
        command.env("TEAMSTER_LEDGER_DIR", self.home.path().join("ledger"));
        command
    }

    /// Starts a process of the run.
    fn member(&self) -> Child {
        Command::new("sleep").arg("300").env(&self.mark, "1").spawn().unwrap()
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(self.home.path()).unwrap().next().is_none()
    }
}

#[test]
fn live_runs_and_leftovers_are_counted() {
    let crashed = crashed_run();
    let report = ended(crashed.doctor(&[]));
    assert_eq!(report.code, Some(0));
    assert!(report.out.contains("runs: 0 live, 1 left by crashes; `teamster doctor --sweep`"), "{}", report.out);
    let report: Value = serde_json::from_str(&ended(crashed.doctor(&["--json"])).out).unwrap();
    assert_eq!(report["runs"]["leftovers"][0]["agent"], "claude");
    assert_eq!(report["runs"]["leftovers"][0]["began"], "2026-09-21T14:13:20Z");
    assert!(!crashed.is_empty());
}

#[test]
fn a_sweep_kills_and_reports_the_leftovers_of_a_crash() {
    let crashed = crashed_run();
    let mut member = crashed.member();
    let report = ended(crashed.doctor(&["--sweep"]));
    assert_eq!(report.code, Some(0), "{}", report.out);
    let killed = format!("/abcdefghijklmnop (claude since 2026-09-21T14:13:20Z); killed {} (sleep)", member.id());
    assert!(report.out.contains(&killed), "{}", report.out);
    assert!(report.out.ends_with("runs: 0 live, 1 swept; nothing is left by crashes\n"), "{}", report.out);
    assert!(!report.out.contains("✓ claude"), "no agent is inspected");
    assert_eq!(wait(&mut member), None);
    assert!(crashed.is_empty());

    let report = ended(crashed.doctor(&["--sweep", "--json"]));
    assert_eq!(report.code, Some(0));
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!(report, json!({ "sweep": { "clean": true, "live": 0, "removed": [], "skipped": [], "problems": [] } }));
}

#[test]
fn a_sweep_inside_the_crashed_run_skips_it_and_exits_with_code_1() {
    let crashed = crashed_run();
    let mut member = crashed.member();
    let mut doctor = crashed.doctor(&["--sweep"]);
    doctor.env(&crashed.mark, "1");
    let report = ended(doctor);
    assert_eq!(report.code, Some(1));
    assert!(report.out.contains("sweep from outside of it"), "{}", report.out);
    assert!(member.try_wait().unwrap().is_none());
    assert_eq!(ended(crashed.doctor(&["--sweep"])).code, Some(0));
    wait(&mut member);
}

#[test]
fn concurrent_sweeps_all_succeed() {
    let crashed = crashed_run();
    let mut members: Vec<_> = (0..3).map(|_| crashed.member()).collect();
    let sweeps: Vec<_> = (0..4).map(|_| Running::start(&mut crashed.doctor(&["--sweep", "--json"]))).collect();
    let report: Vec<_> = sweeps.into_iter().map(Running::end).collect();
    let removed = report.iter().map(|report| {
        let report: Value = serde_json::from_str(&report.out).unwrap();
        report["sweep"]["removed"].as_array().unwrap().len()
    });
    assert_eq!(removed.sum::<usize>(), 1);
    assert!(report.iter().all(|report| report.code == Some(0)));
    assert!(members.iter_mut().all(|member| wait(member).is_none()));
    assert!(crashed.is_empty());
}

#[test]
fn a_sweep_checks_no_agent() {
    let report = ended(doctor("", &["--sweep", "--agent", "codex"]));
    assert_eq!(report.code, Some(2));
    assert!(report.err.contains("cannot be used with"), "{}", report.err);
}

/// Returns a configuration file with an entry of a host that has exited.
fn file_with_leftover() -> (tempfile::TempDir, std::path::PathBuf) {
    use teamster::config::document::{Format, Location};
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("config.toml");
    fs::write(&path, "# mine\n").unwrap();
    let merge = teamster::config::Merge {
        path: path.clone(),
        location: Location { format: Format::Toml, at: vec!["servers".to_owned()] },
        entries: [("ours".to_owned(), json!({"command": "x"}))].into(),
        template: String::new(),
        by: "a run".to_owned(),
        within: None,
    };
    let restore_log = teamster::RestoreLog::in_directory(home.path().join("teamster/restore"));
    let merged = restore_log.merge(&merge).unwrap();
    // The copy of the holder's file has no lock, as if the process had died.
    let record = fs::read_dir(restore_log.directory()).unwrap().map(|entry| entry.unwrap().path());
    let record = record.into_iter().find(|path| path.is_dir()).unwrap();
    let holder = fs::read_dir(record).unwrap().map(|entry| entry.unwrap().path());
    let holder = holder.into_iter().find(|path| path.to_str().unwrap().contains("holder-")).unwrap();
    let copy = holder.with_file_name("copy");
    fs::copy(&holder, &copy).unwrap();
    fs::rename(copy, holder).unwrap();
    std::mem::forget(merged);
    (home, path)
}

#[test]
fn entries_of_crashed_runs_are_reported_and_removed_from_configuration_files() {
    let (home, path) = file_with_leftover();
    let doctor = |args: &[&str]| {
        let mut command = doctor("echo '2.1.197 (Claude Code)'", args);
        command.env("XDG_STATE_HOME", home.path());
        ended(command)
    };
    let report = doctor(&[]);
    assert!(report.out.contains("1 left by crashes; `teamster doctor --restore`"), "{}", report.out);
    assert!(report.out.contains(&format!("leftover     {}", path.to_str().unwrap())), "{}", report.out);
    let document: Value = serde_json::from_str(&doctor(&["--json"]).out).unwrap();
    assert_eq!(document["configurationFiles"]["leftovers"], json!([path]));
    assert!(fs::read_to_string(&path).unwrap().contains("ours"));

    let report = doctor(&["--restore"]);
    assert_eq!(report.code, Some(0));
    assert!(
        report.out.contains("restored") && report.out.contains("the original content is restored"),
        "{}",
        report.out
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine\n");
    let document: Value = serde_json::from_str(&doctor(&["--restore", "--json"]).out).unwrap();
    assert_eq!(document, json!({"restore": {"clean": true, "live": 0, "files": [], "problems": []}}));
}

#[test]
fn entries_that_cannot_be_removed_are_reported_with_the_path_of_the_original() {
    let (home, path) = file_with_leftover();
    fs::write(&path, "= broken").unwrap();
    let mut command = doctor("echo", &["--restore"]);
    command.env("XDG_STATE_HOME", home.path());
    let report = ended(command);
    assert_eq!(report.code, Some(1));
    assert!(report.out.contains("incomplete") && report.out.contains("restore/kept/"), "{}", report.out);
    assert_eq!(fs::read_to_string(&path).unwrap(), "= broken");
}
