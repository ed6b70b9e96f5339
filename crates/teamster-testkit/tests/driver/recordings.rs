//! What is written down of a run, and what a fake agent makes of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use teamster::RunError;
use teamster::event::{ErrorCode, Event};
use teamster::recording::{Entry, Happening, Said, read};
use teamster::request::Answer;
use teamster_testkit::fake::{Pace, Script};

use crate::lab::{LONG, Lab, Told, bounded, read_until, rest_after, rest_of};

/// Records a run of this script.
async fn record(lab: &Lab, script: &Script) -> (Told, Vec<Entry>) {
    let mut request = lab.request(script);
    request.record = Some(lab.path("recording"));
    request.record_overwrite = true;
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
        for pace in [Pace::Immediate, Pace::Factor(10.0)] {
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
        let played = recording.as_deref().map(|entries| Script::of_recording(entries, 1, Pace::Immediate).unwrap());
        let mut frame = lab.request(played.as_ref().unwrap_or(&script));
        frame.prompt.clear();
        frame.record = Some(lab.path("recording"));
        frame.record_overwrite = true;
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

const KEY: &str = "k3y-of-the-vendor";

/// Says a key whole, in deltas, in a tool call, and line by line on its diagnostics.
fn says_the_key() -> Script {
    Script::new()
        .claude_init()
        .claude_text(KEY)
        .claude_tool("t1", "Bash", &json!({"command": format!("echo {KEY}")}))
        .claude_tool_result("t1", KEY)
        .stderr("-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhk\r\n-----END KEY-----\r\n")
        .claude_result(KEY)
        .read_to_end()
}

fn with_the_key(lab: &Lab) -> teamster::request::RunRequest {
    let mut request = lab.request(&says_the_key());
    request.env.insert("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned());
    let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\n-----END KEY-----\n";
    request.env.insert("DEPLOY_KEY".to_owned(), pem.to_owned());
    request.prompt = format!("Is {KEY} a key?");
    request.record = Some(lab.path("recording"));
    request
}

#[tokio::test]
async fn known_secrets_are_in_no_line_of_a_recording_even_when_they_are_split() {
    let lab = Lab::new();
    let told = lab.finish(with_the_key(&lab)).await;
    assert_eq!(told.result().text, KEY, "what the model says is not changed");
    let stderr = told.result().stderr.clone().unwrap_or_default();
    assert!(!stderr.contains("MIIE") && stderr.contains("[redacted DEPLOY_KEY]"), "{stderr:?}");
    let entries = recorded(&lab).await;
    let text = fs::read_to_string(lab.path("recording")).unwrap();
    assert!(!text.contains(KEY) && !text.contains("MIIEvQI") && text.contains("Is [redacted"), "{text}");
    let deltas = entries.iter().filter_map(|entry| match &entry.happening {
        Happening::Event { event } => match &**event {
            Event::Text(delta) => Some(delta.text.to_string()),
            _ => None,
        },
        _ => None,
    });
    let joined = deltas.collect::<String>();
    assert!(!joined.contains("k3y-") && joined.contains("[redacted ANTHROPIC_API_KEY]"), "{joined}");
    // It can be played as before.
    let again = lab.play(&Script::of_recording(&entries, 1, Pace::Immediate).unwrap()).await;
    again.is_good("[redacted ANTHROPIC_API_KEY]");
}

#[tokio::test]
async fn a_raw_recording_has_the_exact_bytes() {
    let lab = Lab::new();
    let mut request = with_the_key(&lab);
    request.record_raw = true;
    lab.finish(request).await;
    recorded(&lab).await;
    let text = fs::read_to_string(lab.path("recording")).unwrap();
    assert!(text.contains(&format!("Is {KEY} a key?")) && !text.contains("[redacted ANTHROPIC"), "{text}");
}

#[tokio::test]
async fn a_recording_is_not_begun_where_something_else_is() {
    let lab = Lab::new();
    fs::write(lab.path("recording"), "before").unwrap();
    std::os::unix::fs::symlink(lab.path("recording"), lab.path("link")).unwrap();
    for (path, said) in [("missing/recording", "No such file"), ("recording", "--record-overwrite"), ("link", "link")] {
        let mut request = lab.request(&uses_a_tool());
        request.record = Some(lab.path(path));
        let refused = lab.runtime.run("claude", request).unwrap_err();
        assert!(matches!(&refused, RunError::Record { path: named, .. } if named.ends_with(path)), "{refused}");
        assert!(refused.to_string().contains(said), "{refused}");
    }
    assert_eq!(fs::read_to_string(lab.path("recording")).unwrap(), "before");
}

#[tokio::test]
async fn a_process_that_a_recording_does_not_have_is_named() {
    let lab = Lab::new();
    let (told, entries) = record(&lab, &Script::new().exit(3)).await;
    told.failed(&ErrorCode::CliExit);
    for asked in [0, 2] {
        let missing = Script::of_recording(&entries, asked, Pace::Immediate).unwrap_err();
        assert_eq!((missing.requested, missing.available), (asked, 1));
    }
}
