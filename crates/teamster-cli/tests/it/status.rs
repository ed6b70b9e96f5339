//! The status of a run on a terminal.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

use crate::command::{ANSWER, LISTEN, command, ended, teamster};
use crate::screen::{SIZES, Terminal};

/// Prints the recorded call of a command, and waits before its result until the file exists.
const WORK: &str = "head -n 8 \"$CAPTURE\"; until test -e \"$GO\"; do sleep 0.02; done; \
    tail -n +9 \"$CAPTURE\"; cat > /dev/null";

fn run(go: &Path, args: &[&str]) -> Command {
    let mut run = command("run", &format!("{LISTEN} {WORK}"), &[args, &["hello"]].concat());
    run.env("TERM", "xterm-256color").env("GO", go);
    run
}

#[test]
fn the_status_is_below_the_output_while_the_agent_works_and_gone_at_the_end() {
    for (size, color) in [(SIZES[0], true), (SIZES[0], false), (SIZES[1], true)] {
        let folder = tempfile::tempdir().unwrap();
        let go = folder.path().join("go");
        let mut command = run(&go, &[]);
        if !color {
            command.env("NO_COLOR", "1");
        }
        let mut terminal = Terminal::start(&command, size);
        terminal.wait_until("the status is below the answer", |screen| {
            let answer = screen.find("Line");
            answer.is_some() && answer < screen.find("claude · answering")
        });
        let name = format!("working_{}x{}{}", size.0, size.1, if color { "" } else { "_without_color" });
        assert_snapshot!(name.as_str(), terminal.styled_snapshot());
        std::fs::write(&go, "").unwrap();
        assert_eq!(terminal.wait_for_exit(), 0);
        let ended = terminal.snapshot();
        assert!(!ended.contains('⠿'), "{ended}");
        assert_snapshot!(format!("{name}_ended"), ended);
    }
}

#[test]
fn a_notice_stays_above_the_status() {
    let folder = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::start(&run(&folder.path().join("go"), &["--grace", "10s"]), SIZES[0]);
    terminal.wait_for("Line");
    terminal.press("\x03");
    terminal.wait_until("the notice is above the status", |screen| {
        let notice = screen.find("press Ctrl-C again to kill it");
        notice.is_some() && notice < screen.rfind("claude · ")
    });
    terminal.press("\x03");
    assert_eq!(terminal.wait_for_exit(), 130);
    assert!(!terminal.snapshot().contains('⠿'), "{}", terminal.text());
}

#[test]
fn without_a_capable_terminal_or_with_quiet_no_status_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    std::fs::write(&go, "").unwrap();
    for (args, name, value) in [(&["--quiet"][..], "A", "b"), (&[], "TERM", "dumb"), (&[], "CI", "true")] {
        let mut command = run(&go, args);
        command.env(name, value);
        let mut terminal = Terminal::start(&command, SIZES[0]);
        assert_eq!(terminal.wait_for_exit(), 0);
        assert!(
            !terminal.sent().contains("\x1b[?2026h") && !terminal.sent().contains("claude · "),
            "{}",
            terminal.sent()
        );
    }
    let piped = ended(run(&go, &[]));
    assert!(!piped.out.contains('\x1b') && !piped.out.contains("thinking"), "{}", piped.out);
}

#[test]
fn the_output_of_a_command_is_shown_while_it_runs() {
    let lines = ["line 1", "line 2", "line 3", "line 4", "line 5", "line 6", ""].join("\\n");
    let step = format!("{{ run = {{ command = \"make\", output = \"{lines}\", lineMs = 300 }} }}");
    let scenario = format!("[[turns]]\nsteps = [{step}, {{ say = \"It works.\" }}]");
    for agent in ["codex", "opencode"] {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("scenario.toml");
        std::fs::write(&script, &scenario).unwrap();
        let fake = "exec \"$TEAMSTER\" fake --agent \"$AGENT\" --script \"$SCRIPT\" -- \"$@\"";
        let start = |shown: &str| {
            let mut run = command("run", fake, &["--agent", agent, "--tool-output", shown, "hello"]);
            run.env("TERM", "xterm-256color").env("AGENT", agent).env("SCRIPT", &script);
            run.env("TEAMSTER", env!("CARGO_BIN_EXE_teamster")).env("HOME", folder.path());
            Terminal::start(&run, SIZES[0])
        };
        let mut terminal = start("short");
        // One line more is hidden at the end.
        terminal.wait_for("… 1 more lines");
        let screen = terminal.text();
        let call = screen.find("make").unwrap();
        assert!(screen.find("line 5") > Some(call) && !screen.contains("line 1"), "{screen}");
        assert_eq!(terminal.wait_for_exit(), 0);
        let ended = terminal.text();
        assert!(ended.contains("… 2 more lines") && ended.matches("line 6").count() == 1, "{ended}");

        let mut terminal = start("none");
        assert_eq!(terminal.wait_for_exit(), 0);
        assert!(!terminal.sent().contains("line 1"), "{}", terminal.sent());
    }
}

#[test]
fn verbose_prints_launches_limits_and_timings_to_standard_error() {
    let shown = ended(teamster(ANSWER, &["--verbose", "--deadline", "90s", "hello"]));
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    for part in [
        "limits: startup 5m 00s · silence 5m 00s · a tool's silence 30m 00s · deadline 1m 30s",
        "the CLI was started · program ",
        "waits for the agent's output · limit startup · after 5m 00s",
        "claude 2.1.",
        "the CLI has exited · code 0",
        "timings: first event ",
    ] {
        assert_eq!(shown.err.matches(part).count(), 1, "{part}: {}", shown.err);
    }
    // A notice about an event comes before the next event, also if both were ready together.
    let init = r#"{"type":"system","subtype":"init","session_id":"s","claude_code_version":"2.1.9"}"#;
    let text = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"An answer"}]}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"An answer","session_id":"s"}"#;
    let lines = format!("{init}\n{text}\n{result}");
    let mut batch =
        teamster("read -r opening; read -r prompt; echo \"$LINES_READY\"; cat > /dev/null", &["-v", "hello"]);
    let mut terminal = Terminal::start(batch.env("LINES_READY", lines), SIZES[1]);
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    let screen = terminal.text();
    let [notice, answer] = [" · session s", "An answer"].map(|part| screen.find(part).unwrap());
    assert!(notice < answer, "{screen}");
    let plain = ended(teamster(ANSWER, &["hello"]));
    assert!(!plain.err.contains("limits") && !shown.out.contains("limits"), "{}", plain.err);
    // A log is written beside it.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    let both = ended(teamster(ANSWER, &["-v", "--log-file", file.to_str().unwrap(), "--output", "ndjson", "hello"]));
    assert!(both.err.contains("timings: ") && !both.err.contains("DEBUG"), "{}", both.err);
    assert!(std::fs::read_to_string(file).unwrap().contains("the CLI was started"));
    let refused = ended(teamster(ANSWER, &["-v", "-q", "hello"]));
    assert_eq!(refused.code, Some(2), "{}", refused.err);
}
