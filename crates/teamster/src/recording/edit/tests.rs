use proptest::prelude::*;
use serde_json::json;
use teamster_agents::launch::Launch;
use teamster_types::event::{Event, RunResult};
use teamster_types::recording::Payload;
use teamster_types::request::RunRequest;

use super::*;

const SECRET: &str = "s3cret \"of\" the/vendor ä 0123456789";

fn redactor(value: &str) -> Arc<Redactor> {
    let variables = [("A_TOKEN".into(), value.into())].into_iter().collect();
    Arc::new(Redactor::of(&variables, &Launch::new("x"), &RunRequest::new("x")))
}

fn entry(item: RecordedItem) -> Entry {
    Entry { at_ms: 0.0, item }
}

fn edited(items: Vec<RecordedItem>, secret: &str) -> Vec<RecordedItem> {
    let (mut editor, redactor) = (Editor::default(), redactor(secret));
    let mut entries = Vec::new();
    for item in items {
        editor.push(entry(item), Some(&redactor));
        entries.extend(std::iter::from_fn(|| editor.next()));
    }
    editor.settle();
    entries.extend(std::iter::from_fn(|| editor.next()));
    entries.into_iter().map(|entry| entry.item).collect()
}

fn text_event(text: &str, message: &str) -> RecordedItem {
    let event = json!({"type": "text", "text": text, "messageId": message});
    RecordedItem::Event { event: Box::new(serde_json::from_value(event).unwrap()) }
}

fn joined(items: &[RecordedItem], message: &str) -> String {
    let texts = items.iter().filter_map(|item| match item {
        RecordedItem::Event { event } => match serde_json::to_value(event).unwrap() {
            event if event["messageId"] == message => Some(event["text"].as_str()?.to_owned()),
            _ => None,
        },
        _ => None,
    });
    texts.collect()
}

fn out(line: &serde_json::Value) -> RecordedItem {
    RecordedItem::Out(Payload::Text(format!("{line}\n")))
}

#[test]
fn a_secret_that_is_split_over_deltas_of_two_parallel_messages_is_removed() {
    for size in [1, 2, 3, 5, 8, 13] {
        let text: Vec<char> = format!("before {SECRET} after").chars().collect();
        let mut items = Vec::new();
        for piece in text.chunks(size) {
            let piece = piece.iter().collect::<String>();
            items.extend([text_event(&piece, "a"), text_event(&piece, "b")]);
            items.push(out(&json!({"type": "delta", "id": "a", "delta": {"text": piece}})));
        }
        let edited = edited(items, SECRET);
        let piece = edited.iter().filter_map(|item| match item {
            RecordedItem::Out(Payload::Text(line)) => {
                serde_json::from_str::<serde_json::Value>(line).unwrap()["delta"]["text"].as_str().map(str::to_owned)
            }
            _ => None,
        });
        for text in [joined(&edited, "a"), joined(&edited, "b"), piece.collect::<String>()] {
            assert!(text.starts_with("before ") && text.ends_with(" after"), "{size}: {text}");
            assert!(
                text.contains("[redacted A_TOKEN]") && !text.contains("s3cr") && !text.contains("of\" the"),
                "{text}"
            );
        }
    }
}

#[test]
fn lines_of_a_secret_in_plain_text_are_found_with_either_line_end() {
    let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nshort=\n-----END KEY-----";
    for end in ["\n", "\r\n"] {
        let lines = pem.lines().map(|line| RecordedItem::Err(Payload::Text(format!("{line}{end}"))));
        let text = format!("{:?}", edited(lines.collect(), pem));
        assert!(pem.lines().all(|line| !text.contains(line)) && text.contains("[redacted A_TOKEN]"), "{text}");
    }
}

#[test]
fn a_secret_that_is_broken_over_lines_and_split_over_deltas_is_found() {
    let secret = "0123456789abcdefghijklmnopqrstuv";
    let text = "a 01234567\n89abcdef\nghijklmn\nopqrstuv b";
    for size in [1, 3, 7, 12, 20] {
        let pieces = text.as_bytes().chunks(size).map(|piece| text_event(str::from_utf8(piece).unwrap(), "a"));
        let found = joined(&edited(pieces.collect(), secret), "a");
        assert!(found.contains("[redacted A_TOKEN]") && !found.contains("ghij"), "{size}: {found}");
    }
    let lines = text.lines().map(|line| RecordedItem::Err(Payload::Text(format!("{line}\n"))));
    let found = format!("{:?}", edited(lines.collect(), secret));
    assert!(found.contains("[redacted A_TOKEN]") && !found.contains("ghij"), "{found}");
}

#[test]
fn every_text_of_an_event_is_redacted_and_the_event_stays_valid() {
    let mut result = RunResult::default();
    result.text = format!("it is {SECRET}").into();
    let event = Event::Done(Box::new(teamster_types::event::Done::new(result)));
    let edited = edited(vec![RecordedItem::Event { event: Box::new(event) }], SECRET);
    let [RecordedItem::Event { event }] = &edited[..] else { panic!("{edited:?}") };
    assert_eq!(serde_json::to_value(event).unwrap()["result"]["text"], "it is [redacted A_TOKEN]");
}

#[test]
fn a_number_that_is_a_secret_becomes_zero_and_the_line_stays_json() {
    let edited = edited(vec![out(&json!({"pin": 1_234_567_890, "deep": [[1_234_567_890]]}))], "1234567890");
    assert_eq!(edited, [out(&json!({"pin": 0, "deep": [[0]]}))]);
}

#[test]
fn a_start_of_a_secret_that_does_not_continue_is_written_unchanged() {
    let lines = vec![text_event("s3cret \"", "a"), text_event("of\" nothing", "a"), text_event("x", "a")];
    assert_eq!(edited(lines.clone(), SECRET), lines);
}

#[test]
fn the_number_of_waiting_entries_is_limited() {
    let (mut editor, redactor) = (Editor::default(), redactor(SECRET));
    editor.push(entry(text_event("s3cret \"of", "a")), Some(&redactor));
    for number in 0..3 * MAX_HELD {
        editor.push(entry(text_event("s3cret", &number.to_string())), Some(&redactor));
        let mut written = std::iter::from_fn(|| editor.next());
        if let Some(first) = written.next() {
            assert_eq!(first.item, text_event("[redacted A_TOKEN]", "a"));
            return assert!(number <= MAX_HELD);
        }
    }
    panic!("nothing was written");
}

proptest! {
    #[test]
    fn a_text_without_a_secret_is_unchanged_byte_for_byte(line in "\\PC{0,40}|[\\[\\]{}:,\" 0-9a-z\\\\]{0,40}", bytes: Vec<u8>) {
        let lines = vec![
            RecordedItem::Out(Payload::Text(line.clone())),
            RecordedItem::In(Payload::Text(json!({"a": [line], "b": {"c": 1.5e300}}).to_string())),
            RecordedItem::Err(Payload::new(&bytes)),
        ];
        prop_assert_eq!(edited(lines.clone(), SECRET), lines);
    }

    #[test]
    fn no_long_part_of_a_secret_is_left_wherever_it_is_split(
        cuts in prop::collection::vec(0..SECRET.len(), 0..6),
        nonsense in "[ -~]{0,12}",
    ) {
        let mut cuts: Vec<_> = cuts.into_iter().filter(|at| SECRET.is_char_boundary(*at)).collect();
        cuts.extend([0, SECRET.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).filter_map(|cut| SECRET.get(cut[0]..cut[1])).filter(|piece| !piece.is_empty());
        let lines = pieces.flat_map(|piece| [text_event(piece, "a"), out(&json!({"noise": nonsense}))]);
        let text = joined(&edited(lines.collect(), SECRET), "a");
        let kept = text.split('[').next().unwrap_or_default();
        prop_assert!(text.ends_with("[redacted A_TOKEN]") && kept.len() < HELD_FROM, "{}", text);
    }
}
