//! What is written down of a run, and what a fake agent makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use teamster::RunError;
use teamster::event::{ErrorCode, Event, WarningCode};
use teamster::recording::{Entry, Happening, Said, read};
use teamster::request::Answer;
use teamster_testkit::fake::{Pace, Script};

use crate::lab::{LONG, Lab, Told, bounded, read_until, rest_after, rest_of};

/// Records a run of this script.
async fn record(lab: &Lab, script: &Script) -> (Told, Vec<Entry>) {
    let mut request = lab.request(script);
    request.record = Some(lab.path("recording"));
    let told = lab.finish(request).await;
    (told, recorded(lab).await)
}

async fn recorded(lab: &Lab) -> Vec<Entry> {
    bounded("the end of all", lab.runtime.shutdown()).await;
    read(&fs::read_to_string(lab.path("recording")).unwrap()).unwrap()
}

/// What differs from run to run is left out.
fn comparable(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    if let Some(Event::Done(done)) = events.last_mut() {
        done.result.duration_ms = 0;
    }
    events
}

fn uses_a_tool() -> Script {
    Script::new()
        .claude_init()
        .claude_text("Look. ")
        .claude_tool("t1", "Bash", &json!({"command": "ls"}))
        .stderr("a line beside it\n")
        .claude_tool_result("t1", "made")
        .bytes(b"\xff\xfe no line of the protocol\n".to_vec())
        .claude_text("Done.")
        .claude_result("Done.")
        .read_to_end()
}

#[tokio::test]
async fn a_recording_has_what_went_in_and_out_and_what_was_told() {
    let lab = Lab::new();
    let (told, entries) = record(&lab, &uses_a_tool()).await;
    let has = |what: fn(&Happening) -> bool| entries.iter().any(|entry| what(&entry.happening));
    assert!(matches!(&entries[0].happening, Happening::Recording { agent, version: 1 } if agent == "claude"));
    assert!(has(|happening| matches!(happening, Happening::Start { args, .. } if args.contains(&"-p".to_owned()))));
    assert!(has(|happening| matches!(happening, Happening::In(Said::Text(text)) if text.contains("Do it"))));
    assert!(has(|happening| matches!(happening, Happening::InEnd)));
    assert!(has(|happening| matches!(happening, Happening::Out(Said::Base64(_)))), "bytes that are no text");
    assert!(has(|happening| *happening == Happening::Err(Said::Text("a line beside it\n".to_owned()))));
    assert!(has(|happening| *happening == Happening::Exit { code: Some(0), signal: None }));
    let events = entries.iter().filter_map(|entry| match &entry.happening {
        Happening::Event { event } => Some((**event).clone()),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), told.events);
    assert!(entries.is_sorted_by(|one, next| one.at_ms <= next.at_ms));
    let mode = fs::metadata(lab.path("recording")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "prompts stand in it");
}

#[tokio::test]
async fn a_fake_plays_a_recording_as_it_was() {
    for script in [uses_a_tool(), Script::new().claude_init().claude_text("Hel").stderr("it broke\n").exit(3)] {
        let lab = Lab::new();
        let (told, entries) = record(&lab, &script).await;
        for pace in [Pace::AtOnce, Pace::Times(10.0)] {
            let again = lab.play(&Script::of_recording(&entries, 1, pace).unwrap()).await;
            assert_eq!(comparable(&again.events), comparable(&told.events));
        }
    }
}

#[tokio::test]
async fn a_fake_plays_a_session_with_its_requests() {
    let lab = Lab::new();
    let asks = Script::new().line(json!({
        "type": "control_request", "request_id": "r1",
        "request": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "touch x"}, "tool_use_id": "t1"},
    }));
    let one = Script::new().await_line("one").claude_init().then(asks).await_line("r1").claude_text("1");
    let two = Script::new().await_line("two").claude_init().claude_text("2").claude_result("2");
    let script = one.claude_result("1").then(two).read_to_end();
    let mut recording = None;
    for _ in 0..2 {
        let played = recording.as_deref().map(|entries| Script::of_recording(entries, 1, Pace::AtOnce).unwrap());
        let mut frame = lab.request(played.as_ref().unwrap_or(&script));
        frame.prompt.clear();
        frame.record = Some(lab.path("recording"));
        frame.limits.silence = LONG;
        let session = lab.runtime.open("claude", frame).unwrap();
        let mut first = session.send("one").unwrap();
        let mut events = read_until(&mut first, |event| matches!(event, Event::PermissionRequest(_))).await;
        let Some(Event::PermissionRequest(request)) = events.last() else { unreachable!() };
        session.answer(request.request_id.clone(), Answer::Allow { input: None }).await.unwrap();
        rest_after(std::mem::take(&mut events), &mut first).await.is_good("1");
        rest_of(&mut session.send("two").unwrap()).await.is_good("2");
        bounded("the session's end", session.close()).await;
        recording = Some(recorded(&lab).await);
    }
}

#[tokio::test]
async fn known_secrets_do_not_stand_in_a_recording() {
    let lab = Lab::new();
    let mut request = lab.request(&Script::new().claude_init().claude_text("the key is k3y-of-the-vendor").exit(0));
    request.env.insert("ANTHROPIC_API_KEY".to_owned(), "k3y-of-the-vendor".to_owned());
    request.prompt = "Is k3y-of-the-vendor a key?".to_owned();
    request.record = Some(lab.path("recording"));
    lab.finish(request).await;
    let entries = recorded(&lab).await;
    let wire = entries.iter().filter(|entry| !matches!(entry.happening, Happening::Event { .. }));
    let text = serde_json::to_string(&wire.collect::<Vec<_>>()).unwrap();
    assert!(!text.contains("k3y-of-the-vendor") && text.contains("the key is"), "{text}");
}

#[tokio::test]
async fn a_recording_that_cannot_be_begun_is_an_error_and_one_that_cannot_go_on_a_warning() {
    let lab = Lab::new();
    let mut request = lab.request(&uses_a_tool());
    request.record = Some(lab.path("missing/recording"));
    let refused = lab.runtime.run("claude", request).unwrap_err();
    assert!(matches!(&refused, RunError::Record { path, .. } if path.ends_with("missing/recording")), "{refused}");

    // A disk that is full.
    let says = Script::new().claude_init().claude_text("Hello").await_file(&lab.path("go")).claude_result("Hello");
    let mut request = lab.request(&says.read_to_end());
    request.record = Some("/dev/full".into());
    let mut run = lab.start(request);
    let events = read_until(&mut run, |event| matches!(event, Event::Text(_))).await;
    fs::write(lab.path("go"), "").unwrap();
    let told = rest_after(events, &mut run).await;
    told.is_good("Hello");
    assert_eq!(told.warnings(&WarningCode::RecordingIncomplete).len(), 1, "{:?}", told.events);
}

#[tokio::test]
async fn a_process_that_a_recording_does_not_have_is_named() {
    let lab = Lab::new();
    let (told, entries) = record(&lab, &Script::new().exit(3)).await;
    told.failed(&ErrorCode::CliExit);
    for asked in [0, 2] {
        let missing = Script::of_recording(&entries, asked, Pace::AtOnce).unwrap_err();
        assert_eq!((missing.asked, missing.there), (asked, 1));
    }
}
