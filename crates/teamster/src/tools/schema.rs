//! JSON schemas that are known only at run time.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Checks that a JSON schema describes an object.
///
/// # Errors
/// It does not. The error contains the reason.
pub(super) fn of_object(schema: Value) -> Result<JsonObject, String> {
    let Value::Object(schema) = schema else { return Err("the schema is no JSON object".to_owned()) };
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its `type` is {other}, not \"object\"")),
        None => return Err("it has no `type`: \"object\" is needed".to_owned()),
    }
    let properties = match schema.get("properties") {
        None => None,
        Some(Value::Object(properties)) => Some(properties),
        Some(_) => return Err("its `properties` are no object".to_owned()),
    };
    let is_schema = |schema: &Value| schema.is_object() || schema.is_boolean();
    if let Some((name, _)) = properties.into_iter().flatten().find(|(_, schema)| !is_schema(schema)) {
        return Err(format!("its property {name:?} has no schema: that is an object, true or false"));
    }
    match schema.get("required") {
        None => {}
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => {}
        Some(_) => return Err("its `required` is no list of names".to_owned()),
    }
    Ok(schema)
}

/// Returns the members that an object must have.
pub(super) fn required(schema: &JsonObject) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}
