//! What the model's last message comes to.

use serde_json::Value;

use crate::event::{ErrorCode, Failure};

/// The document that a schema asked for, and why a turn that the agent calls complete has failed all the same.
pub(super) fn judge(answer: Option<&str>, schema: Option<&Value>, called: bool) -> (Option<Value>, Option<Failure>) {
    match schema {
        Some(schema) => structured(answer, schema),
        None if answer.is_none() && !called => {
            (None, Some(Failure::new(ErrorCode::Provider, "the model ended its turn without a word")))
        }
        None => (None, None),
    }
}

/// The answer is the document; nobody has checked it (`flag_output_schema_violated`).
fn structured(answer: Option<&str>, schema: &Value) -> (Option<Value>, Option<Failure>) {
    let document = answer.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let follows = |document: &Value| {
        let object = schema.get("type").is_none_or(|kind| kind != "object") || document.is_object();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        object && required.filter_map(Value::as_str).all(|name| document.get(name).is_some())
    };
    let document = document.filter(follows);
    let why = "the model gave no output that follows the schema";
    let failure = document.is_none().then(|| Failure::new(ErrorCode::StructuredOutput, why));
    (document, failure)
}
