//! Input in a chat: nothing that is typed or pasted is lost.

use super::*;
use crate::screen::SIZES;

/// Returns a paste as a terminal sends it.
fn paste(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

#[test]
fn a_text_that_is_typed_during_a_turn_is_shown_and_sent_after_it() {
    let mut chat = Chat::open();
    chat.type_line("wait for it");
    chat.wait_for("Line");
    chat.type_line("next prompt");
    chat.wait_for("waiting: next prompt");
    chat.press("half a pro");
    chat.wait_for("> half a pro");
    chat.go();
    chat.wait_for_turns(2);
    chat.wait_for("> half a pro");
    chat.type_line("mpt");
    chat.wait_for_turns(3);
    assert_eq!(chat.prompts(), ["wait for it", "next prompt", "half a prompt"]);
    chat.quit();
}

#[test]
fn a_paste_while_the_agent_works_is_one_prompt() {
    for line_end in ["\r", "\n", "\r\n"] {
        let mut chat = Chat::open();
        chat.type_line("wait for it");
        chat.wait_for("Line");
        let lines: Vec<String> = (0..201).map(|number| format!("line {number}")).collect();
        chat.press(&paste(&lines.join(line_end)));
        chat.wait_for("  line 200");
        chat.press("\r");
        chat.wait_for("waiting: (201 lines) line 0 line 1");
        chat.go();
        chat.wait_for_turns(2);
        assert_eq!(chat.prompts(), ["wait for it", &lines.join("\n")]);
        chat.quit();
    }
}

#[test]
fn lines_that_arrive_together_are_one_prompt_with_each_line() {
    let mut chat = Chat::open();
    chat.type_line("one\rtwo\rthree");
    chat.wait_for_turns(1);
    chat.type_line("wait for it\r\tfour");
    chat.wait_for_times("Line", 2);
    chat.type_line("five\rsix");
    chat.wait_for("waiting: (2 lines) five six");
    chat.go();
    chat.wait_for_turns(3);
    assert_eq!(chat.prompts(), ["one\ntwo\nthree", "wait for it\n\tfour", "five\nsix"]);
    chat.quit();
}

#[test]
fn what_is_typed_before_the_agent_starts_is_kept() {
    let mut chat = Chat::new(&["be"], |chat| {
        chat.env("FAKE_CLI", format!("sleep 0.3; {AGENT}"));
    });
    chat.type_line("early");
    chat.wait_for_turns(2);
    assert_eq!(chat.prompts(), ["be", "early"]);
    chat.quit();
}

#[test]
fn waiting_prompts_survive_ctrl_c_and_are_sent_only_after_enter() {
    let mut chat = Chat::open();
    chat.type_line("be slow");
    chat.wait_for("tick");
    for prompt in ["first", "second", "third"] {
        chat.type_line(prompt);
        chat.wait_for(&format!("waiting: {prompt}"));
    }
    // Del removes the last one; Up takes the one before it back.
    chat.press("\u{1b}[3~");
    chat.terminal.wait_until("the last one is gone", |screen| !screen.contains("third"));
    chat.press("\u{1b}[A");
    chat.wait_for("> second");
    chat.type_line(" edited");
    chat.wait_for("waiting: second edited");
    chat.press("\u{3}");
    chat.wait_for("2 waiting texts were not sent: Enter in an empty line sends what waits");
    chat.wait_for("not sent: second edited");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["be slow"]);
    chat.press("\r");
    chat.wait_for_turns(3);
    assert_eq!(chat.prompts(), ["be slow", "first", "second edited"]);
    chat.quit();
}

#[test]
fn a_failed_turn_does_not_use_up_the_waiting_prompts() {
    let failing = AGENT.replace("sed 1,8d \"$CAPTURE\"", "exit 1");
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", failing);
    });
    chat.type_line("wait for it");
    chat.wait_for("Line");
    chat.type_line("next");
    chat.wait_for("waiting: next");
    chat.go();
    chat.wait_for("not sent: next");
    assert_eq!(chat.prompts(), ["wait for it"]);
    chat.quit();
}

#[test]
fn ctrl_s_sends_a_text_into_the_running_turn() {
    let mut chat = Chat::open();
    chat.type_line("be slow");
    chat.wait_for("tick");
    chat.press("and this\u{13}");
    chat.wait_for("sending: and this");
    until("the agent receives it", || chat.prompts() == ["be slow", "and this"]);
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
}

#[test]
fn several_lines_are_one_prompt() {
    let mut chat = Chat::open();
    chat.type_line("one\\");
    chat.wait_for("> one\n");
    chat.press("two\u{1b}\rthree\r");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["one\ntwo\nthree"]);
    chat.quit();
}

#[test]
fn a_text_that_the_terminal_sends_in_pieces_is_read_whole() {
    let mut chat = Chat::open();
    // An arrow key, a character and a paste, each in two parts.
    for part in ["ab\u{1b}", "[Dx", "\u{1b}[200~pa", "ste\u{1b}[201", "~"] {
        chat.press(part);
    }
    chat.wait_for("> axpasteb");
    chat.press("\r");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["axpasteb"]);
    chat.quit();
}

#[test]
fn the_history_is_of_the_directory_and_only_its_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    for directory in ["one", "other"] {
        std::fs::create_dir(folder.path().join(directory)).unwrap();
    }
    let open = |directory: &str| {
        Chat::new(&[], |chat| {
            chat.env("XDG_STATE_HOME", folder.path().join("state")).current_dir(folder.path().join(directory));
        })
    };
    let mut chat = open("one");
    chat.type_line("remember me");
    chat.wait_for_turns(1);
    chat.quit();
    let directory = folder.path().join("state/teamster/chat-history.d");
    let texts = || {
        let files = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path());
        files.map(|file| std::fs::read_to_string(file).unwrap()).collect::<String>()
    };
    assert_eq!(texts(), "\"remember me\"\n");
    let mut chat = open("other");
    chat.press("\u{1b}[Anothing");
    chat.wait_for("> nothing");
    chat.terminal.signal(Signal::SIGTERM);
    chat.wait_for_exit(130);
    let mut chat = open("one");
    chat.press("\u{12}memb");
    chat.wait_for("search: memb");
    chat.type_line("");
    chat.wait_for("> remember me");
    chat.type_line("!");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["remember me!"]);
    chat.quit();
    for file in std::fs::read_dir(directory).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn tab_completes_commands_their_arguments_and_paths() {
    let mut chat = Chat::open();
    std::fs::create_dir(chat.folder.path().join("src")).unwrap();
    std::fs::write(chat.folder.path().join("src/main.rs"), "").unwrap();
    chat.press("/perm");
    chat.press("\t");
    chat.wait_for("> /permission ");
    chat.press("e\t");
    chat.wait_for("> /permission edit");
    chat.type_line("");
    chat.wait_for("edit from the next turn on");
    chat.press("see @s");
    chat.press("\t");
    chat.wait_for("> see @src/");
    chat.press("\t");
    chat.wait_for("> see @src/main.rs");
    chat.type_line("");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["see @src/main.rs"]);
    chat.quit();
}

#[test]
fn a_slash_opens_a_menu_with_descriptions() {
    let mut chat = Chat::with_size(&[], (80, 24), |_| {});
    chat.press("/");
    chat.wait_for("/agent       start a new conversation with another agent");
    chat.wait_for("/tools       print the tool calls of the last turn, whole");
    chat.press("mo");
    chat.terminal
        .wait_until("only one command fits", |screen| !screen.contains("/tools ") && screen.contains("/model "));
    chat.press("\u{1b}");
    chat.terminal.wait_until("the menu is closed", |screen| !screen.contains("/model "));
    for _ in 0..3 {
        chat.press("\u{7f}");
    }
    chat.press("/permission ");
    chat.wait_for("edit files of the project without asking");
    chat.press("\u{1b}[B\u{1b}[B");
    chat.wait_for("> /permission ask");
    chat.type_line("");
    chat.type_line("");
    chat.wait_for("ask from the next turn on");
    chat.quit();
}

#[test]
fn vi_keys_are_an_option() {
    let mut chat = Chat::new(&["--keys", "vi"], |_| {});
    chat.press("one two");
    chat.wait_for("> one two");
    chat.press("\u{1b}");
    chat.wait_for(": one two");
    chat.press("0dwA!");
    chat.wait_for("> two!");
    chat.press("\r");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["two!"]);
    chat.quit();
}

#[test]
fn the_screen_while_the_agent_works() {
    for (size, color) in [(SIZES[0], true), (SIZES[0], false), (SIZES[1], true)] {
        let mut chat = Chat::with_size(&[], size, |chat| {
            if !color {
                chat.env("NO_COLOR", "1");
            }
        });
        chat.type_line("wait for it");
        chat.wait_for("Line");
        chat.type_line("the next prompt");
        chat.wait_for("waiting: the next prompt");
        chat.press(&paste(
            "a text with\ntwo lines, of which the second is longer than eighty columns, so it is wrapped around",
        ));
        chat.wait_for("around");
        let name = format!("chat_working_{}x{}{}", size.0, size.1, if color { "" } else { "_without_color" });
        let screen = chat.terminal.styled_snapshot();
        insta::assert_snapshot!(name, screen);
        chat.terminal.signal(Signal::SIGTERM);
        chat.wait_for_exit(130);
    }
}

#[test]
fn a_prompt_that_waits_at_the_end_is_printed() {
    let mut chat = Chat::open();
    chat.type_line("be slow");
    chat.wait_for("tick");
    chat.type_line("for later");
    chat.wait_for("waiting: for later");
    chat.press("\u{3}");
    chat.wait_for("1 waiting text was not sent");
    chat.quit();
    assert!(chat.terminal.text().contains("not sent: for later\n"), "{}", chat.terminal.text());
}
