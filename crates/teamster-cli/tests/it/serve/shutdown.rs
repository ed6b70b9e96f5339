//! A gateway that shuts down while a turn runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Gateway, Home};
use crate::command::until;

/// Sends a request on a new connection.
fn open(gateway: &Gateway<'_>, method: &str, path: &str, body: &str, connection: &str) -> TcpStream {
    let host = gateway.url.strip_prefix("http://").unwrap();
    let token = std::fs::read_to_string(gateway.home.data().join("token")).unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\n", token.trim());
    let length = body.len();
    let head = format!(
        "{head}connection: {connection}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Returns a whole response, with its head.
fn call(gateway: &Gateway<'_>, method: &str, path: &str, body: &str) -> String {
    let mut response = String::new();
    open(gateway, method, path, body, "close").read_to_string(&mut response).unwrap();
    response
}

fn json(response: &str) -> Value {
    serde_json::from_str(response.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn while_a_turn_ends_the_api_stays_open_and_then_no_connection_delays_the_end() {
    let home = Home::new("{ say = 'begin' }, { waitMs = 3000 }, { say = 'end' }", "");
    let mut gateway = home.serve();
    let id = json(&call(&gateway, "POST", "/v1/conversations", "{}"))["id"].as_str().unwrap().to_owned();
    let conversation = format!("/v1/conversations/{id}");
    let messages = format!("{conversation}/messages");
    let text = json!({ "text": "hello" }).to_string();
    let turn = json(&call(&gateway, "POST", &messages, &text))["turnId"].as_str().unwrap().to_owned();
    let turn = format!("/v1/turns/{turn}");
    until("the turn runs", || json(&call(&gateway, "GET", &turn, ""))["state"] == "running");
    let mut events = open(&gateway, "GET", &format!("{conversation}/events"), "", "keep-alive");
    let mut idle = open(&gateway, "GET", "/healthz", "", "keep-alive");
    assert!(idle.read(&mut [0; 4096]).unwrap() > 0);

    gateway.running.signal(rustix::process::Signal::TERM);
    until("probes see the shutdown", || call(&gateway, "GET", "/readyz", "").starts_with("HTTP/1.1 503"));
    assert!(call(&gateway, "GET", "/healthz", "").starts_with("HTTP/1.1 200"));
    let refused = call(&gateway, "POST", &messages, &text);
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("\r\nretry-after: "), "{refused}");
    assert_eq!(json(&refused)["code"], "SHUTTING_DOWN");
    assert_eq!(json(&call(&gateway, "GET", &conversation, ""))["state"], "running");
    assert_eq!(json(&call(&gateway, "GET", &format!("{turn}?wait=60"), ""))["state"], "done");

    let ended = Instant::now();
    assert_eq!(gateway.running.wait_for_exit(), Some(0));
    assert!(ended.elapsed() < Duration::from_secs(4), "{:?}", ended.elapsed());
    let mut log = String::new();
    events.read_to_string(&mut log).unwrap();
    assert!(log.contains("event: turn_finished") && log.contains("SHUTTING_DOWN"), "{log}");
    assert_eq!(idle.read(&mut [0; 64]).unwrap_or(0), 0, "the idle connection is closed");
}
