//! Limits of the user, closed streams and inherited signals: each is an error with its reason, or changes nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, geteuid};

use crate::command::{ANSWER, Ended, LISTEN, Running, command, ended, teamster};

/// A user that has no processes.
const OTHER_USER: &str = "61834";

/// Returns the command, started by a line of shell that ends with `"$@"`.
fn behind(shell: &str, command: &Command) -> Command {
    let mut outer = Command::new("/bin/sh");
    outer.arg("-c").arg(shell).arg("sh").arg(command.get_program()).args(command.get_args()).env_clear();
    outer.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    outer
}

/// Asserts that the command succeeded or named the limit.
#[track_caller]
fn assert_reason(what: &str, ended: &Ended, limit: &str) {
    let output = format!("{}{}", ended.out, ended.err);
    assert!(!output.contains("panicked"), "{what}: {output}");
    assert!(ended.code.is_some_and(|code| code != 101), "{what}: {:?} {output}", ended.code);
    // With 3 files, the dynamic loader cannot load the program.
    let is_loaded = !output.contains("error while loading shared libraries");
    assert!(ended.code == Some(0) || !is_loaded || output.contains(limit), "{what}: {:?} {output}", ended.code);
}

#[test]
fn with_any_number_of_open_files_a_command_works_or_names_the_limit() {
    for count in 3..=30 {
        let shell = format!("ulimit -n {count}; exec \"$@\"");
        let prompted = format!("echo '{{\"type\":\"prompt\",\"prompt\":\"Go.\"}}' | (ulimit -n {count}; exec \"$@\")");
        let run = ended(behind(&shell, &teamster(ANSWER, &["Go."])));
        assert_reason(&format!("run with {count}"), &run, "ulimit -n");
        let session = ended(behind(&prompted, &command("session", ANSWER, &[])));
        assert_reason(&format!("session with {count}"), &session, "ulimit -n");
        let doctor = ended(behind(&shell, &command("doctor", "echo 2.1.197", &[])));
        assert_reason(&format!("doctor with {count}"), &doctor, "ulimit -n");
        if count == 30 {
            assert_eq!(run.code, Some(0), "{}", run.err);
        }
    }
}

#[test]
fn with_any_number_of_processes_a_command_works_or_names_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copied = |from: &Path, name: &str| {
        let to = directory.path().join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        to
    };
    let program = copied(Path::new(env!("CARGO_BIN_EXE_teamster")), "teamster");
    let cli = copied(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh")), "cli");
    let result = format!("{LISTEN} exit 3");
    for count in 1..=12 {
        let mut run = Command::new("prlimit");
        run.arg(format!("--nproc={count}"));
        if geteuid().is_root() {
            // Root has no such limit.
            run.args(["setpriv", "--reuid", OTHER_USER, "--regid", OTHER_USER, "--clear-groups", "--"]);
        }
        run.arg(&program).args(["run", "Go."]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        run.env("FAKE_CLI", &result).env("BACKEND_CLI_PATH", &cli).stdin(Stdio::null()).current_dir("/");
        let ended = ended(run);
        let reached_the_cli = ended.err.contains("CLI_EXIT");
        let limit = if reached_the_cli { "CLI_EXIT" } else { "ulimit -u" };
        assert_reason(&format!("run with {count}"), &ended, limit);
        assert_ne!(ended.code, Some(0), "{}", ended.err);
    }
}

#[test]
fn if_processes_are_hidden_a_run_warns_or_is_rejected_as_required() {
    if !geteuid().is_root() {
        return; // Only root may create the namespace.
    }
    let apart = "unshare -fp \"$@\"";
    let warned = ended(behind(apart, &teamster(ANSWER, &["--output", "ndjson", "Go."])));
    assert_eq!(warned.code, Some(0), "{}", warned.err);
    assert!(warned.out.contains("PROCESS_CONTROL_LIMITED"), "{}", warned.out);
    let required = ["--require-process-control", "Go."];
    let refused = ended(behind(apart, &teamster(ANSWER, &required)));
    assert_eq!((refused.code, &*refused.out), (Some(2), ""), "{}", refused.err);
    assert!(refused.err.contains("processes cannot be seen"), "{}", refused.err);
    let held = ended(teamster(ANSWER, &required));
    assert_eq!(held.code, Some(0), "{}", held.err);
}

#[test]
fn with_standard_output_closed_a_command_refuses_to_start() {
    for command in [teamster(ANSWER, &["Go."]), command("session", ANSWER, &[]), command("doctor", "true", &[])] {
        let ended = ended(behind("exec \"$@\" >&-", &command));
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("standard output is closed"), "{}", ended.err);
    }
}

#[test]
fn no_file_gets_the_descriptor_of_a_closed_stream() {
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("recording");
    let args = ["--record", recording.to_str().unwrap(), "Go."];
    // The diagnostics of the CLI are captured, and those of the command have no destination.
    let script = format!("echo noise >&2; {ANSWER}");
    let ended = ended(behind("exec \"$@\" <&- 2>&-", &teamster(&script, &args)));
    assert_eq!((ended.code, &*ended.err), (Some(0), ""));
    let recorded = fs::read_to_string(&recording).unwrap();
    assert!(recorded.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{recorded}");
}

#[test]
fn a_recording_that_reaches_the_limit_on_files_ends_with_a_warning_and_the_run_continues() {
    let directory = tempfile::tempdir().unwrap();
    let recording = directory.path().join("recording");
    let args = ["--output", "ndjson", "--record", recording.to_str().unwrap(), "Go."];
    let ended = ended(behind("ulimit -f 2; exec \"$@\"", &teamster(ANSWER, &args)));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("RECORDING_INCOMPLETE"), "{}", ended.out);
}

#[test]
fn an_output_file_that_reaches_the_limit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let shell = format!("ulimit -f 2; exec \"$@\" > {}", directory.path().join("output").to_str().unwrap());
    let ended = ended(behind(&shell, &teamster(ANSWER, &["--output", "ndjson", "Go."])));
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("cannot write to standard output"), "{}", ended.err);
}

#[test]
fn blocked_signals_that_a_command_inherits_change_nothing() {
    let blocked = "exec env --block-signal=CHLD,INT,TERM,PIPE --ignore-signal=CHLD \"$@\"";
    let run = ended(behind(blocked, &teamster(ANSWER, &["Go."])));
    assert_eq!(run.code, Some(0), "{}", run.err);
    let script = format!("{LISTEN} cat \"$CAPTURE\" | head -n 1; sleep 300");
    let mut run = Running::start(&mut behind(blocked, &teamster(&script, &["--output", "ndjson", "Go."])));
    run.next_event("init");
    run.signal(Signal::INT);
    run.wait_for_err("asked the agent to stop");
    run.signal(Signal::INT);
    assert_eq!(run.end().code, Some(130));
}
