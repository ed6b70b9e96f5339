//! Turns that an agent begins by itself, between those that are sent to it.

use std::fs::File;
use std::num::NonZeroU64;

use teamster::agent::{Agent, Plan};
use teamster::event::{Delta, ErrorCode, Event, Usage, UsageScope, UsageSoFar, WarningCode};
use teamster::launch::{Launch, Stdin};
use teamster::protocol::{Action, Command, Input, Protocol};
use teamster::request::{PermissionMode, RequestError};
use teamster::{Opening, Registry, Run, RunRequest, Runtime, Session};
use teamster_testkit::fake::{SCRIPT_ENV, Script};

use crate::lab::{LONG, Lab, Told, bounded, eventually, fake_agent, is_text, read_until, rest_after, rest_of};

/// An agent that begins turns when it likes. Its script writes `unasked`, `untaken` and `end`; all else is what it says.
#[derive(Clone, Copy)]
struct Muse;

impl Agent for Muse {
    fn name(&self) -> &'static str {
        "muse"
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

impl Protocol for Muse {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        let write = |text: &str| Action::Write(format!("{text}\n").into_bytes());
        match input {
            // All that stands in a line happens at once.
            Input::Line(line) => actions.extend(line.split(|byte| *byte == b' ').map(|word| match word {
                b"unasked" => Action::Unasked,
                b"untaken" => Action::Untaken,
                b"end" => Action::Outcome(Box::default()),
                b"used" => Action::Emit(Event::Usage(UsageSoFar { usage: used(), scope: UsageScope::Run })),
                word => Action::Emit(Event::Text(Delta {
                    text: String::from_utf8_lossy(word).into_owned().into(),
                    message_id: "message".into(),
                    parent_tool_id: None,
                })),
            })),
            Input::Command(Command::Send { prompt, .. }) => actions.push(write(&prompt.text)),
            Input::Command(Command::SetModel(model)) => actions.push(write(model)),
            Input::Command(Command::SetPermissionMode(_)) => actions.extend([write("mode"), Action::Reopen]),
            Input::Command(Command::Close) => actions.push(Action::CloseStdin),
            Input::Interrupt => actions.push(write("interrupt")),
            _ => {}
        }
    }
}

fn lab() -> Lab {
    let mut registry = Registry::default();
    registry.register(Muse);
    Lab::with_runtime(Runtime::with_registry(registry))
}

fn frame(lab: &Lab, script: &Script) -> RunRequest {
    let mut frame = RunRequest::default();
    let path = lab.path("script");
    std::fs::write(&path, script.to_json()).unwrap();
    frame.env.insert(SCRIPT_ENV.into(), path.to_str().unwrap().into());
    frame.limits.startup = LONG;
    frame.limits.silence = LONG;
    frame.limits.grace = LONG;
    frame
}

fn open(lab: &Lab, script: &Script) -> Session {
    lab.runtime.open("muse", Opening::new(frame(lab, script)).with_background_tasks()).unwrap()
}

async fn own(session: &Session) -> Run {
    bounded("a turn of the agent's own", session.own_turn()).await.unwrap()
}

async fn say(session: &Session, text: &str) -> Told {
    rest_of(&mut session.send(text).unwrap()).await
}

async fn close(session: Session) {
    bounded("the session's end", session.close()).await;
}

#[tokio::test]
async fn what_the_agent_begins_by_itself_is_a_turn_of_its_own() {
    let lab = lab();
    let script = Script::new().await_line("one").text("1\nend\nunasked\nmine\nend\n");
    let session = open(&lab, &script.await_line("two").text("2\nend\n").read_to_end());
    say(&session, "one").await.is_good("1");
    rest_of(&mut own(&session).await).await.is_good("mine");
    say(&session, "two").await.is_good("2");
    close(session).await;
}

#[tokio::test]
async fn a_change_between_turns_holds_for_a_turn_that_the_agent_begins() {
    let lab = lab();
    let script = Script::new().await_line("one").text("1\nend\n").await_line("other").text("unasked\nmine\nend\n");
    let session = open(&lab, &script.read_to_end());
    say(&session, "one").await.is_good("1");
    session.set_model("other").unwrap();
    rest_of(&mut own(&session).await).await.is_good("mine");
    close(session).await;
}

#[tokio::test]
async fn a_turn_that_the_agent_begins_after_a_change_of_the_mode_does_not_run_in_the_old_one() {
    let lab = lab();
    let script = Script::new().await_line("one").text("1\nend\n").await_line("mode").text("unasked\nmine\nend\n");
    let session = open(&lab, &script.read_to_end());
    say(&session, "one").await.is_good("1");
    session.set_permission_mode(PermissionMode::ReadOnly).unwrap();
    // Another process takes this; what the old one began is in no turn.
    say(&session, "one").await.is_good("1");
    close(session).await;
}

#[tokio::test]
async fn what_comes_in_one_piece_is_divided_all_the_same() {
    let lab = lab();
    let session =
        open(&lab, &Script::new().await_line("one").text("1 end unasked a end unasked b\nc end\n").read_to_end());
    say(&session, "one").await.is_good("1");
    rest_of(&mut own(&session).await).await.is_good("a");
    rest_of(&mut own(&session).await).await.is_good("bc");
    close(session).await;
}

#[tokio::test]
async fn a_prompt_that_was_not_taken_is_sent_again_after_the_agents_own_turn() {
    let lab = lab();
    let go = lab.path("go");
    let script = Script::new().await_line("one").text("untaken unasked mine\n").await_file(&go).text("end\n");
    let session = open(&lab, &script.await_line("one").text("1\nend\n").read_to_end());
    let mut sent = session.send("one").unwrap();
    let mut mine = own(&session).await;
    let events = read_until(&mut mine, is_text).await;
    File::create(&go).unwrap();
    rest_after(events, &mut mine).await.is_good("mine");
    rest_of(&mut sent).await.is_good("1");
    close(session).await;
}

#[tokio::test]
async fn a_turn_that_waits_for_the_agents_own_and_is_interrupted_is_not_sent_again() {
    let lab = lab();
    let go = lab.path("go");
    let script = Script::new().await_line("one").text("untaken unasked mine\n").await_file(&go).text("end\n");
    let session = open(&lab, &script.await_line("").text("2\nend\n").read_to_end());
    let mut sent = session.send("one").unwrap();
    let mut mine = own(&session).await;
    let events = read_until(&mut mine, is_text).await;
    sent.control().interrupt();
    File::create(&go).unwrap();
    rest_after(events, &mut mine).await.is_good("mine");
    rest_of(&mut sent).await.is_aborted();
    say(&session, "two").await.is_good("2");
    close(session).await;
}

#[tokio::test]
async fn turns_of_the_agents_own_that_nobody_takes_are_stopped_and_that_is_told() {
    const KEPT: usize = 16;
    let lab = lab();
    let kept =
        (0..KEPT).fold(Script::new().await_line("one").text("1\nend\n"), |script, _| script.text("unasked mine end\n"));
    let script = kept
        .text("unasked much\n")
        .await_line("interrupt")
        .text("end\n")
        .write_pid(&lab.pid_file(), "stopped")
        .await_line("two")
        .text("2\nend\n");
    let session = open(&lab, &script.read_to_end());
    say(&session, "one").await.is_good("1");
    lab.pid("stopped").await;
    let told = say(&session, "two").await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::Notice).len(), 1);
    for _ in 0..KEPT {
        rest_of(&mut own(&session).await).await.is_good("mine");
    }
    close(session).await;
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_of_its_own_is_replaced_for_the_next_that_is_sent() {
    let lab = lab();
    let go = lab.path("go");
    let scripts = [
        Script::new().await_line("one").text("1\nend\nunasked\nmi\n").await_file(&go).exit(3),
        Script::new().await_line("two").text("2\nend\n").read_to_end(),
    ];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    say(&session, "one").await.is_good("1");
    let mut mine = own(&session).await;
    let events = read_until(&mut mine, is_text).await;
    File::create(&go).unwrap();
    let mine = rest_after(events, &mut mine).await;
    mine.failed(&ErrorCode::CliExit);
    assert_eq!(mine.result().text, "mi");
    let told = say(&session, "two").await;
    told.is_good("2");
    assert_eq!(told.warnings(&WarningCode::SessionReopened).len(), 1);
    close(session).await;
}

#[tokio::test]
async fn a_turn_of_the_agents_own_that_begins_when_the_session_closes_does_not_keep_it() {
    let lab = lab();
    let session = open(&lab, &Script::new().await_line("one").text("1\nend\n").read_to_end().text("unasked mine\n"));
    let mut sent = session.send("one").unwrap();
    close(session).await;
    rest_of(&mut sent).await.is_good("1");
}

#[tokio::test]
async fn there_are_no_turns_of_the_agents_own_where_nobody_asked_for_them() {
    let lab = lab();
    let session = lab.runtime.open("muse", frame(&lab, &Script::new().read_to_end())).unwrap();
    assert!(bounded("word that there are none", session.own_turn()).await.is_none());
    close(session).await;
}

#[tokio::test]
async fn dropping_a_turn_of_the_agents_own_ends_its_process_and_the_session_goes_on() {
    let lab = lab();
    let scripts = [
        Script::new().await_line("one").text("1\nend\nunasked\nmi\n").write_pid(&lab.pid_file(), "agent").hang(),
        Script::new().await_line("two").text("2\nend\n").read_to_end(),
    ];
    let session = open(&lab, &Script::new().play_next(&lab.path("starts"), scripts));
    say(&session, "one").await.is_good("1");
    let pid = lab.pid("agent").await;
    drop(own(&session).await);
    eventually("its end", || !crate::lab::is_alive(pid)).await;
    say(&session, "two").await.is_good("2");
    close(session).await;
}

#[tokio::test]
async fn a_turn_of_the_agents_own_holds_a_place_for_as_long_as_it_runs() {
    let mut registry = Registry::default();
    registry.register(Muse);
    let runtime = Runtime::with_registry(registry).max_concurrent_turns(std::num::NonZeroUsize::MIN);
    let lab = Lab::with_runtime(runtime);
    let go = lab.path("go");
    let script = Script::new().await_line("one").text("1\nend\nunasked\nmi\n").await_file(&go).text("ne\nend\n");
    let session = open(&lab, &script.read_to_end());
    say(&session, "one").await.is_good("1");
    let mut mine = own(&session).await;
    let begun = read_until(&mut mine, is_text).await;
    assert_eq!(mine.turn_id(), Some("own-1"));
    let mut other = lab.start(lab.request(&Script::new().claude_init().claude_result("other").read_to_end()));
    let queued = read_until(&mut other, |event| matches!(event, Event::Queued(_))).await;
    assert_eq!(lab.runtime.stats().total.running_turns, 1);
    File::create(&go).unwrap();
    rest_after(begun, &mut mine).await.is_good("mine");
    rest_after(queued, &mut other).await.is_good("other");
    close(session).await;
}

/// What `used` says.
fn used() -> Usage {
    let mut usage = Usage::default();
    usage.input_tokens = 100;
    usage
}

#[tokio::test]
async fn a_turn_that_the_agent_begins_when_the_sessions_budget_is_used_up_is_stopped() {
    let lab = lab();
    let script = Script::new().await_line("one").text("used\n").await_line("interrupt").text("end\nunasked\nmine\n");
    let mut frame = frame(&lab, &script.await_line("interrupt").exit(3));
    frame.max_session_tokens = NonZeroU64::new(100);
    let session = lab.runtime.open("muse", Opening::new(frame).with_background_tasks()).unwrap();
    say(&session, "one").await;
    rest_of(&mut own(&session).await).await.failed(&ErrorCode::Budget);
    close(session).await;
}
