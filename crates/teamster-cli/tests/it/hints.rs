//! Hints of the command when it was called in a way that cannot work.

use std::process::{Command, Stdio};

use crate::command::{ANSWER, Ended, ended, teamster};

/// Runs the command in a home of its own, without agents.
fn command_ended(args: &[&str]) -> Ended {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.path()).args(args).stdin(Stdio::null());
    ended(command)
}

#[test]
fn what_was_meant_is_named_in_one_line() {
    for (args, expected) in [
        (&["what does this do"][..], "tip: try: teamster run 'what does this do'"),
        (&["fix", "the", "failing", "test"], "tip: try: teamster run 'fix the failing test'"),
        (&["run", "fix", "the", "failing", "test"], "teamster run 'fix the failing test'; or write it after --"),
        (&["ask", "x"], "tip: teamster run 'PROMPT'"),
        (&["login"], "tip: teamster doctor --fix"),
        (&["models"], "tip: teamster run --model NAME"),
        (&["run", "-p", "hi"], "tip: run is already non-interactive"),
        (&["run", "--agent", "claud", "hi"], "hint: did you mean claude?"),
        (&["doctor", "--agent", "gemni"], "hint: did you mean gemini?"),
        (&["sessions", "--agent", "opencod"], "hint: did you mean opencode?"),
        (&["run", "--cwd", "/no/such", "hi"], "error: --cwd \"/no/such\" is not a directory"),
        (&["run", "--add-dir", "/no/such", "hi"], "error: --add-dir \"/no/such\" is not a directory"),
        (&["run", "--schema", "/no/such.json", "hi"], "error: cannot read the file of --schema, /no/such.json: "),
        (
            &["run", "--mcp-config", "/no/such.json", "hi"],
            "error: cannot read the file of --mcp-config, /no/such.json: ",
        ),
        (
            &["run", "--system-prompt-file", "/no/such", "hi"],
            "cannot read the file of --system-prompt-file, /no/such: ",
        ),
    ] {
        let end = command_ended(args);
        assert_eq!(end.code, Some(2), "{args:?}: {}", end.err);
        assert!(end.err.contains(expected), "{args:?}: {}", end.err);
    }
}

#[test]
fn the_manual_is_plain_text_on_a_pipe() {
    let page = command_ended(&["man", "run"]);
    assert_eq!(page.code, Some(0), "{}", page.err);
    assert!(page.out.starts_with("NAME\n       teamster-run - Run an agent with one prompt\n"), "{}", page.out);
    assert!(page.out.contains("\n       --max-turns <N>\n"), "{}", page.out);
    assert!(!page.out.contains(".SH") && !page.out.contains("\\f"), "{}", page.out);
    assert!(command_ended(&["man"]).out.contains("teamster-doctor(1)"));
    let unknown = command_ended(&["man", "rnu"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("there is no command rnu") && unknown.err.contains("chat"), "{}", unknown.err);
}

#[test]
fn a_server_without_a_program_and_a_rule_for_another_tool_are_noticed_before_the_start() {
    let servers = r#"{"mcpServers": {"calc": {"command": "no-such-program"}, "shell": {"command": "sh"}}}"#;
    let end = ended(teamster(ANSWER, &["--mcp-config", servers, "--allow-tool", "bash", "hi"]));
    assert!(
        end.err.contains("the MCP server calc cannot start: there is no program no-such-program in PATH"),
        "{}",
        end.err
    );
    assert!(!end.err.contains("MCP server shell"), "{}", end.err);
    assert!(end.err.contains("the rule bash allows nothing: the tool of claude is named Bash"), "{}", end.err);
}

#[test]
fn the_output_format_has_a_short_option() {
    let end = ended(teamster(ANSWER, &["-o", "json", "hi"]));
    assert!(end.out.starts_with('{'), "{} {}", end.out, end.err);
}
