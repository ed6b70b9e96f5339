//! Turns that an agent starts by itself, between the caller's turns.

use std::fs::File;
use std::num::NonZeroU64;

use teamster::agent::launch::{Launch, Stdin};
use teamster::agent::protocol::{Action, Command, Input, ProcessAction, Protocol, SessionAction};
use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event, Usage, UsageScope, UsageSoFar, WarningCode};
use teamster::request::{PermissionMode, RequestError};
use teamster::{Registry, Run, RunRequest, Runtime, Session, SessionOptions};
use teamster_testkit::fake::{SCRIPT_ENV, Script};

use crate::test_env::{
    CheckedStream, LONG, TestEnv, bounded, fake_agent, is_text, read_until, rest_after, rest_of, wait_until,
};

/// The name of the agent that starts turns by itself.
pub(crate) const NAME: &str = "self-starting";

/// An agent that starts turns by itself. The words `agent-turn`, `not-accepted` and `end` in its output are
/// actions; all other words are text.
#[derive(Clone, Copy)]
struct SelfStartingAgent;

impl Agent for SelfStartingAgent {
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

impl Protocol for SelfStartingAgent {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        let write = |text: &str| Action::Process(ProcessAction::Write(format!("{text}\n").into_bytes()));
        match input {
            // All actions of a line happen at once.
            Input::Line(line) => actions.extend(line.split(|byte| *byte == b' ').map(|word| match word {
                b"agent-turn" => Action::Session(SessionAction::AgentTurnStarted),
                b"not-accepted" => Action::Session(SessionAction::PromptNotAccepted),
                b"end" => Action::Outcome(Box::default()),
                b"used" => Action::Emit(Event::Usage(Box::new(UsageSoFar::new(used(), UsageScope::Run)))),
                word => Action::Emit(Event::Text(Delta::new("message", String::from_utf8_lossy(word).into_owned()))),
            })),
            Input::Command(Command::Send { prompt, .. }) => actions.push(write(&prompt.text)),
            Input::Command(Command::SetModel(model)) => actions.push(write(model)),
            Input::Command(Command::SetPermissionMode(_)) => {
                actions.extend([write("mode"), Action::Session(SessionAction::RestartProcess)]);
            }
            Input::Command(Command::Close) => actions.push(Action::Process(ProcessAction::CloseStdin)),
            Input::Interrupt => actions.push(write("interrupt")),
            _ => {}
        }
    }
}

pub(crate) fn test_env() -> TestEnv {
    let mut registry = Registry::default();
    registry.register(SelfStartingAgent);
    TestEnv::with_runtime(Runtime::builder().registry(registry).build())
}

pub(crate) fn session_request(env: &TestEnv, script: &Script) -> RunRequest {
    let mut request = RunRequest::default();
    let path = env.path("script");
    std::fs::write(&path, script.to_json()).unwrap();
    request.env.insert(SCRIPT_ENV.into(), path.to_str().unwrap().into());
    request.limits.startup = LONG;
    request.limits.silence = LONG;
    request.limits.grace = LONG;
    request
}

fn open(env: &TestEnv, script: &Script) -> Session {
    env.runtime.open(NAME, SessionOptions::new(session_request(env, script)).with_background_tasks()).unwrap()
}

async fn next_agent_turn(session: &Session) -> Run {
    bounded("a turn of the agent", session.next_agent_turn()).await.unwrap()
}

async fn send(session: &Session, text: &str) -> CheckedStream {
    rest_of(&mut session.send(text).unwrap()).await
}

async fn close(session: Session) {
    bounded("the session's end", session.close()).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_starts_is_a_separate_turn() {
    let env = test_env();
    let script = Script::new().await_line("one").text("1\nend\nagent-turn\nmine\nend\n");
    let session = open(&env, &script.await_line("two").text("2\nend\n").read_to_end());
    send(&session, "one").await.assert_success("1");
    rest_of(&mut next_agent_turn(&session).await).await.assert_success("mine");
    send(&session, "two").await.assert_success("2");
    close(session).await;
}

#[tokio::test]
async fn a_change_between_turns_applies_to_a_turn_that_the_agent_starts() {
    let env = test_env();
    let script = Script::new().await_line("one").text("1\nend\n").await_line("other").text("agent-turn\nmine\nend\n");
    let session = open(&env, &script.read_to_end());
    send(&session, "one").await.assert_success("1");
    session.set_model("other").unwrap();
    rest_of(&mut next_agent_turn(&session).await).await.assert_success("mine");
    close(session).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_starts_after_a_mode_change_does_not_run_in_the_old_mode() {
    let env = test_env();
    let script = Script::new().await_line("one").text("1\nend\n").await_line("mode").text("agent-turn\nmine\nend\n");
    let session = open(&env, &script.read_to_end());
    send(&session, "one").await.assert_success("1");
    session.set_permission_mode(PermissionMode::ReadOnly).unwrap();
    // A new process handles this prompt. The turn that the old process started is discarded.
    send(&session, "one").await.assert_success("1");
    close(session).await;
}

#[tokio::test]
async fn turns_within_a_single_write_are_separated() {
    let env = test_env();
    let session =
        open(&env, &Script::new().await_line("one").text("1 end agent-turn a end agent-turn b\nc end\n").read_to_end());
    send(&session, "one").await.assert_success("1");
    rest_of(&mut next_agent_turn(&session).await).await.assert_success("a");
    rest_of(&mut next_agent_turn(&session).await).await.assert_success("bc");
    close(session).await;
}

#[tokio::test]
async fn a_prompt_that_was_not_accepted_is_sent_again_after_the_agents_turn() {
    let env = test_env();
    let go = env.path("go");
    let script = Script::new().await_line("one").text("not-accepted agent-turn mine\n").await_file(&go).text("end\n");
    let session = open(&env, &script.await_line("one").text("1\nend\n").read_to_end());
    let mut sent = session.send("one").unwrap();
    let mut agent_turn = next_agent_turn(&session).await;
    let events = read_until(&mut agent_turn, is_text).await;
    File::create(&go).unwrap();
    rest_after(events, &mut agent_turn).await.assert_success("mine");
    rest_of(&mut sent).await.assert_success("1");
    close(session).await;
}

#[tokio::test]
async fn a_turn_that_is_interrupted_while_it_waits_for_the_agents_turn_is_not_sent_again() {
    let env = test_env();
    let go = env.path("go");
    let script = Script::new().await_line("one").text("not-accepted agent-turn mine\n").await_file(&go).text("end\n");
    let session = open(&env, &script.await_line("").text("2\nend\n").read_to_end());
    let mut sent = session.send("one").unwrap();
    let mut agent_turn = next_agent_turn(&session).await;
    let events = read_until(&mut agent_turn, is_text).await;
    sent.control().interrupt();
    File::create(&go).unwrap();
    rest_after(events, &mut agent_turn).await.assert_success("mine");
    rest_of(&mut sent).await.assert_aborted();
    send(&session, "two").await.assert_success("2");
    close(session).await;
}

#[tokio::test]
async fn turns_of_the_agent_that_are_not_consumed_are_stopped_with_a_notice() {
    const KEPT: usize = 16;
    let env = test_env();
    let kept = (0..KEPT)
        .fold(Script::new().await_line("one").text("1\nend\n"), |script, _| script.text("agent-turn mine end\n"));
    let script = kept
        .text("agent-turn much\n")
        .await_line("interrupt")
        .text("end\n")
        .write_pid(&env.pid_file(), "stopped")
        .await_line("two")
        .text("2\nend\n");
    let session = open(&env, &script.read_to_end());
    send(&session, "one").await.assert_success("1");
    env.pid("stopped").await;
    let stream = send(&session, "two").await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::Notice).len(), 1);
    for _ in 0..KEPT {
        rest_of(&mut next_agent_turn(&session).await).await.assert_success("mine");
    }
    close(session).await;
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_of_the_agent_is_replaced_for_the_next_prompt() {
    let env = test_env();
    let go = env.path("go");
    let scripts = [
        Script::new().await_line("one").text("1\nend\nagent-turn\nmi\n").await_file(&go).exit(3),
        Script::new().await_line("two").text("2\nend\n").read_to_end(),
    ];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    send(&session, "one").await.assert_success("1");
    let mut agent_turn = next_agent_turn(&session).await;
    let events = read_until(&mut agent_turn, is_text).await;
    File::create(&go).unwrap();
    let agent_turn = rest_after(events, &mut agent_turn).await;
    agent_turn.assert_failed(&ErrorCode::CliExit);
    assert_eq!(agent_turn.result().text, "mi");
    let stream = send(&session, "two").await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(session).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_starts_during_close_does_not_delay_it() {
    let env = test_env();
    let session = open(&env, &Script::new().await_line("one").text("1\nend\n").read_to_end().text("agent-turn mine\n"));
    let mut sent = session.send("one").unwrap();
    close(session).await;
    rest_of(&mut sent).await.assert_success("1");
}

#[tokio::test]
async fn without_the_option_there_are_no_turns_of_the_agent() {
    let env = test_env();
    let session = env.runtime.open(NAME, session_request(&env, &Script::new().read_to_end())).unwrap();
    assert!(bounded("word that there are none", session.next_agent_turn()).await.is_none());
    close(session).await;
}

#[tokio::test]
async fn dropping_a_turn_of_the_agent_ends_its_process_and_the_session_continues() {
    let env = test_env();
    let scripts = [
        Script::new().await_line("one").text("1\nend\nagent-turn\nmi\n").write_pid(&env.pid_file(), "agent").hang(),
        Script::new().await_line("two").text("2\nend\n").read_to_end(),
    ];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    send(&session, "one").await.assert_success("1");
    let pid = env.pid("agent").await;
    drop(next_agent_turn(&session).await);
    wait_until("its end", || !crate::test_env::is_alive(pid)).await;
    send(&session, "two").await.assert_success("2");
    close(session).await;
}

#[tokio::test]
async fn a_turn_of_the_agent_holds_a_permit_while_it_runs() {
    let mut registry = Registry::default();
    registry.register(SelfStartingAgent);
    let runtime = Runtime::builder().registry(registry).max_concurrent_turns(std::num::NonZeroUsize::MIN).build();
    let env = TestEnv::with_runtime(runtime);
    let go = env.path("go");
    let script = Script::new().await_line("one").text("1\nend\nagent-turn\nmi\n").await_file(&go).text("ne\nend\n");
    let session = open(&env, &script.read_to_end());
    send(&session, "one").await.assert_success("1");
    let mut agent_turn = next_agent_turn(&session).await;
    let first_events = read_until(&mut agent_turn, is_text).await;
    assert_eq!(agent_turn.turn_id(), Some("own-1"));
    let mut other = env.start(env.request(&Script::new().claude_init().claude_result("other").read_to_end()));
    let queued = read_until(&mut other, |event| matches!(event, Event::Queued(_))).await;
    assert_eq!(env.runtime.stats().total.running_turns, 1);
    File::create(&go).unwrap();
    rest_after(first_events, &mut agent_turn).await.assert_success("mine");
    rest_after(queued, &mut other).await.assert_success("other");
    close(session).await;
}

/// The usage that the word `used` reports.
fn used() -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = 100;
    usage
}

#[tokio::test]
async fn a_turn_that_the_agent_starts_after_the_session_budget_is_used_up_is_stopped() {
    let env = test_env();
    let script = Script::new().await_line("one").text("used\n").await_line("interrupt").text("end\nagent-turn\nmine\n");
    let mut request = session_request(&env, &script.await_line("interrupt").exit(3));
    request.max_session_tokens = NonZeroU64::new(100);
    let session = env.runtime.open(NAME, SessionOptions::new(request).with_background_tasks()).unwrap();
    send(&session, "one").await;
    rest_of(&mut next_agent_turn(&session).await).await.assert_failed(&ErrorCode::Budget);
    close(session).await;
}
