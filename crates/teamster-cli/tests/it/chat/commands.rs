//! The commands of a chat.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// Runs Git in a directory.
fn git(directory: &std::path::Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(arguments);
    assert!(git.current_dir(directory).env("HOME", directory).output().unwrap().status.success());
}

#[test]
fn diff_shows_what_changed_and_which_files_are_new() {
    let repository = tempfile::tempdir().unwrap();
    let file = |name: &str| repository.path().join(name);
    git(repository.path(), &["init"]);
    std::fs::write(file("a.txt"), "one\ntwo\n").unwrap();
    git(repository.path(), &["add", "."]);
    git(repository.path(), &["commit", "-m", "first"]);
    std::fs::write(file("a.txt"), "one\ntwo \u{1b}[31mchanged\n").unwrap();
    std::fs::write(file("new.txt"), "").unwrap();
    let mut chat = Chat::new(&[], |chat| {
        chat.current_dir(repository.path());
    });
    chat.type_line("/diff");
    chat.wait_for("+two ⟦ESC⟧[31mchanged");
    chat.wait_for("-two");
    chat.wait_for("new.txt");
    let colored = chat.terminal.styled_snapshot();
    assert!(colored.contains("<red>-two") && colored.contains("<green>+two"), "{colored}");
    chat.quit();
}

#[test]
fn diff_needs_a_repository() {
    let mut chat = Chat::open();
    chat.type_line("/diff");
    chat.wait_for("this directory is in no Git repository");
    chat.quit();
}

#[test]
fn copy_sends_the_last_answer_to_the_clipboard_of_the_terminal() {
    let mut chat = Chat::open();
    chat.type_line("/copy");
    chat.wait_for("there is no answer yet");
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/copy");
    chat.wait_for("copied 113 characters");
    let sent = chat.terminal.sent();
    // The beginning of the answer: "Hello, w".
    assert!(sent.contains("\u{1b}]52;c;SGVsbG8sIH"), "{sent:?}");
    chat.quit();
}

#[test]
fn export_writes_the_conversation_and_overwrites_nothing() {
    let mut chat = Chat::open();
    chat.type_line("/export chat.md");
    chat.wait_for("there is nothing to export yet");
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/export chat.md");
    chat.wait_for("wrote ");
    let file = chat.folder.path().join("chat.md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("> hello\n\n## claude\n\nHello, wörld! 👋\n"), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&file, "mine").unwrap();
    chat.type_line("/export chat.md");
    chat.wait_for("exists already");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    chat.type_line("/export none/chat.md");
    chat.wait_for("cannot write ");
    chat.quit();
}

#[test]
fn tools_shows_calls_of_the_last_turn_with_their_whole_output() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("CAPTURE", capture("tool_bash"));
    });
    chat.type_line("/tools");
    chat.wait_for("the last turn has no tool calls");
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/tools");
    let shown_again = |screen: &str| screen.matches("● Run ").count() == 2 && !screen.contains("\"command\"");
    chat.terminal.wait_until("the call is shown again, without JSON", shown_again);
    chat.quit();
}

#[test]
fn clear_empties_the_screen_and_starts_a_new_conversation() {
    let mut chat = Chat::open();
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/clear");
    chat.wait_for("new conversation with claude");
    chat.terminal.wait_until("the old conversation is gone", |screen| !screen.contains("Line two"));
    chat.type_line("/cost");
    chat.wait_for("0 turns");
    chat.quit();
}

#[test]
fn compact_is_a_command_of_claude_and_an_error_of_the_others() {
    let mut chat = Chat::open();
    chat.type_line("/compact");
    chat.wait_for("there is no conversation to compact yet");
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/compact keep the plan");
    chat.wait_for_turns(2);
    assert_eq!(chat.prompts(), ["hello", "/compact keep the plan"]);
    chat.quit();
    let mut chat = Chat::new(&["--agent", "codex"], |_| {});
    chat.type_line("/compact");
    chat.wait_for("codex has no command for this here");
    chat.quit();
}

#[test]
fn help_fits_a_small_terminal() {
    let mut chat = Chat::with_size(&[], (80, 24), |_| {});
    chat.type_line("/help");
    chat.wait_for("stop the agent; Ctrl-C again: kill it");
    // The first line is still on the screen.
    assert!(chat.terminal.text().contains("/agent NAME"), "{}", chat.terminal.text());
    let longest = chat.terminal.text().lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(80), "{}", chat.terminal.text());
    chat.quit();
}
