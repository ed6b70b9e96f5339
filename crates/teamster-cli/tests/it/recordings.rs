//! What is recorded, shown again and played.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{ANSWER, Ended, capture, ended, teamster};

/// Records a run and returns its events as NDJSON.
fn record(file: &Path, script: &str) -> Ended {
    let mut command = teamster(script, &["--output", "ndjson", "--record", file.to_str().unwrap(), "--force", "hi"]);
    command.env("CAPTURE", capture("tool_bash"));
    ended(command)
}

fn tool(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().args(args).stdin(Stdio::null());
    ended(command)
}

/// Lines without their run and their time, which a recording does not have.
fn without_stamps(ndjson: &str) -> Vec<String> {
    let line = |line: &str| {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        let fields = event.as_object_mut().unwrap();
        for name in ["runId", "time"] {
            fields.remove(name);
        }
        event.to_string()
    };
    ndjson.lines().map(line).collect()
}

/// Without what differs from run to run.
fn comparable(ndjson: &str) -> String {
    let comparable = |line: String| {
        if line.contains("\"type\":\"done\"") {
            let mut done: serde_json::Value = serde_json::from_str(&line).unwrap();
            done["result"]["durationMs"] = 0.into();
            done.to_string()
        } else {
            line
        }
    };
    let lines: Vec<String> = without_stamps(ndjson).into_iter().map(comparable).collect();
    lines.join("\n")
}

#[test]
fn a_recording_is_shown_again_as_the_run_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    for (script, code) in [(ANSWER, 0), ("read -r opening; echo nonsense; exit 3", 1)] {
        let then = record(&file, script);
        assert_eq!(then.code, Some(code));
        for speed in ["0", "20"] {
            let now = tool(&["replay", file.to_str().unwrap(), "--speed", speed, "--output", "ndjson"]);
            assert_eq!((now.code, without_stamps(&now.out)), (then.code, without_stamps(&then.out)));
        }
        let pretty = tool(&["replay", file.to_str().unwrap(), "--speed", "0"]);
        assert_eq!(pretty.code, Some(code), "{}", pretty.err);
    }
}

#[test]
fn a_cut_recording_is_shown_as_far_as_it_goes_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    assert_eq!(record(&file, ANSWER).code, Some(0));
    let whole = std::fs::read(&file).unwrap();
    let done = whole.windows(13).position(|bytes| bytes == b"\"type\":\"done\"").unwrap();
    // Between two lines, inside a line, and inside a character.
    let line = whole[..done].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let within_character = [&whole[..line + 5], "ä".as_bytes()[..1].as_ref()].concat();
    for cut in [&whole[..line], &whole[..done], &within_character] {
        std::fs::write(&file, cut).unwrap();
        for output in ["ndjson", "pretty"] {
            let now = tool(&["replay", file.to_str().unwrap(), "--speed", "0", "--output", output]);
            assert_eq!(now.code, Some(1), "{}", now.err);
            assert!(now.out.contains("hello from bash"), "{}", now.out);
            assert!(now.err.contains("the recording is cut: the end of the run is missing"), "{}", now.err);
        }
    }
}

#[test]
fn an_existing_recording_is_replaced_only_with_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    std::fs::write(&file, "kept").unwrap();
    let refused = ended(teamster(ANSWER, &["--record", file.to_str().unwrap(), "hi"]));
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    let replaced = ended(teamster(ANSWER, &["--record", file.to_str().unwrap(), "--force", "hi"]));
    assert_eq!(replaced.code, Some(0), "{}", replaced.err);
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"done\""));
}

#[test]
fn the_cli_of_a_recording_is_played_and_the_run_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording");
    let then = record(&file, ANSWER);
    let mut command =
        teamster("exec \"$TEAMSTER\" fake --agent claude --script \"$RECORDING\" -- -p", &["--output", "ndjson", "hi"]);
    command.env("TEAMSTER", env!("CARGO_BIN_EXE_teamster")).env("RECORDING", &file);
    let now = ended(command);
    assert_eq!(now.code, Some(0), "{}", now.err);
    assert_eq!(comparable(&now.out), comparable(&then.out));
}

#[test]
fn what_cannot_be_shown_or_played_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    let recording = file("recording", "{\"atMs\":0,\"kind\":\"recording\",\"version\":1,\"agent\":\"claude\"}\n");
    let later = file("later", "{\"atMs\":0,\"kind\":\"recording\",\"version\":2,\"agent\":\"claude\"}\n");
    let (text, steps) = (file("text", "{\"atMs\":0}\n"), file("steps", "[{\"exit\":0}]"));
    let rows: &[(&[&str], &str)] = &[
        (&["replay", "/nowhere/at-all"], "cannot read /nowhere/at-all"),
        (&["replay", &text], "line 1 of the recording is invalid"),
        (&["replay", &later], "version 2"),
        (&["replay", &recording, "--speed=-1"], "a number is needed"),
        (&["fake", "--agent", "codex", "--script", &recording], "a recording of claude, not of codex"),
        (&["fake", "--script", &recording], "has no process 1"),
        (&["fake", "--agent", "claude", "--script", &steps], "a script of steps"),
    ];
    for (args, expected) in rows {
        let end = tool(args);
        assert_eq!(end.code, Some(2), "{args:?}: {}", end.err);
        assert!(end.err.contains(expected), "{args:?}: {}", end.err);
    }
    assert_eq!(tool(&["fake", "--script", &steps]).code, Some(0));
}
