//! What the shell clients print.

use std::process::Stdio;

use super::{Gateway, Home};
use crate::command::{Ended, Running, ended};

const ASKS: &str = "{ run = { command = 'make', output = 'made', ask = true } }, { say = 'Done.' }";

impl Gateway<'_> {
    /// Creates a token with these scopes.
    fn token(&self, scopes: &str) -> String {
        let admin = std::fs::read_to_string(self.home.data().join("token")).unwrap();
        let mut curl = std::process::Command::new("curl");
        curl.args(["-sS", "-H", &format!("Authorization: Bearer {}", admin.trim())]);
        curl.args(["-H", "Content-Type: application/json", &format!("{}/v1/tokens", self.url)]);
        curl.args(["-d", &format!("{{\"owner\": \"ci\", \"scopes\": [{scopes}]}}")]);
        let made: serde_json::Value = serde_json::from_str(&ended(curl).out).unwrap();
        made["secret"].as_str().unwrap_or_else(|| panic!("no secret: {made}")).to_owned()
    }

    /// Runs a client to its end, with a text on standard input.
    fn piped(&self, args: &[&str], text: &str) -> Ended {
        let mut command = self.home.command(args);
        let mut running = Running::start(command.env("TEAMSTER_SERVER", &self.url).stdin(Stdio::piped()));
        running.type_in(text.as_bytes());
        running.end()
    }
}

#[test]
fn with_a_token_that_may_only_send_the_ids_are_printed_and_the_message_counts_as_sent() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let token = gateway.token("\"send\"");
    let send = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("TEAMSTER_SERVER", &gateway.url).env("TEAMSTER_TOKEN", &token);
        ended(command)
    };
    let answered = send(&["send", "--output", "json", "Hello"]);
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    assert!(answered.err.contains("accepted") && answered.err.contains("read"), "{}", answered.err);
    let ids: serde_json::Value = serde_json::from_str(&answered.out).unwrap();
    assert!(ids["turnId"].is_string(), "{ids}");
    let id = ids["conversationId"].as_str().unwrap();
    let again = send(&["send", "--conversation", id, "again"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    assert!(again.out.contains(id), "{}", again.out);
    gateway.stop();
}

#[test]
fn piped_input_is_appended_to_a_typed_message() {
    let home = Home::new("{ say = 'You said: {prompt}' }", "");
    let gateway = home.serve();
    let answered = gateway.piped(&["send", "--output", "text", "Review this"], "a changed line\n");
    assert_eq!(answered.code, Some(0), "{}", answered.err);
    assert!(answered.out.contains("Review this") && answered.out.contains("a changed line"), "{}", answered.out);
    let ignored = gateway.piped(&["send", "--stdin", "ignore", "--output", "text", "Hello"], "a changed line\n");
    assert!(!ignored.out.contains("a changed line"), "{}", ignored.out);
    gateway.stop();
}

#[test]
fn send_and_tail_show_why_a_request_was_denied_and_no_options_of_run() {
    let home = Home::new(ASKS, "");
    let gateway = home.serve();
    let mut send = home.command(&["send", "Build it"]);
    let mut send = Running::start(send.env("TEAMSTER_SERVER", &gateway.url));
    let notice = send.err_until("teamster approve");
    let id = notice.split("teamster approve ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let start = id.get(..id.len() - 2).unwrap();
    let denied = gateway.client(&["approve", start, "deny", "--message", "Use the test database"]);
    assert_eq!(denied.code, Some(0), "{}", denied.err);
    let answered = send.end();
    assert!(answered.err.contains("denied by") && answered.err.contains("Use the test database"), "{}", answered.err);
    assert!(
        !answered.out.contains("--allow-tool") && !answered.err.contains("--allow-tool"),
        "{}{}",
        answered.out,
        answered.err
    );
    let tail = gateway.client(&["tail", &gateway.conversation(), "--no-follow"]);
    assert!(tail.out.contains("Use the test database"), "{}", tail.out);
    let unknown = gateway.client(&["approve", "77", "deny"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.err.contains("teamster approve --list"), "{}", unknown.err);
    let part = gateway.client(&["tail", "0198"]);
    assert!(part.err.contains("give the whole id"), "{}", part.err);
    gateway.stop();
}
