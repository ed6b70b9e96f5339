//! `teamster chat` on a terminal.

mod commands;
mod input;
mod permissions;
mod terminal;

use std::process::{Command, Stdio};

use rexpect::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::command::{capture, command, lives, until, wait};
use crate::screen::Terminal;

/// Answers each prompt with the recorded run. The prompt can request a permission request, a question or a slow answer. Records its
/// input.
const AGENT: &str = "echo $$ > \"$PID_FILE\"; read -r opening; while read -r line; do printf '%s\\n' \"$line\" >> \"$RECEIVED\"; case $line in \
    *'be slow'*) sed '$d' \"$STREAM\"; \
        while read -r more; do printf '%s\\n' \"$more\" >> \"$RECEIVED\"; case $more in *interrupt*) tail -n 1 \"$STREAM\"; break;; esac; done;; \
    *'please ask'*) head -n 4 \"$CAPTURE\"; printf '%s\\n' \"$REQUEST\"; while read -r answer; do echo \"$answer\" >> \"$RECEIVED\"; \
        case $answer in *behavior*) break;; esac; done; sed 1,4d \"$CAPTURE\";; \
    *'let me choose'*) head -n 4 \"$CAPTURE\"; echo \"$QUESTION\"; while read -r answer; do echo \"$answer\" >> \"$RECEIVED\"; \
        case $answer in *behavior*) break;; esac; done; sed 1,4d \"$CAPTURE\";; \
    *'in the background'*) sed -n 2,4p \"$BACKGROUND\"; read -r claim; id=${claim#*teamster-cancel-}; id=${id%%\\\"*}; \
        sed -n \"5,25{s/claim-1/teamster-cancel-$id/;s/00000000-0000-4000-8000-000000000001/$id/;p}\" \"$BACKGROUND\"; \
        until test -e \"$GO\"; do sleep 0.02; done; sed -n 26,57p \"$BACKGROUND\";; \
    *'wait for it'*) head -n 8 \"$CAPTURE\"; until test -e \"$GO\"; do sleep 0.02; done; sed 1,8d \"$CAPTURE\";; \
    *'\"user\"'*) cat \"$CAPTURE\";; esac; done";

/// The end of the answer in each turn.
const LAST: &str = "done.";

/// A terminal that is large enough for all output of a test.
const SIZE: (u16, u16) = (100, 70);

/// Returns a permission request of Claude Code.
fn request(tool: &str, input: &serde_json::Value) -> String {
    json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": "t1"},
    })
    .to_string()
}

struct Chat {
    terminal: Terminal,
    folder: TempDir,
}

impl Chat {
    fn new(args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        Self::with_size(args, SIZE, change)
    }

    fn with_size(args: &[&str], size: (u16, u16), change: impl FnOnce(&mut Command)) -> Self {
        let chat = Self::start(args, size, change);
        chat.wait_for("Ctrl-D quits");
        chat
    }

    fn start(args: &[&str], size: (u16, u16), change: impl FnOnce(&mut Command)) -> Self {
        Self::start_with(args, change, |chat| Terminal::start(chat, size))
    }

    fn start_with(args: &[&str], change: impl FnOnce(&mut Command), start: impl FnOnce(&Command) -> Terminal) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut chat = command("chat", AGENT, args);
        let question = json!({"questions": [{"question": "Which?", "options": [{"label": "Red"}, {"label": "Blue"}]}]});
        chat.env("HOME", folder.path()).env("TERM", "xterm").env("STREAM", capture("sig_int_stream"));
        chat.env("BACKGROUND", capture("bg_claimed"));
        chat.env("REQUEST", request("Bash", &json!({"command": "touch x"})))
            .env("QUESTION", request("AskUserQuestion", &question));
        chat.env("RECEIVED", folder.path().join("received")).env("PID_FILE", folder.path().join("pid"));
        chat.env("GO", folder.path().join("go")).current_dir(folder.path());
        change(&mut chat);
        Self { terminal: start(&chat), folder }
    }

    fn open() -> Self {
        Self::new(&[], |_| {})
    }

    fn wait_for(&self, text: &str) {
        self.terminal.wait_for(text);
    }

    /// Waits until a text is on the screen this many times.
    fn wait_for_times(&self, text: &str, times: usize) {
        let what = format!("{text:?} is on the screen {times} times");
        self.terminal.wait_until(&what, |screen| screen.matches(text).count() == times);
    }

    /// Waits until this many turns have ended, and none runs.
    fn wait_for_turns(&self, turns: usize) {
        let is_spinner = |character: char| ('\u{2800}'..='\u{28ff}').contains(&character);
        self.terminal.wait_until(&format!("{turns} turns ended"), |screen| {
            let is_end = |line: &&str| line.starts_with("claude-opus-4-8");
            screen.lines().filter(is_end).count() == turns && !screen.contains(is_spinner)
        });
    }

    fn press(&mut self, keys: &str) {
        self.terminal.press(keys);
    }

    fn type_line(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Lets the agent end its answer to "wait for it".
    fn go(&self) {
        std::fs::write(self.folder.path().join("go"), "").unwrap();
    }

    fn received(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("received")).unwrap_or_default()
    }

    /// Returns the prompts that the agent received.
    fn prompts(&self) -> Vec<String> {
        let received = self.received();
        let messages = received.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let text = |message: serde_json::Value| {
            let content = &message["message"]["content"];
            let text = content.as_str().or_else(|| content[0]["text"].as_str());
            (message["type"] == "user").then(|| text.unwrap_or_default().to_owned())
        };
        messages.filter_map(text).collect()
    }

    /// Waits for the exit, and checks that the terminal is as before and that no process remains.
    fn wait_for_exit(&mut self, code: i32) {
        assert_eq!(self.terminal.wait_for_exit(), code, "{}", self.terminal.text());
        assert!(!self.terminal.is_raw());
        let (sent, pid) = (self.terminal.sent(), self.folder.path().join("pid"));
        let last = |sequence: &str| sent.rfind(sequence);
        assert!(last("\u{1b}[?2004h") <= last("\u{1b}[?2004l"), "bracketed paste stays on");
        assert!(!pid.exists() || !lives(&pid));
    }

    fn quit(&mut self) {
        self.press("\u{4}");
        self.wait_for_exit(0);
    }
}

#[test]
fn a_conversation_is_shown_as_it_happens_and_its_id_is_shown_at_the_end() {
    let mut chat = Chat::open();
    for (turn, prompt) in ["hello", "and again"].into_iter().enumerate() {
        chat.type_line(prompt);
        chat.wait_for_times("Line two", turn + 1);
        chat.wait_for_turns(turn + 1);
    }
    chat.type_line("/cost");
    chat.wait_for("2 turns");
    chat.press("\u{4}");
    chat.wait_for("--resume 67c9c3e6-c7de-48a2-bc6b-8c0c662932f4");
    chat.wait_for_exit(0);
    assert_eq!(chat.prompts(), ["hello", "and again"]);
    assert!(!chat.terminal.text().contains("· ask ·"), "the input box is gone: {}", chat.terminal.text());
}

#[test]
fn the_first_prompt_can_be_an_argument() {
    let mut chat = Chat::new(&["fix this"], |_| {});
    chat.wait_for("> fix this");
    chat.wait_for_turns(1);
    assert_eq!(chat.prompts(), ["fix this"]);
    chat.quit();
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
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.quit();
    let shown = chat.terminal.sent();
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
    chat.wait_for_times("(empty = decline): ", 2);
    chat.type_line("2");
    chat.wait_for(LAST);
    assert!(chat.received().contains(r#""answers":{"Which?":"Blue"}"#), "{}", chat.received());
    chat.wait_for_turns(1);
    chat.quit();
}

#[test]
fn ctrl_c_and_esc_stop_the_agent_and_two_at_the_prompt_end_the_conversation() {
    for key in ["\u{3}", "\u{1b}"] {
        let mut chat = Chat::open();
        chat.type_line("be slow");
        chat.wait_for("tick");
        chat.press(key);
        chat.wait_for("interrupted");
        chat.wait_for_turns(1);
        chat.type_line("hello");
        chat.wait_for(LAST);
        chat.wait_for_turns(2);
        chat.press("\u{3}");
        chat.wait_for("Ctrl-C again");
        chat.press("\u{3}");
        chat.wait_for_exit(0);
    }
}

#[test]
fn a_second_ctrl_c_kills_an_agent_that_does_not_stop() {
    let deaf = AGENT.replace("*interrupt*) tail", "*never*) tail");
    let mut chat = Chat::new(&[], |chat| {
        chat.env("FAKE_CLI", deaf);
    });
    chat.type_line("be slow");
    chat.wait_for("tick");
    chat.press("\u{3}");
    chat.wait_for("asked the agent to stop; press Ctrl-C again to kill it");
    chat.press("\u{3}");
    chat.wait_for("interrupted");
    chat.wait_for_turns(1);
    chat.quit();
}

#[test]
fn an_unknown_agent_does_not_change_the_conversation() {
    let mut chat = Chat::open();
    for (line, shown) in [
        ("/agent unknown-agent", "there is no agent \"unknown-agent\""),
        ("/permission edit", "edit from the next turn on"),
        ("/nonsense", "unknown command"),
    ] {
        chat.type_line(line);
        chat.wait_for(shown);
    }
    chat.type_line("hello");
    chat.wait_for_turns(1);
    chat.type_line("/quit");
    chat.wait_for_exit(0);
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
    let mut chat = Chat::start(&["--agent", "codex"], SIZE, |chat| {
        chat.env_remove("BACKEND_CLI_PATH");
    });
    chat.wait_for("codex is not installed");
    chat.wait_for("npm install -g @openai/codex");
    chat.wait_for_exit(127);
}
