//! Agents of others: whatever their protocols do, the promises hold.

use std::fs::File;

use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event};
use teamster::launch::{Launch, ProtocolStream, Stdin};
use teamster::protocol::{Action, Input, Protocol};
use teamster::request::RequestError;
use teamster::{Registry, RunError, RunRequest, Runtime};
use teamster_testkit::fake::{Child, SCRIPT_ENV, Script, Signal};

use crate::lab::{
    LONG, Lab, Told, agent, bounded, fake_agent, good_end, is_alive, is_text, read_until, rest_after, rest_of,
};

/// An agent that says every line that it is told as text, up to one that says `end`.
#[derive(Clone, Copy)]
struct Parrot {
    stream: ProtocolStream,
}

/// What a parrot makes of a line.
struct Beak {
    /// What this one cannot stand: `start` or `interrupt`.
    panics_at: Option<String>,
}

impl Beak {
    fn can_stand(&self, what: &str) {
        assert_ne!(self.panics_at.as_deref(), Some(what));
    }
}

impl Agent for Parrot {
    fn name(&self) -> &'static str {
        "parrot"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        assert_ne!(request.prompt, "panic", "a prompt that this agent cannot stand");
        let mut launch = Launch::new(fake_agent());
        launch.protocol_stream = self.stream;
        launch.stdin = Stdin::Closed;
        launch.env(SCRIPT_ENV, request.prompt.as_str());
        Ok(Plan { launch, protocol: Box::new(Beak { panics_at: request.model.clone() }) })
    }
}

impl Protocol for Beak {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        match input {
            Input::Line(b"end") => actions.push(Action::Outcome(Box::default())),
            Input::Line(b"stop") => actions.push(Action::Stop),
            Input::Line(b"panic") => panic!("a line that this protocol cannot stand"),
            Input::Line(line) => actions.push(Action::Emit(Event::Text(Delta {
                text: String::from_utf8_lossy(line).into_owned().into(),
                message_id: "message".into(),
                parent_tool_id: None,
            }))),
            Input::Interrupt => {
                self.can_stand("interrupt");
                actions.push(Action::Interrupt);
            }
            Input::Started => self.can_stand("start"),
            Input::Exited(exit) if exit.code == Some(9) => panic!("an exit that this protocol cannot stand"),
            _ => {}
        }
    }
}

fn lab(stream: ProtocolStream) -> Lab {
    let mut registry = Registry::default();
    registry.register(Parrot { stream });
    Lab::with_runtime(Runtime::with_registry(registry))
}

async fn parrot(lab: &Lab, script: &Script) -> Told {
    rest_of(&mut lab.runtime.run("parrot", request(script)).unwrap()).await
}

fn request(script: &Script) -> RunRequest {
    let mut request = RunRequest::new(script.to_json());
    request.limits.grace = LONG;
    request
}

#[tokio::test]
async fn a_protocol_on_stdout_leaves_stderr_to_diagnostics() {
    let lab = lab(ProtocolStream::Stdout);
    let told = parrot(&lab, &Script::new().text("hello\nend\n").stderr("aside\n")).await;
    told.is_good("hello");
    assert_eq!(told.result().stderr.as_deref(), Some("aside\n"));
}

#[tokio::test]
async fn a_protocol_on_stderr_leaves_stdout_to_diagnostics() {
    let lab = lab(ProtocolStream::Stderr);
    let told = parrot(&lab, &Script::new().text("aside\n").stderr("hello\nend\n")).await;
    told.is_good("hello");
    assert_eq!(told.result().stderr.as_deref(), Some("aside\n"));
}

#[tokio::test]
async fn a_protocol_on_stderr_is_read_to_the_end_while_stdout_is_flooded() {
    let lab = lab(ProtocolStream::Stderr);
    let flood = Script::new().ready().burst(u64::MAX, serde_json::json!("flood"));
    let script = Script::new().spawn(Child::new(flood)).stderr("hello\n").stderr("end\n");
    parrot(&lab, &script).await.is_good("hello");
}

#[tokio::test]
async fn a_protocol_that_panics_ends_its_run_and_no_other() {
    let lab = lab(ProtocolStream::Stdout);
    let end = lab.path("end");
    let mut other = lab.start(lab.request(&agent(&lab).await_file(&end).then(good_end("Hello"))));
    let child = Script::new().write_pid(&lab.pid_file(), "child").ready().hang();
    let script = Script::new()
        .write_pid(&lab.pid_file(), "parrot")
        .spawn(Child::new(child).session())
        .text("hello\npanic\nmore\n")
        .hang();
    let told = parrot(&lab, &script).await;
    assert!(told.failed(&ErrorCode::Protocol).contains("bug"));
    assert_eq!(told.result().text, "hello");
    let pids = lab.pids();
    assert!(!is_alive(pids["parrot"]) && !is_alive(pids["child"]));
    File::create(&end).unwrap();
    rest_of(&mut other).await.is_good("Hello");
    bounded("shutdown", lab.runtime.shutdown()).await;
}

#[tokio::test]
async fn an_agent_that_panics_when_it_plans_is_an_error_and_its_runtime_goes_on() {
    let lab = lab(ProtocolStream::Stdout);
    let error = lab.runtime.run("parrot", RunRequest::new("panic")).unwrap_err();
    assert!(matches!(&error, RunError::AgentPanicked { agent } if agent == "parrot"), "{error}");
    parrot(&lab, &Script::new().text("hello\nend\n")).await.is_good("hello");
}

#[tokio::test]
async fn a_protocol_that_panics_at_the_start_ends_its_run() {
    let lab = lab(ProtocolStream::Stdout);
    let mut request = request(&Script::new().write_pid(&lab.pid_file(), "parrot").hang());
    request.model = Some("start".to_owned());
    let told = rest_of(&mut lab.runtime.run("parrot", request).unwrap()).await;
    assert!(told.failed(&ErrorCode::Protocol).contains("bug"));
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_protocol_that_panics_when_it_is_interrupted_ends_its_run() {
    let lab = lab(ProtocolStream::Stdout);
    let mut request = request(&Script::new().write_pid(&lab.pid_file(), "parrot").text("hello\n").hang());
    request.model = Some("interrupt".to_owned());
    let mut run = lab.runtime.run("parrot", request).unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    // The caller was first to end it; nobody waits for the grace period.
    told.is_aborted();
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
    lab.assert_all_dead();
}

#[tokio::test]
async fn a_protocol_that_panics_at_the_exit_still_gives_one_end() {
    let lab = lab(ProtocolStream::Stdout);
    let told = parrot(&lab, &Script::new().text("hello\n").exit(9)).await;
    told.failed(&ErrorCode::Protocol);
    assert_eq!(told.result().exit_code, Some(9));
}

#[tokio::test]
async fn a_protocol_that_wants_the_process_stopped_is_obeyed() {
    let lab = lab(ProtocolStream::Stdout);
    let told = parrot(&lab, &Script::new().text("hello\nend\nstop\n").hang()).await;
    told.is_good("hello");
    assert_eq!(told.result().signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn a_protocol_without_a_polite_way_interrupts_by_sigint() {
    let lab = lab(ProtocolStream::Stdout);
    let script =
        Script::new().on_signal(Signal::Int, Script::new().text("stopping\n").exit(130)).text("hello\n").hang();
    let mut run = lab.runtime.run("parrot", request(&script)).unwrap();
    let events = read_until(&mut run, is_text).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert_eq!(told.result().text, "hellostopping");
    assert_eq!(told.result().exit_code, Some(130));
}
