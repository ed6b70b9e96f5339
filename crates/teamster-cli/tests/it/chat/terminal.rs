//! The terminal of a chat: its settings, and terminals that can do little.

use super::*;

#[test]
fn a_dumb_terminal_suffices_and_gets_no_escape_sequences() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("TERM", "dumb").env("NO_COLOR", "1");
    });
    chat.wait_for("> ");
    chat.press("hello\n");
    chat.wait_for(LAST);
    chat.wait_for_turns(1);
    // Lines that arrive together are one prompt, and a backslash continues a line.
    chat.press("one\ntwo\\\nthree\n");
    chat.wait_for_turns(2);
    chat.press("wait for it\n");
    chat.wait_for_times("Line", 3);
    chat.press("next\n");
    chat.wait_for("(after this turn: next)");
    chat.go();
    chat.wait_for_turns(4);
    assert_eq!(chat.prompts(), ["hello", "one\ntwo\nthree", "wait for it", "next"]);
    chat.press("/quit\n");
    chat.wait_for_exit(0);
    assert!(!chat.terminal.sent().contains('\u{1b}'), "{:?}", chat.terminal.sent());
}

#[test]
fn a_request_is_answered_on_a_dumb_terminal() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("TERM", "dumb");
    });
    chat.wait_for("> ");
    chat.press("please ask\n");
    chat.wait_for("allow? ");
    chat.press("y\n");
    chat.wait_for_turns(1);
    assert!(chat.received().contains(r#""behavior":"allow""#), "{}", chat.received());
    // Ctrl-C is a signal here.
    chat.press("be slow\n");
    chat.wait_for("tick");
    chat.press("\u{3}");
    chat.wait_for("interrupted");
    chat.wait_for_turns(2);
    chat.press("\u{4}");
    chat.wait_for_exit(0);
}

#[test]
fn the_start_of_a_line_before_a_request_is_no_part_of_its_answer_on_a_dumb_terminal() {
    // The agent asks when the file exists. Until then, the person types without Enter.
    let asking =
        AGENT.replace("*'please ask'*) head", "*'please ask'*) until test -e \"$GO\"; do sleep 0.02; done; head");
    let mut chat = Chat::new(&[], |chat| {
        chat.env("TERM", "dumb").env("FAKE_CLI", asking);
    });
    chat.wait_for("> ");
    chat.press("please ask\n");
    until("the agent has the prompt", || chat.received().contains("please ask"));
    chat.press("y");
    chat.go();
    chat.wait_for("allow? ");
    chat.press("\n");
    chat.wait_for("type y to allow this call");
    chat.wait_for_times("allow? ", 2);
    assert!(!chat.received().contains("behavior"), "{}", chat.received());
    chat.press("n\n");
    chat.wait_for_turns(1);
    assert!(chat.received().contains(r#""behavior":"deny""#), "{}", chat.received());
    // The text is not lost.
    chat.press("es\n");
    chat.wait_for_turns(2);
    assert_eq!(chat.prompts(), ["please ask", "yes"]);
    chat.press("\u{4}");
    chat.wait_for_exit(0);
}

#[test]
fn a_signal_restores_the_terminal_and_prints_how_to_resume() {
    for is_working in [false, true] {
        let mut chat = Chat::open();
        chat.type_line("hello");
        chat.wait_for_turns(1);
        if is_working {
            chat.type_line("be slow");
            chat.wait_for("tick");
            chat.press("draft");
            chat.wait_for("> draft");
        }
        assert!(chat.terminal.is_raw());
        chat.terminal.signal(Signal::SIGTERM);
        chat.wait_for("teamster chat --agent claude --resume ");
        chat.wait_for_exit(130);
        // The texts of the agent and of the person stay, and the input box goes.
        let screen = chat.terminal.text();
        let (answer, draft) = (screen.contains("tick"), screen.contains("not sent: draft"));
        assert!((answer, draft) == (is_working, is_working) && !screen.contains("> draft"), "{screen}");
    }
}

#[test]
fn sigquit_and_sighup_restore_the_terminal_too() {
    for signal in [Signal::SIGQUIT, Signal::SIGHUP] {
        let mut chat = Chat::open();
        chat.terminal.signal(signal);
        chat.wait_for_exit(130);
    }
}

/// Runs the chat as a job of a shell with job control.
const SHELL: &str = "set -m; \"$0\" chat --agent claude; echo \"suspended: $?\"; fg; echo \"ended: $?\"";

#[test]
fn ctrl_z_suspends_the_chat_with_a_restored_terminal_and_the_agent_works_on() {
    let mut chat = Chat::new(&[], |chat| {
        let teamster = chat.get_program().to_owned();
        let mut shell = Command::new("/bin/bash");
        shell.arg("-c").arg(SHELL).arg(teamster).env_clear();
        shell.envs(chat.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.current_dir(chat.get_current_dir().unwrap());
        *chat = shell;
    });
    chat.type_line("wait for it");
    chat.wait_for("Line");
    chat.press("draft\u{1a}");
    // The shell prints this after SIGSTOP, and continues the job at once.
    chat.wait_for("suspended: 147");
    chat.wait_for("> draft");
    chat.go();
    chat.wait_for_turns(1);
    chat.press("\u{3}");
    chat.wait_for("discarded");
    chat.press("\u{4}");
    chat.wait_for("ended: 0");
    chat.wait_for_exit(0);
}

#[test]
fn without_a_shell_ctrl_z_does_not_suspend() {
    let mut chat = Chat::start_with(&[], |_| {}, |chat| Terminal::start_without_shell(chat, SIZE));
    chat.wait_for("Ctrl-D quits");
    chat.press("\u{1a}");
    chat.wait_for("no shell can continue this command");
    chat.quit();
}

#[test]
fn the_editor_changes_the_text() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("EDITOR", "sh -c 'printf \" edited\\nsecond line\\n\" >> \"$1\"; stty -a > \"$HOME/stty\"' sh");
    });
    chat.press("draft");
    chat.wait_for("> draft");
    chat.press("\u{7}");
    chat.wait_for("second line");
    chat.press("\r");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["draft edited\nsecond line"]);
    let settings = std::fs::read_to_string(chat.folder.path().join("stty")).unwrap();
    assert!(
        ["icanon", "isig"].iter().all(|mode| settings.split_whitespace().any(|found| found == *mode)),
        "{settings}"
    );
    chat.quit();
}

#[test]
fn a_failing_editor_leaves_the_text() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("EDITOR", "false");
    });
    chat.press("draft\u{18}\u{5}");
    chat.wait_for("the editor failed, so the text stays as it was");
    chat.press("!\r");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["draft!"]);
    chat.quit();
}

#[test]
fn a_resize_wraps_the_text_at_the_new_width() {
    let mut chat = Chat::with_size(&[], (80, 24), |_| {});
    let text = "a message of several words that is wider than forty columns";
    chat.press(text);
    chat.wait_for(text);
    chat.terminal.resize((40, 24));
    chat.terminal.wait_until("the text is wrapped", |screen| {
        screen.contains("\n> a message of several words that is \n  wider than forty columns\n")
    });
    chat.terminal.resize((120, 24));
    chat.wait_for(&format!("> {text}\n"));
    assert_eq!(chat.terminal.text().matches("wider than forty").count(), 1, "{}", chat.terminal.text());
    chat.press("\r");
    chat.wait_for_turns(1);
    chat.quit();
    assert_eq!(chat.prompts(), [text]);
}

#[test]
fn a_turn_that_the_agent_starts_itself_is_shown() {
    let mut chat = Chat::new(&["--background-tasks"], |_| {});
    chat.type_line("work in the background");
    chat.wait_for("Started it.");
    chat.wait_for_turns(1);
    chat.press("a draft");
    chat.wait_for("> a draft");
    chat.go();
    chat.wait_for("Tool over.");
    chat.wait_for_turns(2);
    chat.wait_for("> a draft");
    assert_eq!(chat.prompts(), ["work in the background"]);
    chat.press("\u{15}");
    chat.wait_for("> \n");
    chat.quit();
}
