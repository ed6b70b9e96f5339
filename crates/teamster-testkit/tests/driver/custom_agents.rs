//! Third-party agents: the driver's promises hold for any behavior of their protocols.

use std::fs::File;

use teamster::agent::launch::{Launch, ProtocolStream, Stdin};
use teamster::agent::protocol::{Action, Input, ProcessAction, Protocol};
use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event};
use teamster::request::{Conversation, RequestError};
use teamster::{Registry, RunError, RunRequest, Runtime};
use teamster_testkit::fake::{Child, SCRIPT_ENV, Script, Signal};

use crate::test_env::{
    CheckedStream, LONG, TestEnv, agent, bounded, fake_agent, is_alive, is_text, read_until, rest_after, rest_of,
    success_end,
};

/// An agent that emits every line it reads as text, until the line `end`.
#[derive(Clone, Copy)]
struct EchoAgent {
    stream: ProtocolStream,
}

/// The protocol of `EchoAgent`.
struct EchoProtocol {
    /// The input at which it panics: `start` or `interrupt`.
    panics_at: Option<String>,
}

impl EchoProtocol {
    fn assert_no_panic_at(&self, what: &str) {
        assert_ne!(self.panics_at.as_deref(), Some(what));
    }
}

impl Agent for EchoAgent {
    fn name(&self) -> &'static str {
        "echo"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        assert_ne!(request.prompt, "panic", "a prompt at which this agent panics");
        let mut launch = Launch::new(fake_agent());
        launch.protocol_stream = self.stream;
        launch.stdin = Stdin::Closed;
        launch.env(SCRIPT_ENV, request.prompt.as_str());
        Ok(Plan { launch, protocol: Box::new(EchoProtocol { panics_at: request.model.clone() }) })
    }
}

impl Protocol for EchoProtocol {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Line(b"end") => actions.push(Action::Outcome(Box::default())),
            Input::Line(b"stop") => actions.push(Action::Process(ProcessAction::Stop)),
            Input::Line(b"panic") => panic!("a line at which this protocol panics"),
            Input::Line(line) => actions
                .push(Action::Emit(Event::Text(Delta::new("message", String::from_utf8_lossy(line).into_owned())))),
            Input::Interrupt => {
                self.assert_no_panic_at("interrupt");
                actions.push(Action::Process(ProcessAction::Interrupt));
            }
            Input::Started => self.assert_no_panic_at("start"),
            Input::Exited(exit) if exit.code == Some(9) => panic!("an exit at which this protocol panics"),
            _ => {}
        }
    }
}

fn test_env(stream: ProtocolStream) -> TestEnv {
    let mut registry = Registry::default();
    registry.register(EchoAgent { stream });
    TestEnv::with_runtime(Runtime::builder().registry(registry).build())
}

async fn run_echo(env: &TestEnv, script: &Script) -> CheckedStream {
    rest_of(&mut env.runtime.run("echo", request(script)).unwrap()).await
}

fn request(script: &Script) -> RunRequest {
    let mut request = RunRequest::new(script.to_json());
    request.limits.grace = LONG;
    request
}

#[tokio::test]
async fn with_the_protocol_on_stdout_stderr_is_diagnostics() {
    let env = test_env(ProtocolStream::Stdout);
    let stream = run_echo(&env, &Script::new().text("hello\nend\n").stderr("aside\n")).await;
    stream.assert_success("hello");
    assert_eq!(stream.result().stderr.as_deref(), Some("aside\n"));
}

#[tokio::test]
async fn with_the_protocol_on_stderr_stdout_is_diagnostics() {
    let env = test_env(ProtocolStream::Stderr);
    let stream = run_echo(&env, &Script::new().text("aside\n").stderr("hello\nend\n")).await;
    stream.assert_success("hello");
    assert_eq!(stream.result().stderr.as_deref(), Some("aside\n"));
}

#[tokio::test]
async fn a_protocol_on_stderr_is_read_to_the_end_while_stdout_is_flooded() {
    let env = test_env(ProtocolStream::Stderr);
    let flood = Script::new().ready().burst(u64::MAX, serde_json::json!("flood"));
    let script = Script::new().spawn(Child::new(flood)).stderr("hello\n").stderr("end\n");
    run_echo(&env, &script).await.assert_success("hello");
}

#[tokio::test]
async fn a_protocol_that_panics_ends_its_run_and_no_other() {
    let env = test_env(ProtocolStream::Stdout);
    let end = env.path("end");
    let mut other = env.start(env.request(&agent(&env).await_file(&end).then(success_end("Hello"))));
    let child = Script::new().write_pid(&env.pid_file(), "child").ready().hang();
    let script = Script::new()
        .write_pid(&env.pid_file(), "echo")
        .spawn(Child::new(child).session())
        .text("hello\npanic\nmore\n")
        .hang();
    let stream = run_echo(&env, &script).await;
    assert!(stream.assert_failed(&ErrorCode::Protocol).contains("bug"));
    assert_eq!(stream.result().text, "hello");
    let pids = env.pids();
    assert!(!is_alive(pids["echo"]) && !is_alive(pids["child"]));
    File::create(&end).unwrap();
    rest_of(&mut other).await.assert_success("Hello");
    bounded("shutdown", env.runtime.wait_idle()).await;
}

#[tokio::test]
async fn an_agent_that_panics_while_planning_is_an_error_and_the_runtime_continues() {
    let env = test_env(ProtocolStream::Stdout);
    let error = env.runtime.run("echo", RunRequest::new("panic")).unwrap_err();
    assert!(matches!(&error, RunError::AgentPanicked { agent } if agent == "echo"), "{error}");
    run_echo(&env, &Script::new().text("hello\nend\n")).await.assert_success("hello");
}

#[tokio::test]
async fn a_protocol_that_panics_at_the_start_ends_its_run() {
    let env = test_env(ProtocolStream::Stdout);
    let mut request = request(&Script::new().write_pid(&env.pid_file(), "echo").hang());
    request.model = Some("start".to_owned());
    let stream = rest_of(&mut env.runtime.run("echo", request).unwrap()).await;
    assert!(stream.assert_failed(&ErrorCode::Protocol).contains("bug"));
    env.assert_all_dead();
}

#[tokio::test]
async fn a_protocol_that_panics_when_it_is_interrupted_ends_its_run() {
    let env = test_env(ProtocolStream::Stdout);
    let mut request = request(&Script::new().write_pid(&env.pid_file(), "echo").text("hello\n").hang());
    request.model = Some("interrupt".to_owned());
    let mut run = env.runtime.run("echo", request).unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    // The caller was the first to end it, so the grace period does not apply.
    stream.assert_aborted();
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
    env.assert_all_dead();
}

#[tokio::test]
async fn a_protocol_that_panics_at_the_exit_still_has_one_done() {
    let env = test_env(ProtocolStream::Stdout);
    let stream = run_echo(&env, &Script::new().text("hello\n").exit(9)).await;
    stream.assert_failed(&ErrorCode::Protocol);
    assert_eq!(stream.result().exit_code, Some(9));
}

#[tokio::test]
async fn a_protocol_can_stop_its_process() {
    let env = test_env(ProtocolStream::Stdout);
    let stream = run_echo(&env, &Script::new().text("hello\nend\nstop\n").hang()).await;
    stream.assert_success("hello");
    assert_eq!(stream.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn a_protocol_without_an_interrupt_request_interrupts_with_sigint() {
    let env = test_env(ProtocolStream::Stdout);
    let script =
        Script::new().on_signal(Signal::Int, Script::new().text("stopping\n").exit(130)).text("hello\n").hang();
    let mut run = env.runtime.run("echo", request(&script)).unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert_eq!(stream.result().text, "hellostopping");
    assert_eq!(stream.result().exit_code, Some(130));
}

/// An agent that keeps no process between turns. It resumes a conversation only if it was created so.
struct OneTurnAgent {
    resumes: bool,
}

impl Agent for OneTurnAgent {
    fn name(&self) -> &'static str {
        "one-turn"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        if request.conversation == Conversation::New || self.resumes {
            return EchoAgent { stream: ProtocolStream::Stdout }.plan(request);
        }
        let (agent, option, why) = (self.name().to_owned(), "conversation=resume", "it keeps no history".to_owned());
        Err(RequestError::Unsupported { agent, option, why })
    }
}

#[tokio::test]
async fn an_agent_that_cannot_take_a_second_turn_fails_when_a_session_is_opened() {
    for resumes in [false, true] {
        let mut registry = Registry::default();
        registry.register(OneTurnAgent { resumes });
        let env = TestEnv::with_runtime(Runtime::builder().registry(registry).build());
        let opened = env.runtime.open("one-turn", RunRequest::default());
        match opened {
            Ok(session) => {
                assert!(resumes);
                session.close().await;
            }
            Err(error) => {
                assert!(!resumes && matches!(error, RunError::SendNotSupported { .. }), "{error:?}");
                assert!(error.to_string().contains("cannot take a second turn"), "{error}");
            }
        }
        let script = Script::new().text("Hello\nend\n");
        rest_of(&mut env.runtime.run("one-turn", request(&script)).unwrap()).await.assert_success("Hello");
    }
}
