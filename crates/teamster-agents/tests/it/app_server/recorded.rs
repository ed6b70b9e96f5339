//! Recorded sessions, replayed turn by turn.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use teamster_agents::protocol::Input;
use teamster_types::event::Event;
use teamster_types::request::Answer;

use super::session::{TestSession, session_request};
use crate::capture::folder;

/// Returns the lines of a recorded session: those sent to the app-server, and those that it sent.
fn recorded(name: &str) -> (Vec<Value>, Vec<Value>) {
    let lines = |file: &str| {
        let text = fs::read_to_string(folder("codex").join(name).join(file)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    (lines("stdin.ndjson"), lines("stdout.ndjson"))
}

/// Returns the caller's answer for a recorded response.
fn answer_of(result: &Value, is_question: bool) -> Answer {
    match (result["decision"].as_str().or(result["action"].as_str()), &result["content"]) {
        (Some("acceptForSession"), _) => Answer::AllowAlways,
        (Some("accept"), Value::Object(content)) if is_question => {
            let text = |value: &Value| vec![value.as_str().unwrap().to_owned()];
            Answer::Choose(content.iter().map(|(name, value)| (name.clone(), text(value))).collect())
        }
        (Some("accept"), _) if result["_meta"]["persist"] == "session" => Answer::AllowAlways,
        (Some("accept"), _) => Answer::Allow { input: None },
        _ => Answer::Deny { message: None },
    }
}

/// Replays a recorded session. Returns the events of each turn.
fn replay(name: &str) -> String {
    let (sent, received) = recorded(name);
    let mut request = session_request();
    request.model = Some("gpt-5.5".to_owned());
    let mut session = TestSession::session(&request);
    let mut text = String::new();
    let mut emitted = 0;
    for line in received {
        let call = line.get("method").is_none().then(|| sent.iter().find(|sent| sent["id"] == line["id"])).flatten();
        match call.and_then(|call| Some((call["method"].as_str()?, call))) {
            Some(("turn/start", call)) => {
                session.send(call["params"]["input"][0]["text"].as_str().unwrap());
                assert_eq!(
                    session.wrote("turn/start").unwrap()["id"],
                    line["id"],
                    "calls are numbered as in the recording"
                );
                emitted = 0;
                text.push_str("\n> turn\n");
            }
            Some(("turn/interrupt", _)) => session.handle(Input::Interrupt),
            _ => {}
        }
        session.line(&line);
        if let (Some(id), Some(_)) = (line["id"].as_u64(), line.get("method")) {
            let reply = sent.iter().find(|sent| sent["id"] == id && sent.get("method").is_none());
            if let Some(reply) = reply {
                let request = session.request();
                let is_question = matches!(session.events.last(), Some(Event::Question(_)));
                session.answer(&request, &answer_of(&reply["result"], is_question));
                let written = session.answered(id).unwrap()["result"].clone();
                for name in ["decision", "action"] {
                    assert_eq!(written[name], reply["result"][name]);
                }
            }
        }
        if session.wrote("thread/backgroundTerminals/clean").is_some() && session.in_turn {
            session.reply("thread/backgroundTerminals/clean", &json!({}));
        }
        for event in &session.events[emitted..] {
            let mut line = serde_json::to_value(event).unwrap();
            // A dependency may enable a feature that keeps the order of a map's fields.
            line.sort_all_objects();
            text.extend([&line.to_string(), "\n"]);
        }
        emitted = session.events.len();
    }
    assert!(!session.in_turn, "the last turn has ended");
    text
}

#[test]
fn every_recorded_session_has_the_events_of_its_snapshot() {
    let names = ["tools", "decline", "accept", "mcp", "unanswered", "cut"];
    let mut failed = Vec::new();
    for name in names {
        let text = replay(&format!("app_talk_{name}"));
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path("../../snapshots/codex_talks");
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        let compare = || settings.bind(|| insta::assert_snapshot!(name, text));
        failed.extend(catch_unwind(AssertUnwindSafe(compare)).err().map(|_| name));
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn the_usage_of_a_turn_excludes_earlier_turns() {
    let text = replay("app_talk_tools");
    let done = text.lines().filter(|line| line.contains("\"type\":\"done\""));
    let inputs: Vec<Value> = done
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"]["usage"]["inputTokens"].clone())
        .collect();
    // The provider reported 600 uncached tokens for each call.
    assert_eq!(inputs, [1200, 1200, 1200, 1200, 3000, 1200, 600, 600, 1800]);
}
