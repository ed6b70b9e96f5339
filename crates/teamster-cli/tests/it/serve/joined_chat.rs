//! `teamster chat --conversation`: a chat whose conversation is in a gateway.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{Gateway, Home, TEAMSTER};
use crate::command::{ended, until};
use crate::screen::Terminal;

/// A terminal that is large enough for all output of a test.
const SIZE: (u16, u16) = (100, 90);

const QUIT: &str = "\u{4}";

impl Gateway<'_> {
    /// Starts a chat on a terminal.
    fn chat(&self, args: &[&str]) -> Terminal {
        self.chat_with(args, |_| {})
    }

    fn chat_with(&self, args: &[&str], change: impl FnOnce(&mut Command)) -> Terminal {
        let mut command = self.home.command(&[&["chat"], args].concat());
        command.env("TEAMSTER_SERVER", &self.url).env("TERM", "xterm");
        change(&mut command);
        Terminal::start(&command, SIZE)
    }

    /// Starts a chat in a new conversation. Returns its id too.
    fn new_chat(&self) -> (Terminal, String) {
        let terminal = self.chat(&["--conversation", "new"]);
        terminal.wait_for("Ctrl-D leaves");
        (terminal, self.conversation())
    }
}

fn wait_for_times(terminal: &Terminal, text: &str, times: usize) {
    let what = format!("{text:?} is on the screen {times} times");
    terminal.wait_until(&what, |screen| screen.matches(text).count() == times);
}

fn leave(mut terminal: Terminal) {
    terminal.press(QUIT);
    assert_eq!(terminal.wait_for_exit(), 0, "{}", terminal.text());
    assert!(!terminal.is_raw());
}

#[test]
fn the_history_is_shown_and_then_each_answer_as_it_is_written() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    assert_eq!(gateway.client(&["send", "--output", "text", "Hello"]).code, Some(0));
    let id = gateway.conversation();
    let mut chat = gateway.chat(&["--conversation", &id]);
    chat.wait_for("> operator: Hello");
    chat.wait_for("You said: Hello");
    chat.press("and again\r");
    chat.wait_for("You said: and again");
    wait_for_times(&chat, "> and again", 1);
    chat.press("/copy\r");
    chat.wait_for("copied 19 characters");
    chat.press(QUIT);
    chat.wait_for(&format!("teamster chat --conversation {id}"));
    assert_eq!(chat.wait_for_exit(), 0);
    for text in ["You said: Hello", "You said: and again"] {
        assert_eq!(chat.text().matches(text).count(), 1, "{}", chat.text());
    }
    gateway.stop();
}

#[test]
fn a_long_history_is_cut_and_how_to_read_all_of_it_is_shown() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    assert_eq!(gateway.client(&["send", "--output", "text", "message 0."]).code, Some(0));
    let id = gateway.conversation();
    for number in 1..=10 {
        let text = format!("message {number}.");
        assert_eq!(gateway.client(&["send", "--conversation", &id, "--output", "text", &text]).code, Some(0));
    }
    let chat = gateway.chat(&["--conversation", &id]);
    chat.wait_for("You said: message 10.");
    chat.wait_for(&format!("teamster tail {id} --no-follow"));
    assert!(!chat.text().contains("message 0."), "{}", chat.text());
    assert!(chat.text().contains("You said: message 1."), "{}", chat.text());
    leave(chat);
    gateway.stop();
}

#[test]
fn two_terminals_in_one_conversation_show_the_same_messages_with_their_authors() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let (mut one, id) = gateway.new_chat();
    let mut other = gateway.chat(&["--conversation", &id]);
    other.wait_for("Ctrl-D leaves");
    one.press("from one\r");
    other.wait_for("> operator: from one");
    other.wait_for("You said: from one");
    one.wait_for("You said: from one");
    other.press("from the other\r");
    one.wait_for("> operator: from the other");
    one.wait_for("You said: from the other");
    for (terminal, own) in [(one, "> from one"), (other, "> from the other")] {
        terminal.wait_for("You said: from the other");
        assert_eq!(terminal.text().matches(own).count(), 1, "{}", terminal.text());
        assert_eq!(terminal.text().matches("You said: from one").count(), 1, "{}", terminal.text());
        leave(terminal);
    }
    gateway.stop();
}

/// The steps of an agent that asks for permission.
const ASKS: &str = "{ run = { command = 'make', output = 'made', ask = true } }, { say = 'Finished.' }";

#[test]
fn a_permission_request_is_answered_on_the_terminal_and_shown_in_the_other_one() {
    let home = Home::new(ASKS, "");
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    let other = gateway.chat(&["--conversation", &id]);
    other.wait_for("Ctrl-D leaves");
    chat.press("Build it\r");
    for terminal in [&chat, &other] {
        terminal.wait_for("Allow claude to run this command?");
        terminal.wait_for("$ make");
        terminal.wait_for("allow? ");
    }
    chat.press("y\r");
    for terminal in [&chat, &other] {
        terminal.wait_for("Finished.");
    }
    // The prompt of the other terminal is closed, and the text names the caller.
    other.wait_for("allowed by ");
    other.wait_until("the prompt is closed", |screen| !screen.contains("allow? "));
    leave(chat);
    leave(other);
    gateway.stop();
}

#[test]
fn a_request_that_is_answered_elsewhere_closes_the_prompt_and_names_who_answered() {
    let home = Home::new(ASKS, "");
    let gateway = home.serve();
    let (mut chat, _) = gateway.new_chat();
    chat.press("Build it\r");
    chat.wait_for("allow? ");
    let list: serde_json::Value = serde_json::from_str(&gateway.client(&["approve", "--json"]).out).unwrap();
    let request = list["items"][0]["id"].as_str().unwrap();
    assert_eq!(gateway.client(&["approve", request, "deny"]).code, Some(0));
    chat.wait_for("denied by ");
    chat.wait_until("the prompt is closed", |screen| !screen.contains("allow? "));
    chat.wait_for("Finished.");
    leave(chat);
    gateway.stop();
}

#[test]
fn a_request_can_be_left_to_others_and_is_shown_again_to_who_joins() {
    let home = Home::new(ASKS, "");
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    chat.press("Build it\r");
    chat.wait_for("allow? ");
    chat.press("s\r");
    chat.wait_for("left to others");
    leave(chat);
    let mut again = gateway.chat(&["--conversation", &id]);
    again.wait_for("allow? ");
    again.press("y\r");
    again.wait_for("Finished.");
    leave(again);
    gateway.stop();
}

#[test]
fn ctrl_c_and_esc_stop_the_turn_and_the_chat_continues() {
    let home = Home::new("{ say = 'Working.' }, { waitForFile = '/no/such/file' }", "");
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    for (turn, key) in ["\u{3}", "\u{1b}"].into_iter().enumerate() {
        chat.press("Go\r");
        wait_for_times(&chat, "Working.", turn + 1);
        chat.press(key);
        wait_for_times(&chat, "interrupted", turn + 1);
    }
    leave(chat);
    let tail = gateway.client(&["tail", &id, "--no-follow"]);
    assert_eq!(tail.out.matches("[aborted]").count(), 2, "{}", tail.out);
    gateway.stop();
}

#[test]
fn leaving_the_chat_leaves_the_turn_running() {
    let home = Home::new("", "");
    let go = home.path().join("go");
    let steps = format!("{{ say = 'Working.' }}, {{ waitForFile = '{}' }}, {{ say = 'Ready.' }}", go.to_str().unwrap());
    fs::write(home.path().join("scenario.toml"), format!("[[turns]]\nsteps = [{steps}]\n")).unwrap();
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    chat.press("Go\r");
    chat.wait_for("Working.");
    // It is queued behind the running turn, in the gateway.
    chat.press("And then\r");
    chat.wait_for("queued: And then");
    chat.press(QUIT);
    chat.wait_for("the queued turns continue in the gateway");
    assert_eq!(chat.wait_for_exit(), 0);
    fs::write(go, "").unwrap();
    until("both turns end", || gateway.client(&["tail", &id, "--no-follow"]).out.matches("Ready.").count() == 2);
    gateway.stop();
}

#[test]
fn an_answer_is_shown_once_and_whole_although_the_gateway_is_killed_in_the_middle_of_it() {
    let home = Home::new("{ say = 'Part one.' }, { waitForFile = '/no/such/file' }", "interrupted = 'resume'\n");
    // The process after the crash continues the answer.
    let (second, agent) = (home.path().join("second.toml"), home.path().join("agent.sh"));
    fs::write(&second, "[[turns]]\nsteps = [{ say = 'Part two.' }]\n").unwrap();
    let root = home.path().to_str().unwrap();
    let script = format!(
        "#!/bin/sh\nscript={root}/second.toml\n\
         if [ \"$1\" != --version ] && mkdir {root}/started 2>/dev/null; then script={root}/scenario.toml; fi\n\
         exec {TEAMSTER} fake --agent claude --script \"$script\" -- \"$@\"\n"
    );
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    let gateway = home.serve();
    let (mut chat, _) = gateway.new_chat();
    chat.press("Go\r");
    chat.wait_for("Part one.");
    let url = gateway.kill();
    chat.wait_for("connecting again");
    // It is sent when the gateway is there again, once.
    chat.press("And then\r");
    chat.wait_for("sending: And then");
    let gateway = home.serve_at(url.strip_prefix("http://").unwrap());
    chat.wait_until("both turns have ended", |screen| {
        screen.matches("Part two.").count() == 2 && !screen.contains("connecting again")
    });
    for (text, times) in [("Part one.", 1), ("> Go", 1), ("> And then", 1)] {
        assert_eq!(chat.text().matches(text).count(), times, "{text:?}: {}", chat.text());
    }
    leave(chat);
    gateway.stop();
}

#[test]
fn what_does_not_work_in_a_gateway_names_what_does() {
    let home = Home::new("{ say = 'x' }", "");
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    for (command, shown) in [
        ("/new", "teamster chat --conversation new"),
        ("/sessions", "teamster conversations lists"),
        ("/compact", "sends prompts literally"),
        ("/diff", "may be on another machine"),
        ("/permission revoke 1", "until its session in the gateway ends"),
        ("/permission", "mode: the gateway's default"),
        ("/permission read-only", "read-only from the next turn on"),
        ("/model tiny", "the model tiny from the next turn on"),
        ("/agent unknown", "there is no agent"),
        ("/help", "/quit"),
    ] {
        chat.press(&format!("{command}\r"));
        chat.wait_for(shown);
    }
    chat.wait_for("tiny · read-only");
    leave(chat);
    let shown = gateway.client(&["conversations", "show", &id]);
    assert!(shown.out.contains("read-only") && shown.out.contains("tiny"), "{}", shown.out);
    gateway.stop();
}

/// Returns a new token with this scope.
fn token(gateway: &Gateway<'_>, scope: &str) -> String {
    let admin = fs::read_to_string(gateway.home.data().join("token")).unwrap();
    let body = format!("{{\"owner\": \"guest\", \"scopes\": [\"{scope}\"]}}");
    let mut curl = Command::new("curl");
    curl.args(["-s", "-H", "Content-Type: application/json", "-d", &body, &format!("{}/v1/tokens", gateway.url)]);
    curl.args(["-H", &format!("Authorization: Bearer {}", admin.trim())]);
    let created: serde_json::Value = serde_json::from_str(&ended(curl).out).unwrap();
    created["secret"].as_str().unwrap().to_owned()
}

#[test]
fn a_token_that_may_only_read_follows_the_chat_and_its_message_is_refused_with_the_missing_scope() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let (mut chat, id) = gateway.new_chat();
    let reader = token(&gateway, "read");
    let mut guest = gateway.chat_with(&["--conversation", &id], |command| {
        command.env("TEAMSTER_TOKEN", &reader);
    });
    guest.wait_for("Ctrl-D leaves");
    chat.press("Hello\r");
    guest.wait_for("You said: Hello");
    guest.press("May I?\r");
    guest.wait_for("not sent: the token may only read");
    guest.press(QUIT);
    guest.wait_for("not sent: May I?");
    assert_eq!(guest.wait_for_exit(), 0);
    leave(chat);
    gateway.stop();
}

#[test]
fn a_chat_that_cannot_join_names_the_reason_and_what_to_do() {
    let home = Home::new("{ say = 'x' }", "");
    let gateway = home.serve();
    let unknown = "0198f4d2-7f7c-7c2e-9a43-0f2f5c1d9e11";
    let ended = |args: &[&str], variables: &[(&str, &str)], code: i32, shown: &[&str]| {
        let mut chat = gateway.chat_with(args, |command| {
            command.envs(variables.iter().copied());
        });
        assert_eq!(chat.wait_for_exit(), code, "{}", chat.text());
        let text = chat.text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    };
    let join = ["--conversation", unknown];
    ended(&join, &[], 1, &["has no conversation 0198f4d2", "teamster conversations lists"]);
    ended(&join, &[("TEAMSTER_TOKEN", "tms_wrong")], 1, &["set TEAMSTER_TOKEN to a token of this gateway"]);
    ended(&join, &[("TEAMSTER_SERVER", "http://127.0.0.1:1")], 1, &["cannot reach the gateway", "teamster serve"]);
    ended(&[&join[..], &["--agent", "codex"]].concat(), &[], 2, &["--agent is for a new conversation"]);
    ended(&[&join[..], &["--max-turns", "3"]].concat(), &[], 2, &["cannot be used with"]);
    ended(&["--server", "http://127.0.0.1:1"], &[], 2, &["--conversation <ID|new>"]);
    ended(&["--conversation", "some"], &[], 2, &["the id of a conversation is needed, or new"]);
    gateway.stop();
}
