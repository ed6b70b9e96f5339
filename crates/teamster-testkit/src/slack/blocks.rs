//! The rules of blocks, <https://docs.slack.dev/reference/block-kit/blocks>.

use std::collections::BTreeSet;

use serde_json::Value;

use super::error::ApiError;

/// The largest number of blocks of a message.
const MAX_BLOCKS: usize = 50;

/// The longest text of a section.
const MAX_SECTION: usize = 3_000;

/// The longest text of all Markdown blocks.
const MAX_MARKDOWN: usize = 12_000;

/// The longest text of all blocks. It is not documented; users report it.
const MAX_ALL: usize = 13_200;

/// The longest label, value and id of a button.
const MAX_LABEL: usize = 75;
const MAX_VALUE: usize = 2_000;
const MAX_ID: usize = 255;

/// Checks the blocks of a message.
pub(super) fn checked(blocks: &Value) -> Result<(), ApiError> {
    let blocks = blocks.as_array().ok_or_else(|| ApiError::new("invalid_blocks_format"))?;
    if blocks.len() > MAX_BLOCKS {
        return Err(wrong("no more than 50 items allowed"));
    }
    let mut markdown = 0;
    let mut all = 0;
    for block in blocks {
        check_block(block)?;
        let length = length_of(block);
        all += length;
        markdown += if kind(block) == "markdown" { length } else { 0 };
    }
    if all > MAX_ALL || markdown > MAX_MARKDOWN {
        return Err(ApiError::new("msg_blocks_too_long"));
    }
    Ok(())
}

fn check_block(block: &Value) -> Result<(), ApiError> {
    match kind(block) {
        "section" => check_text(block.get("text").unwrap_or(&Value::Null), MAX_SECTION),
        "markdown" => require(block.get("text").and_then(Value::as_str).is_some_and(|text| !text.is_empty()), "text"),
        "rich_text" => check_rich_text(block),
        "actions" => check_actions(block),
        "header" => check_text(block.get("text").unwrap_or(&Value::Null), 150),
        "context" | "divider" | "image" | "input" | "file" => Ok(()),
        other => Err(wrong(&format!("unsupported type: {other}"))),
    }
}

fn check_text(text: &Value, max: usize) -> Result<(), ApiError> {
    require(matches!(kind(text), "plain_text" | "mrkdwn"), "type of a text")?;
    let length = text.get("text").and_then(Value::as_str).map_or(0, |text| text.chars().count());
    require((1..=max).contains(&length), "length of a text")
}

fn check_rich_text(block: &Value) -> Result<(), ApiError> {
    let elements = list(block, "elements")?;
    require(!elements.is_empty(), "elements of a rich text")?;
    for element in elements {
        let is_known = matches!(
            kind(element),
            "rich_text_section" | "rich_text_list" | "rich_text_preformatted" | "rich_text_quote"
        );
        require(is_known, "kind of an element")?;
        let pieces = list(element, "elements")?;
        require(!pieces.is_empty(), "elements of an element")?;
        for piece in pieces {
            let text = |name: &str| piece.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            match kind(piece) {
                "text" => require(text("text"), "text of an element")?,
                "link" => require(text("url"), "url of a link")?,
                "rich_text_section" | "user" | "channel" | "emoji" | "usergroup" | "broadcast" | "date" => {}
                other => return Err(wrong(&format!("unsupported element: {other}"))),
            }
        }
    }
    Ok(())
}

fn check_actions(block: &Value) -> Result<(), ApiError> {
    let elements = list(block, "elements")?;
    require((1..=25).contains(&elements.len()), "number of elements")?;
    let mut ids = BTreeSet::new();
    for element in elements.iter().filter(|element| kind(element) == "button") {
        let text = |name: &str| element.get(name).and_then(Value::as_str).unwrap_or_default();
        check_text(element.get("text").unwrap_or(&Value::Null), MAX_LABEL)?;
        require(text("value").chars().count() <= MAX_VALUE, "length of a value")?;
        require((1..=MAX_ID).contains(&text("action_id").chars().count()), "length of an id")?;
        require(matches!(text("style"), "" | "primary" | "danger"), "style of a button")?;
        require(ids.insert(text("action_id").to_owned()), "action_id is not unique")?;
    }
    Ok(())
}

/// Returns the number of characters of all texts.
fn length_of(value: &Value) -> usize {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if name == "text" => text.chars().count(),
                other => length_of(other),
            })
            .sum(),
        Value::Array(list) => list.iter().map(length_of).sum(),
        _ => 0,
    }
}

fn kind(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a Vec<Value>, ApiError> {
    value.get(name).and_then(Value::as_array).ok_or_else(|| wrong(&format!("missing field: {name}")))
}

fn require(is_true: bool, what: &str) -> Result<(), ApiError> {
    if is_true { Ok(()) } else { Err(wrong(&format!("invalid {what}"))) }
}

fn wrong(reason: &str) -> ApiError {
    ApiError::detailed("invalid_blocks", reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_keep_the_documented_limits() {
        let section =
            |length: usize| json!({"type": "section", "text": {"type": "mrkdwn", "text": "x".repeat(length)}});
        assert_eq!(checked(&json!([section(3_000)])), Ok(()));
        assert_eq!(checked(&json!([section(3_001)])).unwrap_err().code, "invalid_blocks");
        assert_eq!(checked(&json!(vec![section(3_000); 5])).unwrap_err().code, "msg_blocks_too_long");
        assert_eq!(checked(&json!(vec![json!({"type": "divider"}); 51])).unwrap_err().code, "invalid_blocks");
        let button = json!({"type": "button", "action_id": "a", "text": {"type": "plain_text", "text": "x"}});
        let twice = json!([{"type": "actions", "elements": [button, button]}]);
        assert_eq!(checked(&twice).unwrap_err().code, "invalid_blocks");
        let empty = json!([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements":
            [{"type": "text", "text": ""}]}]}]);
        assert_eq!(checked(&empty).unwrap_err().code, "invalid_blocks");
    }
}
