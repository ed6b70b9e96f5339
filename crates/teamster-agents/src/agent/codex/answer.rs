//! The check of a turn's answer.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;

use teamster_types::event::{ErrorCode, Failure};
use teamster_types::json::RawJson;

/// Returns the document that a schema requires, and why a turn has failed although the agent reported success.
pub(super) fn classify(
    answer: Option<&str>,
    schema: Option<&Value>,
    called: bool,
) -> (Option<RawJson>, Option<Failure>) {
    match schema {
        Some(schema) => structured(answer, schema),
        None if answer.is_none() && !called => {
            (None, Some(Failure::new(ErrorCode::Provider, "the model ended its turn without an answer")))
        }
        None => (None, None),
    }
}

/// Reads the answer as the document, and checks it: the CLI does not (`flag_output_schema_violated`).
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
    let why = "the model's output does not follow the schema";
    let failure = document.is_none().then(|| Failure::new(ErrorCode::StructuredOutput, why));
    (document, failure)
}
