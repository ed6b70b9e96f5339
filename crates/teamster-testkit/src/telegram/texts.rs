//! What the service demands of texts and entities, and what it finds in them.

use serde_json::{Value, json};

use super::error::ApiError;

/// The longest text of entities in bytes. It was observed, and is not documented.
const MAX_ENTITIES: usize = 9_500;

/// Checks a text, and returns it as the service stores it, with its entities.
pub(super) fn checked(
    text: &str,
    entities: Option<Value>,
    max: usize,
    what: &str,
) -> Result<(String, Vec<Value>), ApiError> {
    if text.encode_utf16().count() > max {
        return Err(ApiError::bad(format!("{what} is too long")));
    }
    let given = match entities {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(entities)) => entities,
        Some(_) => return Err(ApiError::bad("can't parse entities: expected an Array")),
    };
    if serde_json::to_string(&given).is_ok_and(|text| text.len() > MAX_ENTITIES) {
        return Err(ApiError::bad("ENTITIES_TOO_LONG"));
    }
    let units: Vec<u16> = text.encode_utf16().collect();
    for entity in &given {
        check_entity(entity, &units)?;
    }
    let mut all: Vec<_> = given.clone();
    all.extend(found(text).into_iter().filter(|found| !given.iter().any(|entity| is_code_over(entity, found))));
    Ok((text.to_owned(), all))
}

fn bounds(entity: &Value) -> Option<(usize, usize)> {
    let of = |name: &str| usize::try_from(entity.get(name)?.as_u64()?).ok();
    let offset = of("offset")?;
    Some((offset, offset.checked_add(of("length")?)?))
}

fn check_entity(entity: &Value, units: &[u16]) -> Result<(), ApiError> {
    let (start, end) = bounds(entity).ok_or_else(|| ApiError::bad("can't parse entities: no offset or length"))?;
    if end > units.len() || start == end {
        return Err(ApiError::bad("can't parse entities: an entity is out of bounds"));
    }
    let is_low = |at: usize| units.get(at).is_some_and(|unit| (0xdc00..0xe000).contains(unit));
    if is_low(start) || is_low(end) {
        let problem = format!("entity beginning at UTF-16 offset {start} ends in a middle of a UTF-16 symbol");
        return Err(ApiError::bad(problem));
    }
    Ok(())
}

fn is_code_over(entity: &Value, other: &Value) -> bool {
    let is_code = matches!(entity.get("type").and_then(Value::as_str), Some("code" | "pre"));
    match (bounds(entity), bounds(other)) {
        (Some((start, end)), Some((from, to))) => is_code && from < end && to > start,
        _ => false,
    }
}

/// Returns the mentions and commands that the service finds in a text by itself.
pub(super) fn found(text: &str) -> Vec<Value> {
    let units: Vec<char> = text.chars().collect();
    let is_name = |at: usize| units.get(at).is_some_and(|unit| unit.is_ascii_alphanumeric() || *unit == '_');
    let before = |at: usize| at.checked_sub(1).and_then(|at| units.get(at)).copied();
    let mut entities = Vec::new();
    let (mut at, mut offset) = (0, 0);
    while let Some(unit) = units.get(at) {
        let is_start = !before(at).is_some_and(|before| before.is_alphanumeric() || matches!(before, '_' | '/' | '@'));
        let kind = match unit {
            '@' if is_start && is_name(at + 1) => Some("mention"),
            '/' if is_start && is_name(at + 1) => Some("bot_command"),
            _ => None,
        };
        let Some(kind) = kind else {
            offset += unit.len_utf16();
            at += 1;
            continue;
        };
        let mut end = at + 1;
        while is_name(end) || (kind == "bot_command" && units.get(end) == Some(&'@') && is_name(end + 1)) {
            end += 1;
        }
        // All characters are ASCII.
        let length = end - at;
        entities.push(json!({"type": kind, "offset": offset, "length": length}));
        (at, offset) = (end, offset + length);
    }
    entities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_and_commands_are_found_with_offsets_in_utf16() {
        let found = found("😀 @ada /stop@team_bot a@b.org @\u{2060}bob");
        assert_eq!(
            found,
            [
                json!({"type": "mention", "offset": 3, "length": 4}),
                json!({"type": "bot_command", "offset": 8, "length": 14})
            ]
        );
    }

    #[test]
    fn a_text_that_is_too_long_or_an_entity_out_of_bounds_is_refused() {
        let error = |text: &str, entities| checked(text, entities, 4, "message").unwrap_err().description;
        assert_eq!(error("12345", None), "Bad Request: message is too long");
        assert!(error("😀", Some(json!([{"type": "bold", "offset": 0, "length": 1}]))).contains("middle of a UTF-16"));
        assert!(error("x", Some(json!([{"type": "bold", "offset": 0, "length": 2}]))).contains("out of bounds"));
        assert!(checked("😀😀", None, 4, "message").is_ok());
    }
}
