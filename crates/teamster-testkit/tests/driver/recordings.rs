//! Recordings of runs, and fake agents that play them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use teamster::RunError;
use teamster::event::{ErrorCode, Event};
use teamster::recording::{Entry, Payload, RecordedItem, read};
use teamster::request::Answer;
use teamster_testkit::fake::{Pace, Script};

use crate::test_env::{CheckedStream, LONG, TestEnv, bounded, read_until, rest_after, rest_of};

/// Records a run of this script.
async fn record(env: &TestEnv, script: &Script) -> (CheckedStream, Vec<Entry>) {
    let mut request = env.request(script);
    request.record = Some(env.path("recording"));
    request.record_overwrite = true;
    let stream = env.finish(request).await;
    (stream, recorded(env).await)
}

async fn recorded(env: &TestEnv) -> Vec<Entry> {
    bounded("the end of all", env.runtime.wait_idle()).await;
    read(&fs::read_to_string(env.path("recording")).unwrap()).unwrap()
}

/// Removes the values that differ from run to run.
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
async fn a_recording_contains_input_output_and_events() {
    let env = TestEnv::new();
    let (stream, entries) = record(&env, &uses_a_tool()).await;
    let has = |what: fn(&RecordedItem) -> bool| entries.iter().any(|entry| what(&entry.item));
    assert!(matches!(&entries[0].item, RecordedItem::Recording { agent, version: 1 } if agent == "claude"));
    assert!(has(|item| matches!(item, RecordedItem::Start { args, .. } if args.contains(&"-p".to_owned()))));
    assert!(has(|item| matches!(item, RecordedItem::In(Payload::Text(text)) if text.contains("Do it"))));
    assert!(has(|item| matches!(item, RecordedItem::InEnd)));
    assert!(has(|item| matches!(item, RecordedItem::Out(Payload::Base64(_)))), "bytes that are not text");
    assert!(has(|item| *item == RecordedItem::Err(Payload::Text("a line beside it\n".to_owned()))));
    assert!(has(|item| *item == RecordedItem::Exit { code: Some(0), signal: None }));
    let events = entries.iter().filter_map(|entry| match &entry.item {
        RecordedItem::Event { event } => Some((**event).clone()),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), stream.events);
    assert!(entries.is_sorted_by(|one, next| one.at_ms <= next.at_ms));
    let mode = fs::metadata(env.path("recording")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it contains prompts");
}

#[tokio::test]
async fn a_fake_agent_plays_a_recording_with_the_same_events() {
    for script in [uses_a_tool(), Script::new().claude_init().claude_text("Hel").stderr("it broke\n").exit(3)] {
        let env = TestEnv::new();
        let (stream, entries) = record(&env, &script).await;
        for pace in [Pace::Immediate, Pace::Factor(10.0)] {
            let again = env.play(&Script::of_recording(&entries, 1, pace).unwrap()).await;
            assert_eq!(comparable(&again.events), comparable(&stream.events));
        }
    }
}

#[tokio::test]
async fn a_fake_agent_plays_a_recorded_session_with_its_requests() {
    let env = TestEnv::new();
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
        let mut request = env.request(played.as_ref().unwrap_or(&script));
        request.prompt.clear();
        request.record = Some(env.path("recording"));
        request.record_overwrite = true;
        request.limits.silence = LONG;
        let session = env.runtime.open("claude", request).unwrap();
        let mut first = session.send("one").unwrap();
        let mut events = read_until(&mut first, |event| matches!(event, Event::PermissionRequest(_))).await;
        let Some(Event::PermissionRequest(request)) = events.last() else { unreachable!() };
        session.answer(request.request_id.clone(), Answer::Allow { input: None }).await.unwrap();
        rest_after(std::mem::take(&mut events), &mut first).await.assert_success("1");
        rest_of(&mut session.send("two").unwrap()).await.assert_success("2");
        bounded("the session's end", session.close()).await;
        recording = Some(recorded(&env).await);
    }
}

const KEY: &str = "k3y-of-the-vendor";

/// Prints a key as text, in deltas, in a tool call, and line by line on stderr.
fn prints_the_key() -> Script {
    Script::new()
        .claude_init()
        .claude_text(KEY)
        .claude_tool("t1", "Bash", &json!({"command": format!("echo {KEY}")}))
        .claude_tool_result("t1", KEY)
        .stderr("-----BEGIN KEY-----\r\nMIIEvQIBADANBgkqhk\r\n-----END KEY-----\r\n")
        .claude_result(KEY)
        .read_to_end()
}

fn with_the_key(env: &TestEnv) -> teamster::request::RunRequest {
    let mut request = env.request(&prints_the_key());
    request.env.insert("ANTHROPIC_API_KEY".to_owned(), KEY.to_owned());
    let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhk\n-----END KEY-----\n";
    request.env.insert("DEPLOY_KEY".to_owned(), pem.to_owned());
    request.prompt = format!("Is {KEY} a key?");
    request.record = Some(env.path("recording"));
    request
}

#[tokio::test]
async fn no_line_of_a_recording_contains_a_known_secret_even_if_it_is_split() {
    let env = TestEnv::new();
    let stream = env.finish(with_the_key(&env)).await;
    assert_eq!(stream.result().text, KEY, "the model's output is not changed");
    let stderr = stream.result().stderr.clone().unwrap_or_default();
    assert!(!stderr.contains("MIIE") && stderr.contains("[redacted DEPLOY_KEY]"), "{stderr:?}");
    let entries = recorded(&env).await;
    let text = fs::read_to_string(env.path("recording")).unwrap();
    assert!(!text.contains(KEY) && !text.contains("MIIEvQI") && text.contains("Is [redacted"), "{text}");
    let deltas = entries.iter().filter_map(|entry| match &entry.item {
        RecordedItem::Event { event } => match &**event {
            Event::Text(delta) => Some(delta.text.to_string()),
            _ => None,
        },
        _ => None,
    });
    let joined = deltas.collect::<String>();
    assert!(!joined.contains("k3y-") && joined.contains("[redacted ANTHROPIC_API_KEY]"), "{joined}");
    // It can be played as before.
    let again = env.play(&Script::of_recording(&entries, 1, Pace::Immediate).unwrap()).await;
    again.assert_success("[redacted ANTHROPIC_API_KEY]");
}

#[tokio::test]
async fn a_raw_recording_contains_the_exact_bytes() {
    let env = TestEnv::new();
    let mut request = with_the_key(&env);
    request.record_raw = true;
    env.finish(request).await;
    recorded(&env).await;
    let text = fs::read_to_string(env.path("recording")).unwrap();
    assert!(text.contains(&format!("Is {KEY} a key?")) && !text.contains("[redacted ANTHROPIC"), "{text}");
}

#[tokio::test]
async fn a_recording_does_not_replace_an_existing_file() {
    let env = TestEnv::new();
    fs::write(env.path("recording"), "before").unwrap();
    std::os::unix::fs::symlink(env.path("recording"), env.path("link")).unwrap();
    for (path, reason) in [("missing/recording", "No such file"), ("recording", "record_overwrite"), ("link", "link")] {
        let mut request = env.request(&uses_a_tool());
        request.record = Some(env.path(path));
        let error = env.runtime.run("claude", request).unwrap_err();
        assert!(matches!(&error, RunError::Record { path: named, .. } if named.ends_with(path)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert_eq!(fs::read_to_string(env.path("recording")).unwrap(), "before");
}

#[tokio::test]
async fn a_missing_process_of_a_recording_is_an_error_that_names_it() {
    let env = TestEnv::new();
    let (stream, entries) = record(&env, &Script::new().exit(3)).await;
    stream.assert_failed(&ErrorCode::CliExit);
    for asked in [0, 2] {
        let missing = Script::of_recording(&entries, asked, Pace::Immediate).unwrap_err();
        assert_eq!((missing.requested, missing.available), (asked, 1));
    }
}
