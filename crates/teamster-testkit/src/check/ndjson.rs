//! The stream as text: one JSON object per line.

use serde_json::Value;
use teamster_types::event::Event;

use super::{Checker, Rule, Violation, rule};

/// Fields that contain the agent's own JSON, with any names and null values.
const AGENT_JSON_FIELDS: [&str; 4] = ["input", "content", "data", "structuredOutput"];

/// Checks the output of a program: the format of each line, and the rules of the stream.
///
/// # Errors
/// Returns all violations. A line that is not a valid event is ignored by the rules of the stream.
pub fn check_ndjson(text: &str) -> Result<Vec<Event>, Vec<Violation>> {
    let mut checker = Checker::new();
    let mut events = Vec::new();
    let mut violations = Vec::new();
    for (at, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        let mut found = Vec::new();
        if let Some(event) = read(line, &mut found) {
            // An invalid line must not shift the numbers of the lines after it.
            checker.count = at;
            checker.push(&event);
            events.push(event);
        }
        violations.extend(found.into_iter().map(|(rule, kind, detail)| Violation { rule, at: Some(at), kind, detail }));
    }
    violations.extend(checker.finish().err().into_iter().flatten());
    violations.sort_by_key(|violation| violation.at.unwrap_or(usize::MAX));
    if violations.is_empty() { Ok(events) } else { Err(violations) }
}

type Found = Vec<(Rule, &'static str, String)>;

fn read(line: &str, found: &mut Found) -> Option<Event> {
    let value = match serde_json::from_str::<Value>(line) {
        Ok(value @ Value::Object(_)) => value,
        Ok(other) => {
            found.push((Rule::OneObjectALine, "", format!("it is {}", excerpt(&other.to_string()))));
            return None;
        }
        Err(error) => {
            found.push((Rule::OneObjectALine, "", format!("{error} in {:?}", excerpt(line))));
            return None;
        }
    };
    // Parsed from the text, not from the value: tool inputs are compared in their original form.
    let event = match serde_json::from_str::<Event>(line) {
        Ok(event @ Event::Unknown(_)) => {
            found.push((Rule::KnownType, "", format!("unknown type in {}", excerpt(line))));
            fields(&value, "", "", found);
            return Some(event);
        }
        Ok(event) => event,
        Err(error) => {
            found.push((Rule::RoundTrip, "", error.to_string()));
            fields(&value, "", "", found);
            return None;
        }
    };
    let kind = rule::kind(&event);
    let before = found.len();
    fields(&value, "", kind, found);
    // A null value or an unknown name also changes in the round trip; one violation is enough.
    if found.len() == before
        && let Ok(written) = serde_json::to_value(&event)
        && let Some(difference) = difference(&value, &written, "")
    {
        found.push((Rule::RoundTrip, kind, difference));
    }
    Some(event)
}

/// Checks the names and values of the stream's own fields, at any depth.
fn fields(value: &Value, path: &str, kind: &'static str, found: &mut Found) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                if !is_camel_case(key) {
                    found.push((Rule::CamelCase, kind, path.clone()));
                }
                if !AGENT_JSON_FIELDS.contains(&key.as_str()) {
                    fields(value, &path, kind, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), kind, found)),
        Value::Null => found.push((Rule::NoNull, kind, path.to_owned())),
        _ => {}
    }
}

fn is_camel_case(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_lowercase()) && key.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Returns the first difference between the parsed value and the value that would be written.
fn difference(read: &Value, written: &Value, path: &str) -> Option<String> {
    match (read, written) {
        (Value::Object(a), Value::Object(b)) => {
            if let Some(key) = a.keys().find(|key| !b.contains_key(*key)) {
                return Some(format!("{path}.{key} is unknown"));
            }
            if let Some(key) = b.keys().find(|key| !a.contains_key(*key)) {
                return Some(format!("{path}.{key} is missing"));
            }
            a.iter().find_map(|(key, value)| difference(value, b.get(key)?, &format!("{path}.{key}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(at, (a, b))| difference(a, b, &format!("{path}[{at}]")))
        }
        // JSON has one number type: 0 and 0.0 are the same cost.
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => None,
        _ if read == written => None,
        _ => Some(format!(
            "{path} is {}, but would be written as {}",
            excerpt(&read.to_string()),
            excerpt(&written.to_string())
        )),
    }
}

fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
