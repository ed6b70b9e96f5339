//! `teamster chat` in a pseudo-terminal.

mod permissions;

use std::process::{Command, Stdio};

use rexpect::process::{Signal, WaitStatus};
use rexpect::session::{PtySession, spawn_command};
use serde_json::json;
use tempfile::TempDir;

use crate::command::{BOUND, capture, command, lives, sent, until, wait};

/// Answers each prompt with the recorded run. The prompt can request a permission request, a question or a slow answer. Records its
/// input.
const AGENT: &str = "echo $$ > \"$PID_FILE\"; read -r opening; while read -r line; do printf '%s\\n' \"$line\" >> \"$RECEIVED\"; case $line in \
    *'be slow'*) sed '$d' \"$STREAM\"; \
        while read -r more; do case $more in *interrupt*) tail -n 1 \"$STREAM\"; break;; esac; done;; \
    *'please ask'*) head -n 4 \"$CAPTURE\"; printf '%s\\n' \"$REQUEST\"; while read -r answer; do echo \"$answer\" >> \"$RECEIVED\"; \
        case $answer in *behavior*) break;; esac; done; sed 1,4d \"$CAPTURE\";; \
    *'let me choose'*) head -n 4 \"$CAPTURE\"; echo \"$QUESTION\"; while read -r answer; do echo \"$answer\" >> \"$RECEIVED\"; \
        case $answer in *behavior*) break;; esac; done; sed 1,4d \"$CAPTURE\";; \
    *'\"user\"'*) cat \"$CAPTURE\";; esac; done";

/// The end of the answer in each turn.
const LAST: &str = "done.";

/// Returns a permission request of Claude Code.
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
        chat.env("RECEIVED", folder.path().join("received")).env("PID_FILE", folder.path().join("pid"));
        change(chat.stdin(Stdio::inherit()));
        let bound = u64::try_from(BOUND.as_millis()).unwrap();
        Self { screen: spawn_command(chat, Some(bound)).unwrap(), folder }
    }

    fn open() -> Self {
        let mut chat = Self::new(&[], |_| {});
        chat.wait_for("Ctrl-D quits");
        chat.wait_for("> ");
        chat
    }

    /// Waits until this text is on the screen. Returns the text before it.
    fn wait_for(&mut self, text: &str) -> String {
        match self.screen.exp_string(text) {
            Ok(before) => before,
            Err(error) => panic!("{text:?} is not on the screen: {error}"),
        }
    }

    fn type_line(&mut self, line: &str) {
        self.screen.send(&format!("{line}\r")).unwrap();
        self.screen.flush().unwrap();
    }

    fn press(&mut self, key: char) {
        self.screen.send_control(key).unwrap();
        self.screen.flush().unwrap();
    }

    fn received(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default()
    }

    /// Waits for the exit, and checks that no process remains.
    fn wait_for_exit(&mut self, code: i32) {
        self.screen.exp_eof().unwrap();
        let process = self.screen.process();
        let mut ended = None;
        until("the command ends", || {
            // The status can be read only once after the exit.
            ended = process.status();
            !matches!(ended, Some(WaitStatus::StillAlive))
        });
        assert!(matches!(ended, Some(WaitStatus::Exited(_, found)) if found == code), "{ended:?}");
        assert!(!lives(&self.folder.path().join("pid")));
    }
}

#[test]
fn a_conversation_is_shown_as_it_happens_and_its_id_is_shown_at_the_end() {
    let mut chat = Chat::open();
    for prompt in ["hello", "and again"] {
        chat.type_line(prompt);
        chat.wait_for("Line two");
        chat.wait_for(LAST);
        chat.wait_for("> ");
    }
    chat.type_line("/cost");
    chat.wait_for("2 turns");
    chat.press('d');
    chat.wait_for("--resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4");
    chat.wait_for_exit(0);
    let (first, second) = (chat.received().find("hello"), chat.received().find("and again"));
    assert!(first.is_some() && first < second, "{}", chat.received());
}

#[test]
fn a_session_id_cannot_control_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = folder.path().join("hostile");
    let recorded = std::fs::read_to_string(capture("text")).unwrap();
    std::fs::write(&hostile, recorded.replace("67c9c3e6-c7de-48a2-bc6b-8c0c662932f4", r"\u001b]52;c;eA==\u0007;x"))
        .unwrap();
    let mut chat = Chat::new(&[], |chat| {
        chat.env("CAPTURE", &hostile);
    });
    chat.wait_for("> ");
    chat.type_line("hello");
    chat.wait_for(LAST);
    chat.wait_for("> ");
    chat.press('d');
    let shown = sent(&chat.screen.exp_eof().unwrap());
    assert!(shown.contains("--resume '⟦ESC⟧]52;c;eA==⟦BEL⟧;x'") && !shown.contains("\u{1b}]"), "{shown:?}");
}

#[test]
fn a_question_is_answered_by_a_number() {
    let mut chat = Chat::open();
    chat.type_line("let me choose");
    chat.wait_for("2  Blue");
    chat.wait_for("(empty = decline): ");
    chat.type_line("7");
    chat.wait_for("choose from 1 to 2");
    chat.wait_for("(empty = decline): ");
    chat.type_line("2");
    chat.wait_for(LAST);
    assert!(chat.received().contains(r#""answers":{"Which?":"Blue"}"#), "{}", chat.received());
    chat.wait_for("> ");
    chat.press('d');
    chat.wait_for_exit(0);
}

#[test]
fn ctrl_c_interrupts_the_agent_and_two_at_the_prompt_end_the_conversation() {
    let mut chat = Chat::open();
    chat.type_line("be slow");
    chat.wait_for("tick");
    chat.press('c');
    chat.wait_for("asked the agent to stop");
    chat.wait_for("interrupted");
    chat.wait_for("> ");
    chat.type_line("hello");
    chat.wait_for(LAST);
    chat.wait_for("> ");
    chat.press('c');
    chat.wait_for("Ctrl-C again");
    chat.wait_for("> ");
    chat.press('c');
    chat.wait_for_exit(0);
}

#[test]
fn a_line_that_is_typed_during_a_turn_is_sent_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = "echo $$ > \"$PID_FILE\"; read -r opening; read -r prompt; head -n 8 \"$CAPTURE\"; \
        until test -e \"$GO\"; do sleep 0.05; done; sed 1,8d \"$CAPTURE\"; read -r prompt; echo \"$prompt\" > \"$RECEIVED\"; \
        cat \"$CAPTURE\"; cat > /dev/null";
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", script).env("GO", &go);
    });
    chat.wait_for("> ");
    chat.type_line("hello");
    chat.wait_for("Line");
    chat.type_line("next prompt");
    chat.wait_for("(after this turn: next prompt)");
    std::fs::write(&go, "").unwrap();
    chat.wait_for("> next prompt");
    chat.wait_for(LAST);
    assert!(chat.received().contains("next prompt"), "{}", chat.received());
    chat.wait_for("> ");
    chat.press('d');
    chat.wait_for_exit(0);
}

#[test]
fn several_lines_are_one_prompt() {
    let mut chat = Chat::open();
    chat.type_line("one\\");
    chat.screen.send("two\u{1b}\rthree\r").unwrap();
    chat.screen.flush().unwrap();
    chat.wait_for(LAST);
    assert!(chat.received().contains(r#""one\ntwo\nthree""#), "{}", chat.received());
    chat.wait_for("> ");
    chat.press('d');
    chat.wait_for_exit(0);
}

#[test]
fn the_history_keeps_lines_of_earlier_conversations_and_only_its_user_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let state = tempfile::tempdir().unwrap();
    for prompt in ["remember me", "\u{1b}[A"] {
        let mut chat = Chat::new(&[], |chat| {
            chat.env("XDG_STATE_HOME", state.path());
        });
        chat.wait_for("> ");
        chat.type_line(prompt);
        chat.wait_for(LAST);
        assert!(chat.received().contains("remember me"), "{}", chat.received());
        chat.wait_for("> ");
        chat.press('d');
        chat.wait_for_exit(0);
    }
    let history = state.path().join("teamster/chat-history");
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_unknown_agent_does_not_change_the_conversation() {
    let mut chat = Chat::open();
    chat.type_line("/agent unknown-agent");
    chat.wait_for("unknown-agent");
    chat.type_line("/permission edit");
    chat.wait_for("edit from the next turn on");
    chat.type_line("/nonsense");
    chat.wait_for("unknown command");
    chat.type_line("hello");
    chat.wait_for(LAST);
    chat.wait_for("> ");
    chat.type_line("/quit");
    chat.wait_for_exit(0);
}

#[test]
fn a_dumb_terminal_suffices_and_gets_no_escape_sequences() {
    let mut chat = Chat::new(&[], |chat| {
        chat.env("TERM", "dumb").env("NO_COLOR", "1");
    });
    chat.wait_for("> ");
    chat.screen.send_line("hello").unwrap();
    let shown = chat.wait_for(LAST);
    assert!(shown.contains("Line two") && !shown.contains('\u{1b}'), "{shown:?}");
    chat.wait_for("> ");
    chat.screen.send_line("/quit").unwrap();
    chat.wait_for_exit(0);
}

#[test]
fn a_signal_at_the_prompt_restores_the_terminal_and_prints_how_to_resume() {
    let mut chat = Chat::open();
    chat.type_line("hello");
    chat.wait_for(LAST);
    chat.wait_for("> ");
    chat.screen.process_mut().signal(Signal::SIGTERM).unwrap();
    chat.wait_for("\u{1b}[?2004l\r\n");
    chat.wait_for("--resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4\r\n");
    chat.wait_for_exit(130);
}

#[test]
fn without_a_terminal_it_names_the_alternative() {
    let mut chat = command("chat", AGENT, &[]);
    let mut child = chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait(&mut child), Some(2));
    let message = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(message.contains("needs a terminal") && message.contains("teamster session"), "{message}");
}

#[test]
fn without_the_agents_program_it_names_the_command_that_installs_it() {
    let mut chat = Chat::new(&["--agent", "codex"], |chat| {
        chat.env_remove("BACKEND_CLI_PATH");
    });
    chat.wait_for("codex is not installed");
    chat.wait_for("npm install -g @openai/codex");
    chat.screen.exp_eof().unwrap();
}
