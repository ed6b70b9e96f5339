//! The JSON schema of the configuration file, `docs/config.schema.json`, and the table of the gateway's keys in
//! `docs/configuration.md`. The tests of this module compare and write them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use teamster_gateway::config::file::{ServeTable, schema};

use crate::settings::{Kind, Scope, Setting};

/// Returns the schema of the whole file.
fn document(settings: &[Setting]) -> Value {
    let mut serve = schema();
    let definitions = serve.as_object_mut().and_then(|serve| serve.remove("$defs")).unwrap_or_default();
    if let Some(serve) = serve.as_object_mut() {
        serve.remove("$schema");
    }
    let table = |of_profile: bool| {
        let is_usable = |setting: &&Setting| match setting.scope {
            Scope::OneCall => false,
            Scope::NotInProfiles => !of_profile,
            Scope::Everywhere => true,
        };
        let properties: Map<String, Value> =
            settings.iter().filter(is_usable).map(|setting| (setting.key.clone(), property(setting))).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    };
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration file of teamster",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "defaults": table(false),
            "profiles": { "type": "object", "additionalProperties": table(true) },
            "agents": { "type": "object", "additionalProperties": agent() },
            "projects": {
                "description": "The rules that were saved in chats, by directory and agent",
                "type": "object",
                "additionalProperties": { "type": "object", "additionalProperties": saved_rules() },
            },
            "serve": serve,
        },
        "$defs": definitions,
    })
}

fn agent() -> Value {
    json!({
        "description": "A program that speaks ACP",
        "type": "object",
        "properties": {
            "protocol": { "const": "acp" },
            "command": { "type": "string" },
            "args": { "type": "array", "items": { "type": "string" } },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
        },
        "required": ["protocol", "command"],
        "additionalProperties": false,
    })
}

fn saved_rules() -> Value {
    json!({
        "type": "object",
        "properties": { "allow_tool": { "type": "array", "items": { "type": "string" } } },
        "additionalProperties": false,
    })
}

fn property(setting: &Setting) -> Value {
    let names: Vec<_> = setting.arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let mut one = vec![if names.is_empty() || setting.id == "agent" {
        if setting.takes_number() { json!({ "type": ["string", "number"] }) } else { json!({ "type": "string" }) }
    } else {
        json!({ "enum": names })
    }];
    if setting.takes_json() {
        one.push(json!({ "type": "object" }));
    }
    let item = match one.as_slice() {
        [only] => only.clone(),
        all => json!({ "anyOf": all }),
    };
    let value = match setting.kind {
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::One => item,
        Kind::List => {
            let mut forms = vec![item.clone(), json!({ "type": "array", "items": item })];
            if setting.takes_pairs() {
                forms.push(json!({ "type": "object", "additionalProperties": { "type": ["string", "number"] } }));
            }
            json!({ "anyOf": forms })
        }
    };
    let mut value = value;
    if let (Some(help), Some(object)) = (setting.arg.get_help(), value.as_object_mut()) {
        object.insert("description".to_owned(), help.to_string().into());
    }
    value
}

/// A key of the table `[serve]`.
struct Key {
    /// Its path; `[]` stands for an entry of an array of tables.
    path: String,
    kind: String,
    description: String,
}

/// Returns the keys of the table `[serve]`, without those that are tables.
fn keys() -> Vec<Key> {
    let schema = schema();
    let mut found = Vec::new();
    add_keys(&schema, &schema, "", &mut found);
    found
}

/// Returns the paths of the keys.
pub(super) fn serve_keys() -> Vec<String> {
    keys().into_iter().map(|key| key.path).collect()
}

fn add_keys(object: &Value, root: &Value, prefix: &str, found: &mut Vec<Key>) {
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let value = target(property, root);
        let description = property.get("description").or_else(|| value.get("description"));
        let description = description.and_then(Value::as_str).unwrap_or_default().to_owned();
        let item = value.get("items").map(|items| target(items, root));
        if path != "tls" && value.get("properties").is_some() {
            add_keys(value, root, &path, found);
        } else if let Some(item) = item.filter(|item| item.get("properties").is_some()) {
            add_keys(item, root, &format!("{path}[]"), found);
        } else {
            found.push(Key { path, kind: kind(property, value, item), description });
        }
    }
}

/// Follows references, and the first alternative that is not null.
fn target<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let found = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return found.map_or(schema, |found| target(found, root));
    }
    let alternatives = schema.get("anyOf").and_then(Value::as_array);
    let first = alternatives.and_then(|all| all.iter().find(|one| one.get("type") != Some(&"null".into())));
    first.map_or(schema, |first| target(first, root))
}

fn kind(property: &Value, value: &Value, item: Option<&Value>) -> String {
    let is_duration = value.get("examples").is_some();
    let text = value.get("type").map(|kind| match kind {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("").to_owned()
        }
        other => other.as_str().unwrap_or_default().to_owned(),
    });
    match text.as_deref() {
        _ if item.is_some() => "list".to_owned(),
        _ if is_duration => "duration".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("object") => "table".to_owned(),
        _ if value.get("oneOf").is_some() || value.get("enum").is_some() => "name".to_owned(),
        _ if property.get("format").is_some() => "number".to_owned(),
        _ => "text".to_owned(),
    }
}

/// Returns the table of the keys for the documentation.
fn reference() -> String {
    let built_in = serde_json::to_value(ServeTable::built_in()).unwrap_or_default();
    let mut text = "| key | type | built-in | meaning |\n|---|---|---|---|\n".to_owned();
    for Key { path, kind, description } in keys() {
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = built_in.pointer(&pointer).map_or_else(String::new, |value| format!("`{value}`"));
        let meaning = description.lines().next().unwrap_or_default();
        // Writing to a text cannot fail.
        _ = writeln!(text, "| `{path}` | {kind} | {value} | {meaning} |");
    }
    text
}

#[test]
fn the_schema_of_the_file_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/config.schema.json");
    let settings = crate::settings::settings(&crate::args::command());
    let expected = serde_json::to_string_pretty(&document(&settings)).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).unwrap();
    }
    let current = std::fs::read_to_string(path).unwrap_or_default();
    assert!(current == expected, "docs/config.schema.json is not current: run this test with UPDATE_DOCS=1");
}

#[test]
fn the_documented_keys_of_the_gateway_are_current() {
    const BEGIN: &str = "<!-- generated for serve: UPDATE_DOCS=1 cargo test -p teamster-cli -->\n\n";
    const END: &str = "\n<!-- end of serve -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (table, tail) = rest.split_once(END).unwrap();
    let expected = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, format!("{head}{BEGIN}{expected}{END}{tail}")).unwrap();
    } else {
        assert_eq!(table, expected, "run UPDATE_DOCS=1 cargo test -p teamster-cli");
    }
}
