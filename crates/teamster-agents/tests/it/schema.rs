//! The JSON Schemas in `docs/`: they are generated from the types, and all recorded runs follow them.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value};
use teamster_types::event::Event;
use teamster_types::request::{RunRequest, SessionCommand};

use crate::drive::{events, replay};
use crate::replay::for_each_capture;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the schema of a type, for reading or writing.
fn schema<T: schemars::JsonSchema>(settings: SchemaSettings) -> Value {
    settings.into_generator().into_root_schema_for::<T>().into()
}

fn event_schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(RecursiveTransform(without_null));
    let mut schema = schema::<Event>(settings);
    // The fields that a run or a session adds to each event.
    schema["properties"] = serde_json::json!({
        "runId": {"type": "string", "format": "uuid", "description": "The run, or the session."},
        "turnId": {"type": "string", "description": "The turn of a session, where it has a name."},
        "time": {"type": "string", "format": "date-time", "description": "When the event was emitted."},
        "labels": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "The caller's labels, if there are any."
        },
    });
    schema
}

/// Removes `null` from types: optional fields are never written as null.
fn without_null(schema: &mut schemars::Schema) {
    let Some(rules) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = rules.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            rules.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = rules.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = &choices[..] {
            let only = only.clone();
            rules.remove("anyOf");
            rules.extend(only);
        }
    }
}

fn request_schema() -> Value {
    schema::<RunRequest>(SchemaSettings::draft2020_12().for_deserialize())
}

fn command_schema() -> Value {
    schema::<SessionCommand>(SchemaSettings::draft2020_12().for_deserialize())
}

#[test]
fn the_schemas_in_docs_are_current() {
    for (name, schema) in [
        ("event.schema.json", event_schema()),
        ("request.schema.json", request_schema()),
        ("session-command.schema.json", command_schema()),
    ] {
        let path = docs().join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(docs()).unwrap();
            fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
        }
        // Compared as documents, because the order of names depends on the features of serde_json.
        let found = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        assert!(
            found.as_ref() == Some(&schema),
            "docs/{name} does not match the types. Update it, and review the difference:\n\
             UPDATE_DOCS=1 cargo test -p teamster-agents --features schema --test it schema"
        );
    }
}

#[test]
fn every_event_of_every_recorded_run_follows_the_schema() {
    let schema = event_schema();
    for_each_capture(|subject, capture| {
        events(&replay(subject, capture)).iter().try_for_each(|event| {
            let value = serde_json::to_value(event).unwrap();
            valid(&schema, &schema, &value).map_err(|why| format!("{why} in {value}"))
        })
    });
}

#[test]
fn an_invalid_event_does_not_follow_the_schema() {
    let schema = event_schema();
    for text in [
        "{}",
        r#"{"type": "party"}"#,
        r#"{"type": "text", "text": "a"}"#,
        r#"{"type": "text", "text": 1, "messageId": "m"}"#,
        r#"{"type": "text", "text": "a", "messageId": null}"#,
        r#"{"type": "text", "text": "a", "messageId": "m", "parentToolId": null}"#,
        r#"{"type": "init", "agent": "a", "sessionId": "s", "model": null}"#,
        r#"{"type": "usage", "usage": {"inputTokens": -1, "outputTokens": 1}, "scope": "run"}"#,
        r#"{"type": "plan", "entries": {}}"#,
        r#"{"type": "done", "result": {"text": "", "finalText": "", "aborted": false, "isError": false}}"#,
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        assert!(valid(&schema, &schema, &value).is_err(), "{text}");
    }
}

#[test]
fn a_serialized_request_follows_the_schema() {
    let schema = request_schema();
    let text = r#"{
        "prompt": "x", "conversation": {"resume": "s"}, "permissions": {"mode": "read-only", "allow": ["Read"]},
        "mcpServers": {"a": {"type": "stdio", "command": "x", "env": {"A": "b"}}, "b": {"type": "http", "url": "http://x"}},
        "attachments": [{"path": "a.png"}, {"data": {"name": "a", "data": "eA=="}}], "schema": {"type": "object"},
        "output": "batch", "limits": {"silenceMs": 5}, "maxTurns": 3, "maxBudgetUsd": 0.5, "env": {"A": "b"}
    }"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let request: RunRequest = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(valid(&schema, &schema, &value), Ok(()));
    assert_eq!(valid(&schema, &schema, &serde_json::to_value(request).unwrap()), Ok(()));
    assert!(valid(&schema, &schema, &serde_json::json!({"prompt": "x", "permisions": {}})).is_err());
}

#[test]
fn a_command_follows_the_schema_if_and_only_if_it_can_be_read() {
    let schema = command_schema();
    for (text, good) in [
        (r#"{"type": "send", "text": "a", "attachments": [{"path": "a.png"}], "id": "1"}"#, true),
        (r#"{"type": "answer", "requestId": "r", "decision": "allow_always"}"#, true),
        (r#"{"type": "answer", "requestId": "r", "choices": {"q": ["a", "b"]}}"#, true),
        (r#"{"type": "set_permission_mode", "mode": "read-only"}"#, true),
        (r#"{"type": "interrupt"}"#, true),
        (r#"{"type": "close", "id": "2"}"#, true),
        (r#"{"type": "close", "now": true}"#, false),
        (r#"{"type": "send"}"#, false),
        (r#"{"type": "send", "text": "a", "txt": "b"}"#, false),
        (r#"{"type": "send", "text": "a", "id": 1}"#, false),
        (r#"{"type": "answer", "requestId": "r", "decision": "yes"}"#, false),
        (r#"{"type": "stop"}"#, false),
        (r#"{"text": "a"}"#, false),
    ] {
        let value: Value = serde_json::from_str(text).unwrap();
        let read = serde_json::from_value::<SessionCommand>(value.clone());
        assert_eq!((read.is_ok(), valid(&schema, &schema, &value).is_ok()), (good, good), "{text}: {read:?}");
        if let Ok(command) = read {
            let back = serde_json::to_value(&command).unwrap();
            assert_eq!(serde_json::from_value::<SessionCommand>(back).unwrap(), command, "{text}");
        }
    }
}

/// Validates a value by the part of JSON Schema that our schemas use. An unknown keyword is an error. (Complete validators have
/// about forty dependencies.)
fn valid(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(schema) => schema,
        other => return Err(format!("{other} is not a schema")),
    };
    // These two are checked together, see below.
    let fields = ["properties", "additionalProperties"];
    for (keyword, rule) in schema.iter().filter(|(keyword, _)| !fields.contains(&keyword.as_str())) {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "examples" | "default" | "format" => {}
            "$ref" => {
                let pointer = rule.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
                valid(root, root.pointer(pointer).unwrap(), value)?;
            }
            "type" => has_type(rule, value)?,
            "const" if rule == value => {}
            "enum" if rule.as_array().unwrap().contains(value) => {}
            "const" | "enum" => return Err(format!("{value} is not {rule}")),
            "minimum" if value.as_f64() >= rule.as_f64() => {}
            "maximum" if value.as_f64() <= rule.as_f64() => {}
            "minimum" | "maximum" => return Err(format!("{value} is beyond the {keyword} {rule}")),
            "oneOf" | "anyOf" => {
                let rules = rule.as_array().unwrap().iter();
                let results: Vec<_> = rules.map(|rule| valid(root, rule, value)).collect();
                let fitting = results.iter().filter(|result| result.is_ok()).count();
                if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                    return Err(format!("{fitting} of {keyword} fit: {results:?}"));
                }
            }
            "items" => value.as_array().into_iter().flatten().try_for_each(|item| valid(root, rule, item))?,
            "required" => {
                let missing = rule.as_array().unwrap().iter().find(|name| value.get(name.as_str().unwrap()).is_none());
                missing.map_or(Ok(()), |name| Err(format!("{name} is missing")))?;
            }
            other => return Err(format!("unknown keyword {other}")),
        }
    }
    match value {
        Value::Object(fields) => properties(root, schema, fields),
        _ => Ok(()),
    }
}

fn properties(root: &Value, schema: &Map<String, Value>, fields: &Map<String, Value>) -> Result<(), String> {
    for (name, value) in fields {
        let rule = schema.get("properties").and_then(|properties| properties.get(name));
        match rule.or(schema.get("additionalProperties")) {
            Some(Value::Bool(false)) => return Err(format!("unknown field {name}")),
            Some(rule) => valid(root, rule, value).map_err(|why| format!("{name}: {why}"))?,
            None => {}
        }
    }
    Ok(())
}

fn has_type(rule: &Value, value: &Value) -> Result<(), String> {
    let fits = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is not a type of JSON Schema"),
    };
    let fits = match rule {
        Value::Array(names) => names.iter().any(|name| fits(name.as_str().unwrap())),
        name => fits(name.as_str().unwrap()),
    };
    if fits { Ok(()) } else { Err(format!("{value} is not {rule}")) }
}
