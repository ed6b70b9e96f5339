//! What programs read.

use serde_json::Value;

use crate::command::{ANSWER, capture, ended, teamster};

#[test]
fn ndjson_is_one_event_a_line_and_nothing_else() {
    for name in ["text", "tool_bash", "limit_max_turns_1"] {
        let mut command = teamster(ANSWER, &["--output", "ndjson", "hi"]);
        command.env("CAPTURE", capture(name));
        let end = ended(command);
        let events: Vec<Value> = end.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
        assert_eq!(kinds.len(), events.len(), "{name}: {}", end.out);
        assert_eq!(kinds.first(), Some(&"init"), "{name}");
        assert_eq!(kinds.iter().position(|kind| *kind == "done"), Some(kinds.len() - 1), "{name}");
        assert_eq!(end.err.is_empty(), end.code == Some(0), "{name}: {}", end.err);
    }
}

#[test]
fn json_is_the_result_as_one_document() {
    let end = ended(teamster(ANSWER, &["--output", "json", "hi"]));
    let result: Value = serde_json::from_str(&end.out).unwrap();
    assert_eq!(result["sessionId"], "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4");
    assert_eq!(result["isError"], false);
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
}

#[test]
fn text_is_the_final_answer_alone() {
    let end = ended(teamster(ANSWER, &["--output", "text", "hi"]));
    assert!(end.out.starts_with("Hello, wörld!") && end.out.ends_with("done.\n"), "{}", end.out);
    assert_eq!((end.code, end.err.as_str()), (Some(0), ""));
}

#[test]
fn colors_are_for_terminals_unless_requested() {
    assert!(!ended(teamster(ANSWER, &["hi"])).out.contains('\u{1b}'));
    let mut command = teamster(ANSWER, &["hi"]);
    let end = ended({
        command.env("CLICOLOR_FORCE", "1");
        command
    });
    assert!(end.out.contains("\u{1b}[2mclaude"), "{}", end.out);
}

#[test]
fn the_script_of_each_shell_asks_the_command_for_candidates() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_teamster"));
        command.args(["completions", shell]).stdin(std::process::Stdio::null());
        let end = ended(command);
        assert_eq!(end.code, Some(0));
        assert!(end.out.contains("COMPLETE") && end.out.contains("teamster"), "{shell}");
    }
}
