//! The format `pretty`.

use super::*;

#[test]
fn events_are_written_in_their_order() {
    let events = [
        init(),
        thinking("First I should\nread the test"),
        thinking(" that fails."),
        text("1", "\n\nI read the "),
        text("1", "test.\n"),
        tool("a", "Bash", json!({"command": "cargo test"})),
        result("a", Some("error[E0308]: mismatched types\n --> src/lib.rs")),
        tool("b", "Edit", json!({"file_path": "/project/src/lib.rs"})),
        result("b", None),
        text("2", "All green."),
        done(answered),
    ];
    assert_snapshot!(pretty(&events), @r"
    claude 2.1.197 · claude-opus

    ✻ First I should read the test that fails.

    I read the test.

    ● Bash cargo test  ✗ error[E0308]: mismatched types
    ● Edit src/lib.rs  ✓ 0.1s

    All green.
    claude-opus · 2 turns · 1.2k in (300 cached) / 340 out · $0.0123 · 4.2s
    session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4
    ");
}

#[test]
fn results_of_concurrent_calls_name_their_call() {
    let mut calc = tool("c", "add", json!({"a": 1, "b": 2}));
    if let Event::ToolUse(tool) = &mut calc {
        tool.server = Some("calc".into());
    }
    let events = [
        tool("a", "Bash", json!({"command": "sleep 1"})),
        tool("b", "Grep", json!({"pattern": "fn main"})),
        result("b", None),
        text("1", "Meanwhile, a word"),
        calc,
        result("a", None),
        text("1", " or two."),
        result("c", Some("\n  no such\nnumber")),
        done(|_| {}),
    ];
    assert_snapshot!(pretty(&events), @r"
    ● Bash sleep 1
    ● Grep fn main  ✓ 0.1s

    Meanwhile, a word

    ● calc: add a=1 b=2
    ✓ Bash sleep 1  0.5s

     or two.

    ✗ calc: add a=1 b=2: no such
    ");
}

#[test]
fn subagents_are_indented_under_their_call() {
    let in_subagent = |text: &str| Event::Text(delta("sub", Some("a"), text));
    let events = [
        tool("a", "Agent", json!({"description": "Look around", "prompt": "Please look around"})),
        in_subagent("Two lines\nof "),
        in_subagent("words.\n"),
        tool_of(Some("a"), "b", "Agent", json!({"description": "Look closer"})),
        Event::Thinking(delta("deep", Some("b"), "Deep down")),
        tool_of(Some("b"), "c", "Bash", json!({"command": "ls"})),
        result("c", None),
        result("b", None),
        result("a", None),
        text("1", "Looked."),
    ];
    assert_snapshot!(pretty(&events), @r"
    ● Agent Look around
      Two lines
      of words.
      ● Agent Look closer
        ✻ Deep down
        ● Bash ls  ✓ 0.1s
      ✓ Agent Look closer  0.4s
    ✓ Agent Look around  0.8s

    Looked.
    ");
}

#[test]
fn long_lines_are_truncated() {
    let long = "x".repeat(100);
    let events = [
        thinking(&"a thought ".repeat(20)),
        thinking(" and on"),
        tool("a", "Bash", json!({"command": format!("echo {long}")})),
        result("a", Some(&format!("went wrong: {long}"))),
        tool("b", "Bash", json!({"command": "short"})),
        result("b", Some(&long)),
        tool("c", "Bash", json!({"command": long})),
        tool("d", "Bash", json!({})),
        result("c", Some(&format!("went wrong: {long}"))),
        result("d", None),
    ];
    let piped = pretty(&events);
    assert!(piped.matches(&format!("went wrong: {long}\n")).count() == 2, "a pipe has no width: {piped}");
    let page = colored(Screen { terminal: true, ..PAGE }, &events);
    let page = anstream::adapter::strip_str(&page).to_string();
    assert!(page.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= PAGE.width), "{page}");
    assert_snapshot!(page, @r"
    ✻ a thought a thought a thought a thought a thought a thought a thought…
    ● Bash echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
      ✗ went wrong: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    ● Bash short  ✗ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    ● Bash xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
    ● Bash
    ✗ Bash xxxxxxxxxxxxxxxxxxxxxx…: went wrong: xxxxxxxxxxxxxxxxxxxxxxxxxx…
    ✓ Bash  0.2s
    ");
}

#[test]
fn retractions_of_one_attempt_are_reported_once() {
    let retry =
        Warning::new(WarningCode::Retrying, "API Error: 529 Overloaded. [OVERLOADED]; the run is started again");
    let retry = retry.with("attempt", 1).with("max", 3).with("delayMs", 7_300).with("errorCode", "OVERLOADED");
    let void = |id: &str| Event::Retract(Retract::new(id));
    let events = [text("1", "One."), text("2", "Two."), void("1"), void("2"), retry.into(), text("3", "Three.")];
    assert_snapshot!(pretty(&events), @r"
    One.

    Two.

    ↺ the last message is retracted: the answer starts again
    ↻ API Error: 529 Overloaded. [OVERLOADED]; the run is started again in 7.3s (1 of 3)

    Three.
    ");
}

#[test]
fn plans_rate_limits_and_warnings_are_written() {
    let retry = Warning::new(WarningCode::Retrying, "the vendor is busy; trying again");
    let retry = retry.with("attempt", 2).with("max", 10).with("delayMs", 1_200);
    let limit = |status| {
        let (resets_at, kind) = (Some("2026-01-01T00:00:00Z".to_owned()), Some("five_hour".to_owned()));
        Event::RateLimit(Box::new(
            RateLimit::new(status).with_reset(resets_at.map(Into::into)).with_kind(kind.map(Into::into)),
        ))
    };
    let entry = |content: &str, status| PlanEntry::new(content, status);
    let events = [
        text("1", "Half a sen"),
        Event::Retract(Retract::new("1")),
        text("2", "The whole sentence."),
        retry.into(),
        Warning::new(WarningCode::McpServerFailed, "MCP server \"calc\" did not\nstart").into(),
        limit(RateLimitStatus::Allowed),
        limit(RateLimitStatus::Warning),
        Event::Plan(Plan::new(vec![
            entry("Read", PlanStatus::Completed),
            entry("Think", PlanStatus::InProgress),
            entry("Write", PlanStatus::Pending),
        ])),
    ];
    assert_snapshot!(pretty(&events), @r#"
    Half a sen

    ↺ the last message is retracted: the answer starts again

    The whole sentence.

    ↻ the vendor is busy; trying again in 1.2s (2 of 10)
    ! MCP server "calc" did not start
    ! near the vendor's limit (five_hour), which resets at 2026-01-01T00:00:00Z
    ● Plan
      ☑ Read
      ▸ Think
      ☐ Write
    "#);
}

#[test]
fn denied_calls_are_listed_with_the_options_that_allow_them() {
    let denial = |name: &str| PermissionDenial::new(name);
    let end = done(|result| {
        answered(result);
        result.permission_denials = vec![denial("Bash"), denial("Write"), denial("Bash")];
    });
    let (out, err) = streams(Format::Pretty, PAGE, &[text("1", "I may not."), end]);
    assert_eq!(out, "I may not.\n");
    assert_snapshot!(anstream::adapter::strip_str(&err).to_string(), @r"
    ! denied by the permissions: Bash, Write
      see --permission and --allow-tool
    claude-opus · 2 turns · 1.2k in (300 cached) / 340 out · $0.0123 · 4.2s
    session 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4
    ");
}

#[test]
fn a_terminal_gets_colors_and_a_blank_line_before_the_summary() {
    let events =
        [init(), tool("a", "Bash", json!({"command": "true"})), result("a", None), text("1", "Done."), done(answered)];
    let page = colored(Screen { width: 72, terminal: true, styles: false }, &events);
    assert_snapshot!(page.replace('\u{1b}', "␛"), @r"
    ␛[2mclaude 2.1.197 · claude-opus␛[0m

    ␛[36m● ␛[0m␛[1mBash␛[0m true␛[32m  ✓␛[0m␛[2m 0.1s␛[0m

    Done.

    ␛[2mclaude-opus · 2 turns · 1.2k in (300 cached) / 340 out · $0.0123 · 4.2s␛[0m
    ␛[2msession 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4␛[0m
    ");
}

#[test]
fn a_notice_is_written_on_a_separate_line() {
    let paper = Paper::default();
    let to = Streams { out: Box::new(paper.clone()), err: Box::new(paper.clone()) };
    let mut output = Output::over(to, Format::Pretty, "claude", PAGE, ToolOutput::None);
    output.event(&tool("a", "Bash", json!({"command": "sleep"})), Instant::now()).unwrap();
    output.notice(&"asked to stop".into()).unwrap();
    output.event(&result("a", Some("interrupted")), Instant::now()).unwrap();
    let page = anstream::adapter::strip_str(&paper.text()).to_string();
    assert_eq!(page, "● Bash sleep\nasked to stop\n✗ Bash sleep: interrupted\n");
}

#[test]
fn the_titles_of_thoughts_are_shown_without_their_marks() {
    let shown = |parts: &[&str]| pretty(&parts.iter().map(|part| thinking(part)).collect::<Vec<_>>());
    assert_eq!(
        shown(&["**Weighing", " options*", "*\n\nFirst A.\n\n**Deciding**\nThen B."]).trim(),
        "✻ Weighing options First A. Deciding Then B."
    );
    assert_eq!(shown(&["Pass f(**kwargs) and 2 ** 3, *now*."]).trim(), "✻ Pass f(**kwargs) and 2 ** 3, *now*.");
}
