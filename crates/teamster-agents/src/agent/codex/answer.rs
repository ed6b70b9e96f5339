//! What the model's last message comes to.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use teamster_types::event::{ErrorCode, Failure};
use teamster_types::json::RawJson;

/// The document that a schema asked for, and why a turn that the agent calls complete has failed all the same.
pub(super) fn classify(
    answer: Option<&str>,
    schema: Option<&Value>,
    called: bool,
) -> (Option<RawJson>, Option<Failure>) {
    match schema {
        Some(schema) => structured(answer, schema),
        None if answer.is_none() && !called => {
            (None, Some(Failure::new(ErrorCode::Provider, "the model ended its turn without a word")))
        }
        None => (None, None),
    }
}

/// The answer is the document; nobody has checked it (`flag_output_schema_violated`).
fn structured(answer: Option<&str>, schema: &Value) -> (Option<RawJson>, Option<Failure>) {
    let document = answer.and_then(|text| serde_json::from_str::<RawJson>(text).ok());
    let follows = |document: &RawJson| {
        let members = serde_json::from_str::<HashMap<String, &RawValue>>(document.as_str()).ok();
        let object = schema.get("type").is_none_or(|kind| kind != "object") || members.is_some();
        let has = |name: &str| members.as_ref().is_some_and(|members| members.contains_key(name));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        object && required.filter_map(Value::as_str).all(has)
    };
    let document = document.filter(follows);
    let why = "the model gave no output that follows the schema";
    let failure = document.is_none().then(|| Failure::new(ErrorCode::StructuredOutput, why));
    (document, failure)
}
