//! A CLI whose protocol is spoken over an HTTP server that the CLI starts. Here the test is the
//! server, and a fake agent is the process.

use std::fs;
use std::time::Duration;

use serde_json::json;
use teamster::agent::launch::{Launch, LocalServer};
use teamster::agent::protocol::{
    Action, CallId, Input, Method, Outcome, ProcessAction, Protocol, ServerAction, ServerCall, ServerInput,
};
use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event, Failure};
use teamster::request::{Limits, RequestError};
use teamster::{Registry, Run, RunRequest, Runtime};
use teamster_testkit::fake::{SCRIPT_ENV, Script};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::test_env::{BOUND, LONG, SHORT, TestEnv, bounded, fake_agent, is_text, read_until, rest_after, rest_of};

const VARIABLE: &str = "SERVED_PASSWORD";

/// An agent that emits its server's events as text.
struct ServerAgent;

struct ServerProtocol;

impl Agent for ServerAgent {
    fn name(&self) -> &'static str {
        "served"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut launch = Launch::new(fake_agent());
        launch.server = Some(LocalServer { user: "someone", password_variable: VARIABLE });
        launch.env(SCRIPT_ENV, request.prompt.as_str());
        Ok(Plan { launch, protocol: Box::new(ServerProtocol) })
    }
}

fn emit_text(text: String) -> Action {
    Action::Emit(Event::Text(Delta::new("message", text)))
}

impl Protocol for ServerProtocol {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Line(line) => {
                let address = String::from_utf8_lossy(line).into_owned();
                actions.push(Action::Server(ServerAction::Connect { address }));
                actions.push(Action::Server(ServerAction::Subscribe { path: "/event".to_owned() }));
                let body = Some(b"{}".to_vec());
                let call = ServerCall { id: CallId(1), method: Method::Post, path: "/call".to_owned(), body };
                actions.push(Action::Server(ServerAction::Call(call)));
            }
            Input::Server(ServerInput::Event(b"end")) => {
                actions.push(Action::Outcome(Box::default()));
                actions.push(Action::Process(ProcessAction::Stop));
            }
            Input::Server(ServerInput::Event(data)) => {
                actions.push(emit_text(String::from_utf8_lossy(data).into_owned()));
            }
            Input::Server(ServerInput::Reply { status, .. }) => actions.push(emit_text(format!("[{status}]"))),
            Input::Server(ServerInput::Unreachable { call, why }) => {
                let failure = Failure::new(ErrorCode::Connection, format!("{call:?}: {why}"));
                actions.push(Action::Outcome(Box::new({
                    let mut outcome = Outcome::default();
                    outcome.failure = Some(failure);
                    outcome
                })));
                actions.push(Action::Process(ProcessAction::Stop));
            }
            _ => {}
        }
    }
}

/// The connections of a run: its call and its event stream.
struct Connections {
    call: TcpStream,
    events: TcpStream,
    heads: String,
}

async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn connections(listener: &TcpListener) -> Connections {
    let (mut call, mut events, mut heads) = (None, None, String::new());
    while call.is_none() || events.is_none() {
        let (mut stream, _) = bounded("a connection", listener.accept()).await.unwrap();
        let head = head(&mut stream).await;
        if head.starts_with("POST") {
            call = Some(stream);
        } else {
            stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
            events = Some(stream);
        }
        heads.push_str(&head);
    }
    Connections { call: call.unwrap(), events: events.unwrap(), heads }
}

async fn send_event(stream: &mut TcpStream, data: &str) {
    stream.write_all(format!("data: {data}\n\n").as_bytes()).await.unwrap();
}

async fn reply(stream: &mut TcpStream, status: &str) {
    stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await.unwrap();
}

/// Starts an agent that prints the server's address and then plays this script.
async fn start(env: &TestEnv, then: Script) -> (Run, TcpListener) {
    start_with(env, then, |limits| limits.silence = LONG).await
}

async fn start_with(env: &TestEnv, then: Script, limit: impl FnOnce(&mut Limits)) -> (Run, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}\n", listener.local_addr().unwrap());
    let script = Script::new().write_pid(&env.pid_file(), "agent").text(address).then(then);
    let mut request = RunRequest::new(script.to_json());
    request.limits.startup = LONG;
    limit(&mut request.limits);
    (env.runtime.run("served", request).unwrap(), listener)
}

fn test_env() -> TestEnv {
    let mut registry = Registry::default();
    registry.register(ServerAgent);
    TestEnv::with_runtime(Runtime::builder().registry(registry).build())
}

#[tokio::test]
async fn replies_and_events_reach_the_protocol_and_the_outcome_ends_the_process() {
    let env = test_env();
    let (mut run, listener) = start(&env, Script::new().hang()).await;
    let mut connections = connections(&listener).await;
    reply(&mut connections.call, "204 No Content").await;
    let first_events = read_until(&mut run, is_text).await;
    for data in ["one", "two", "end"] {
        send_event(&mut connections.events, data).await;
    }
    let stream = rest_after(first_events, &mut run).await;
    let result = stream.result();
    assert!(!result.is_error && result.text.ends_with("onetwo"), "{result:?}");
    env.assert_all_dead();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_password_is_only_in_the_environment_of_the_process() {
    let env = test_env();
    let (mut run, listener) = start(&env, Script::new().hang()).await;
    let mut connections = connections(&listener).await;
    let pid = env.pid("agent").await;
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let variable = format!("{VARIABLE}=");
    let password = environment.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(variable.as_bytes()));
    let password = String::from_utf8(password.unwrap().to_vec()).unwrap();
    assert!(password.len() >= 32, "{} characters", password.len());
    assert!(connections.heads.to_lowercase().matches("authorization: basic ").count() == 2);
    let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!arguments.contains(&password));
    send_event(&mut connections.events, "end").await;
    rest_of(&mut run).await;
}

#[tokio::test]
async fn events_sent_before_the_exit_of_the_process_are_reported() {
    let env = test_env();
    let go = env.path("go");
    let (mut run, listener) = start(&env, Script::new().await_file(&go).exit(3)).await;
    let mut connections = connections(&listener).await;
    send_event(&mut connections.events, "one").await;
    let first_events = read_until(&mut run, is_text).await;
    send_event(&mut connections.events, "last").await;
    fs::write(&go, "").unwrap();
    // The stream is still open, because other processes could hold it. That delays the end by at
    // most the drain period.
    let stream = rest_after(first_events, &mut run).await;
    let result = stream.result();
    assert_eq!((result.text.as_str(), result.error_code.clone()), ("onelast", Some(ErrorCode::CliExit)));
}

#[tokio::test]
async fn a_connection_that_breaks_at_the_exit_reports_the_exit() {
    let env = test_env();
    let go = env.path("go");
    let (mut run, listener) = start(&env, Script::new().await_file(&go).exit(3)).await;
    let mut connections = connections(&listener).await;
    send_event(&mut connections.events, "one").await;
    let first_events = read_until(&mut run, is_text).await;
    fs::write(&go, "").unwrap();
    drop(connections);
    assert_eq!(rest_after(first_events, &mut run).await.result().error_code, Some(ErrorCode::CliExit));
}

#[tokio::test]
async fn a_connection_that_breaks_while_the_process_lives_is_an_error() {
    let env = test_env();
    let (mut run, listener) = start(&env, Script::new().hang()).await;
    let mut connections = connections(&listener).await;
    reply(&mut connections.call, "200 OK").await;
    let first_events = read_until(&mut run, is_text).await;
    drop(connections);
    let stream = rest_after(first_events, &mut run).await;
    assert_eq!(stream.result().error_code, Some(ErrorCode::Connection));
    env.assert_all_dead();
}

#[tokio::test]
async fn a_server_that_is_missing_or_on_another_machine_is_an_error() {
    let env = test_env();
    for address in ["http://127.0.0.1:1\n", "http://192.0.2.1:80\n"] {
        let script = Script::new().text(address).hang();
        let mut request = RunRequest::new(script.to_json());
        request.limits.startup = LONG;
        let mut run = env.runtime.run("served", request).unwrap();
        assert_eq!(rest_of(&mut run).await.result().error_code, Some(ErrorCode::Connection), "{address}");
    }
}

#[tokio::test]
async fn a_silent_server_counts_as_a_silent_agent() {
    let env = test_env();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let script = Script::new().text(format!("http://{}\n", listener.local_addr().unwrap())).hang();
    let mut request = RunRequest::new(script.to_json());
    request.limits.startup = Duration::from_millis(300);
    let mut run = env.runtime.run("served", request).unwrap();
    let _connections = connections(&listener).await;
    assert_eq!(rest_of(&mut run).await.result().error_code, Some(ErrorCode::WatchdogTimeout));
}

#[tokio::test]
async fn an_event_that_is_too_long_causes_a_warning_and_the_next_one_is_intact() {
    let env = test_env();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let script = Script::new().text(format!("http://{}\n", listener.local_addr().unwrap())).hang();
    let mut request = RunRequest::new(script.to_json());
    request.limits.max_line_bytes = 100;
    let mut run = env.runtime.run("served", request).unwrap();
    let mut connections = connections(&listener).await;
    reply(&mut connections.call, "200 OK").await;
    send_event(&mut connections.events, &"x".repeat(1000)).await;
    send_event(&mut connections.events, "short").await;
    send_event(&mut connections.events, "end").await;
    let stream = rest_of(&mut run).await;
    let warned = stream.events.iter().any(|event| json!(event)["code"] == "LINE_TOO_LONG");
    assert!(warned && stream.result().text.contains("short"), "{:?}", stream.events);
}

#[tokio::test]
async fn dropping_a_run_ends_its_connections_and_its_process() {
    let env = test_env();
    let (run, listener) = start(&env, Script::new().hang()).await;
    let mut connections = connections(&listener).await;
    drop(run);
    let end = tokio::time::timeout(BOUND, connections.events.read_u8()).await.expect("the connection stays open");
    assert!(end.is_err());
    env.all_die().await;
}

#[tokio::test]
async fn events_sent_while_the_host_was_suspended_are_read_before_silence_is_checked() {
    const ROUNDS: u32 = 6;
    let env = test_env();
    let (mut run, listener) = start_with(&env, Script::new().hang(), |limits| limits.silence = SHORT).await;
    let mut connections = connections(&listener).await;
    reply(&mut connections.call, "204 No Content").await;
    let mut events = read_until(&mut run, is_text).await;
    let mut stream = connections.events.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    for _ in 0..ROUNDS {
        // Nothing of this program runs for longer than the limit. Meanwhile the server sends an
        // event.
        std::thread::sleep(SHORT / 2);
        std::io::Write::write_all(&mut stream, b"data: word\n\n").unwrap();
        std::thread::sleep(SHORT);
        events.extend(read_until(&mut run, |event| !matches!(event, Event::Init(_))).await);
    }
    std::io::Write::write_all(&mut stream, b"data: end\n\n").unwrap();
    rest_after(events, &mut run).await.assert_success(&format!("[204]{}", "word".repeat(ROUNDS as usize)));
}
