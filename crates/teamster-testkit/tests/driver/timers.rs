//! The timer of a protocol, which reads no clock.

use std::time::Duration;

use teamster::agent::launch::{Launch, Stdin};
use teamster::agent::protocol::{Action, Command, Input, ProcessAction, Protocol, SessionAction};
use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, Event};
use teamster::request::RequestError;
use teamster::{Registry, Run, RunRequest, Runtime, Session, SessionOptions};
use teamster_testkit::fake::Script;

use crate::agent_turns::session_request;
use crate::test_env::{
    CheckedStream, LONG, SHORT, TestEnv, bounded, fake_agent, is_text, read_until, rest_after, rest_of,
};

const NAME: &str = "timed";

const SOON: Duration = Duration::from_millis(20);

/// An agent for tests of timers. Each word of its output is either an action or text. When its timer elapses, its process gets
/// the line `elapsed`.
#[derive(Clone, Copy)]
struct TimedAgent;

impl Agent for TimedAgent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut launch = Launch::new(fake_agent());
        launch.stdin = Stdin::Open;
        for (name, value) in &request.env {
            launch.env(name.as_str(), value.as_str());
        }
        Ok(Plan { launch, protocol: Box::new(Self) })
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        self.plan(request).map(Some)
    }
}

impl Protocol for TimedAgent {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        let write = |text: &str| Action::Process(ProcessAction::Write(format!("{text}\n").into_bytes()));
        let text = |text: &str| Action::Emit(Event::Text(Delta::new("message", text)));
        match input {
            // All actions of a line happen at once.
            Input::Line(line) => {
                let words = std::str::from_utf8(line).unwrap().split(' ');
                actions.extend(words.map(|word| match word {
                    "set-soon" => Action::SetTimer(SOON),
                    "set-short" => Action::SetTimer(SHORT),
                    "set-long" => Action::SetTimer(LONG),
                    "clear" => Action::ClearTimer,
                    "agent-turn" => Action::Session(SessionAction::AgentTurnStarted),
                    "end" => Action::Outcome(Box::default()),
                    word => text(word),
                }));
            }
            Input::TimerElapsed => actions.extend([text("!"), write("elapsed")]),
            Input::Command(Command::Send { prompt, .. }) => actions.push(write(&prompt.text)),
            Input::Command(Command::Close) => actions.push(Action::Process(ProcessAction::CloseStdin)),
            Input::Interrupt => actions.push(Action::Process(ProcessAction::Interrupt)),
            _ => {}
        }
    }
}

fn test_env() -> TestEnv {
    let mut registry = Registry::default();
    registry.register(TimedAgent);
    TestEnv::with_runtime(Runtime::builder().registry(registry).build())
}

fn start(env: &TestEnv, script: &Script) -> Run {
    let mut request = session_request(env, script);
    "go".clone_into(&mut request.prompt);
    env.runtime.run(NAME, request).unwrap()
}

fn open(env: &TestEnv, script: &Script) -> Session {
    env.runtime.open(NAME, SessionOptions::new(session_request(env, script)).with_background_tasks()).unwrap()
}

async fn send(session: &Session, text: &str) -> CheckedStream {
    rest_of(&mut session.send(text).unwrap()).await
}

#[tokio::test]
async fn a_timer_elapses_in_a_run() {
    let env = test_env();
    let script = Script::new().text("a set-soon\n").await_line("elapsed").text("b end\n");
    rest_of(&mut start(&env, &script)).await.assert_success("a!b");
}

#[tokio::test]
async fn setting_a_timer_again_replaces_its_time_and_it_elapses_once() {
    let env = test_env();
    let script = Script::new()
        .text("set-long\nset-soon\n")
        .await_line("elapsed")
        .text("a set-soon clear\n")
        .sleep(SOON * 3)
        .text("b end\n");
    rest_of(&mut start(&env, &script)).await.assert_success("!ab");
}

#[tokio::test]
async fn a_timer_runs_in_a_turn_and_between_turns() {
    let env = test_env();
    let script = Script::new()
        .await_line("one")
        .text("a set-soon\n")
        .await_line("elapsed")
        .text("b end set-soon\n")
        .await_line("elapsed")
        .text("agent-turn mine end\n")
        .await_line("two")
        .text("2 end\n")
        .read_to_end();
    let session = open(&env, &script);
    send(&session, "one").await.assert_success("a!b");
    let mut agent_turn = bounded("a turn of the agent", session.next_agent_turn()).await.unwrap();
    rest_of(&mut agent_turn).await.assert_success("!mine");
    send(&session, "two").await.assert_success("2");
    bounded("the session's end", session.close()).await;
}

#[tokio::test]
async fn a_timer_that_is_set_in_one_turn_elapses_in_the_next() {
    let env = test_env();
    let script = Script::new()
        .await_line("one")
        .text("1 end set-short\n")
        .await_line("two")
        .text("2\n")
        .await_line("elapsed")
        .text("end\n");
    let session = open(&env, &script.read_to_end());
    send(&session, "one").await.assert_success("1");
    send(&session, "two").await.assert_success("2!");
    bounded("the session's end", session.close()).await;
}

#[tokio::test]
async fn a_timer_does_not_elapse_after_the_exit() {
    let env = test_env();
    let script = Script::new().text("a end set-soon\n");
    rest_of(&mut start(&env, &script)).await.assert_success("a");
    let session = open(&env, &Script::new().await_line("one").text("1 end set-soon\n"));
    send(&session, "one").await.assert_success("1");
    bounded("the session's end", session.close()).await;
}

/// While the consumer does not read, the agent's output is not read either, and its silence is not known.
#[tokio::test(flavor = "multi_thread")]
async fn a_timer_does_not_elapse_before_output_that_is_not_read_yet() {
    let env = test_env();
    let lines = Script::new().text("set-short a\n".repeat(20_000));
    let script = lines.text("set-short last\n").await_line("elapsed").text("end\n");
    let mut request = session_request(&env, &script);
    "go".clone_into(&mut request.prompt);
    (request.limits.backlog_bytes, request.limits.backlog_disk_bytes) = (10_000, 0);
    let mut run = env.runtime.run(NAME, request).unwrap();
    let events = read_until(&mut run, is_text).await;
    tokio::time::sleep(SHORT * 4).await;
    let stream = rest_after(events, &mut run).await;
    stream.assert_success(&format!("{}last!", "a".repeat(20_000)));
}
