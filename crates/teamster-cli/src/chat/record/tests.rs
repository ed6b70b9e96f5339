use serde_json::json;
use teamster::RunResult;
use teamster::event::{AnsweredBy, Delta, Done, PermissionRequest, Retract, ToolKind};

use super::*;

fn record() -> Record {
    let mut record = Record::default();
    let directory = Path::new("/home/dev");
    for number in 1..=2 {
        record.begin(Some(format!("prompt {number}\nsecond line")));
        let tool = ToolUse::new("t", "Bash", json!({"command": "echo `x`"}).into(), ToolKind::Execute);
        record.event(&Event::ToolUse(Box::new(tool)), directory);
        let result = ToolResult::new("t", "out\u{1b}[1m\nput", Some(number == 2));
        record.event(&Event::ToolResult(Box::new(result)), directory);
        let mut result = RunResult::default();
        result.text = format!("answer *{number}*").into();
        record.event(&Event::Done(Box::new(Done::new(result))), directory);
    }
    record.steer("and this".to_owned());
    record
}

#[test]
fn the_conversation_is_written_as_markdown() {
    insta::assert_snapshot!(record().markdown("claude", Some("id"), Path::new("/home/dev"), true), @r"
    # Conversation with claude

    - Session: `id`
    - Directory: `/home/dev`
    - Earlier turns of the resumed conversation are not included.

    ## You

    > prompt 1
    > second line

    ## claude

    - `` Run echo `x` ``

      ```text
      out⟦ESC⟧[1m
      put
      ```

    answer *1*

    ## You

    > prompt 2
    > second line

    ## claude

    - `` Run echo `x` `` (failed: `out⟦ESC⟧[1m`)

      ```text
      put
      ```

    answer *2*

    ## You

    > and this
    ");
}

/// Adds a call that edits a file, which the user denied.
fn deny_edit(record: &mut Record) {
    let directory = Path::new("/home/dev");
    let input = json!({"file_path": "/home/dev/a.txt", "old_string": "one\n", "new_string": "two\n"});
    let tool = ToolUse::new("e", "Edit", input.clone().into(), ToolKind::Edit);
    record.event(&Event::ToolUse(Box::new(tool)), directory);
    let mut request = PermissionRequest::new("r".into(), "Edit", input.into());
    request.tool_id = Some("e".into());
    record.event(&Event::PermissionRequest(Box::new(request)), directory);
    let answered = PermissionAnswered::new("r".into(), PermissionDecision::Deny, AnsweredBy::Caller);
    record.event(&Event::PermissionAnswered(Box::new(answered)), directory);
    let result = ToolResult::new("e", "The user doesn't want to proceed", Some(true));
    record.event(&Event::ToolResult(Box::new(result)), directory);
}

#[test]
fn calls_of_the_last_turn_are_shown_as_a_run_shows_them() {
    let mut record = record();
    assert_eq!(record.last_answer(), Some("answer *2*"));
    deny_edit(&mut record);
    let directory = Path::new("/home/dev");
    let input = json!({"file_path": "/home/dev/b.txt", "old_string": "one\n", "new_string": "two\n"});
    let tool = ToolUse::new("f", "Edit", input.into(), ToolKind::Edit);
    record.event(&Event::ToolUse(Box::new(tool)), directory);
    record.event(&Event::ToolResult(Box::new(ToolResult::new("f", "done", Some(false)))), directory);
    let tool = ToolUse::new("m", "add", json!({"a": 1, "b": 2}).into(), ToolKind::Mcp);
    record.event(&Event::ToolUse(Box::new(tool.with_server(Some("calc".into())))), directory);
    let shown = record.calls_of_last_turn(directory, 80).unwrap();
    insta::assert_snapshot!(shown.without_styles().as_str(), @r"
    ● Run echo `x`  ✗ out⟦ESC⟧[1m
      put
    ● Edit a.txt  ✗ denied
    ● Edit b.txt  ✓
        - one
        + two
    ● calc: add a=1 b=2  no result
    ");
}

#[test]
fn a_blank_line_separates_the_messages_of_an_answer() {
    let mut record = Record::default();
    record.begin(Some("hello".to_owned()));
    for (message, text) in [("m1", "First I "), ("m1", "look.\n"), ("m2", "\n\n"), ("m3", "Done.")] {
        record.event(&Event::Text(Delta::new(message, text)), Path::new("/home/dev"));
    }
    record.event(&Event::Done(Box::new(Done::new(RunResult::default()))), Path::new("/home/dev"));
    assert_eq!(record.last_answer(), Some("First I look.\n\nDone."));
}

/// A turn with texts, calls, and a prompt that was sent into it.
fn turn() -> Record {
    let (mut record, directory) = (Record::default(), Path::new("/home/dev"));
    let text = |message: &str, text: &str| Event::Text(Delta::new(message, text));
    record.begin(Some("change it".to_owned()));
    record.event(&text("m1", "I look."), directory);
    let tool = ToolUse::new("r", "Bash", json!({"command": "cat a.txt"}).into(), ToolKind::Execute);
    record.event(&Event::ToolUse(Box::new(tool)), directory);
    record.event(&Event::ToolResult(Box::new(ToolResult::new("r", "one\n```\n\nend", Some(false)))), directory);
    record.event(&text("m2", "void"), directory);
    record.event(&Event::Retract(Retract::new("m2")), directory);
    record.event(&text("m3", "I change"), directory);
    record.event(&text("m3", " it."), directory);
    let input = json!({"file_path": "/home/dev/a.txt", "old_string": "one\n", "new_string": "two\n"});
    let tool = ToolUse::new("e", "Edit", input.into(), ToolKind::Edit);
    record.event(&Event::ToolUse(Box::new(tool)), directory);
    record.event(&Event::ToolResult(Box::new(ToolResult::new("e", "ok", Some(false)))), directory);
    record.steer("and test".to_owned());
    record.event(&text("m4", "Done."), directory);
    record.event(&Event::Done(Box::new(Done::new(RunResult::default()))), directory);
    record
}

#[test]
fn an_export_keeps_the_order_of_texts_and_calls_with_changes_and_results() {
    let (mut record, directory) = (turn(), Path::new("/home/dev"));
    let first = record.markdown("claude", None, directory, false);
    record.begin(None);
    assert!(record.markdown("claude", None, directory, false).starts_with(first.trim_end()), "{first}");
    insta::assert_snapshot!(first, @r"
    # Conversation with claude

    - Directory: `/home/dev`

    ## You

    > change it

    ## claude

    I look.

    - `Run cat a.txt`

      ````text
      one
      ```

      end
      ````

    I change it.

    - `Edit a.txt`

      ```diff
      - one
      + two
      ```

    ## You

    > and test

    ## claude

    Done.
    ");
}

#[test]
fn an_exported_call_that_was_denied_is_not_a_failed_one() {
    let mut record = record();
    deny_edit(&mut record);
    let text = record.markdown("claude", None, Path::new("/home/dev"), false);
    assert!(text.contains("(failed: `") && text.ends_with("- `Edit a.txt` (denied)\n"), "{text}");
}
