//! Markdown and prompts as blocks, <https://docs.slack.dev/reference/block-kit/blocks/rich-text-block/>.
//!
//! A text is a `rich_text` block. Its elements are data: a text of an agent cannot mention a person or a group, end a block of code
//! or forge a link, whatever characters it has. The `text` beside it is what notifications show. There, `&`, `<` and `>` are
//! escaped, which is all that Slack parses.

use serde_json::{Map, Value, json};
use teamster_channel::{Button, ButtonStyle, Content, Entity, EntityKind, Formatted, formatted};

use crate::plain::escaped_to;

/// The beginning of the id of a button that needs a text of its author.
pub(crate) const TEXT_BUTTON: &str = "teamster:text:";

/// The beginning of the id of another button.
pub(crate) const BUTTON: &str = "teamster:press:";

/// The longest text of a notification, in characters. `chat.update` accepts 4,000.
const MAX_NOTIFICATION: usize = 3_000;

/// The most characters of a button that are shown.
const MAX_LABEL: usize = 75;

/// The largest number of buttons in a block.
const MAX_BUTTONS: usize = 25;

/// What a text without visible characters is shown as. The service refuses an empty one.
const EMPTY: &str = "…";

/// How characters are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent styles, as the service has them")]
struct Appearance<'a> {
    block: Block,
    bold: bool,
    italic: bool,
    strike: bool,
    code: bool,
    link: Option<&'a str>,
}

/// The block of characters, with the number of its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    #[default]
    Section,
    Quote(usize),
    Code(usize),
}

/// Returns Markdown as it is shown. It is never empty.
pub(crate) fn shown(markdown: &str) -> Formatted {
    let mut shown = formatted(markdown);
    if shown.text.trim().is_empty() {
        shown = Formatted { text: EMPTY.to_owned(), entities: Vec::new() };
    }
    shown
}

/// Returns the text of the notification and the block of a text.
pub(crate) fn rich_text(formatted: &Formatted) -> (String, Value) {
    let elements: Vec<Value> = blocks_of(&runs(formatted)).into_iter().filter_map(element).collect();
    (escaped_to(&formatted.text, MAX_NOTIFICATION), json!({"type": "rich_text", "elements": elements}))
}

/// Returns the buttons of a prompt.
pub(crate) fn buttons(content: &Content) -> Option<Value> {
    let Content::Prompt(prompt) = content else { return None };
    let buttons: Vec<_> = prompt.buttons.iter().take(MAX_BUTTONS).enumerate().map(button).collect();
    (!buttons.is_empty()).then(|| json!({"type": "actions", "elements": buttons}))
}

fn button((index, button): (usize, &Button)) -> Value {
    let kind = if button.takes_text { TEXT_BUTTON } else { BUTTON };
    let label: String = button.label.chars().take(MAX_LABEL).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), "button".into());
    // Each id is unique in its block.
    object.insert("action_id".to_owned(), format!("{kind}{index}").into());
    object.insert("text".to_owned(), json!({"type": "plain_text", "text": label, "emoji": false}));
    object.insert("value".to_owned(), button.token.as_str().into());
    let style = match button.style {
        ButtonStyle::Plain => None,
        ButtonStyle::Positive => Some("primary"),
        ButtonStyle::Negative => Some("danger"),
    };
    if let Some(style) = style {
        object.insert("style".to_owned(), style.into());
    }
    Value::Object(object)
}

/// Returns the text in pieces, each with one look.
fn runs(formatted: &Formatted) -> Vec<(Appearance<'_>, String)> {
    let mut runs: Vec<(Appearance<'_>, String)> = Vec::new();
    let mut offset = 0;
    for character in formatted.text.chars() {
        let look = appearance_at(offset, &formatted.entities);
        match runs.last_mut() {
            Some((last, text)) if *last == look => text.push(character),
            _ => runs.push((look, character.to_string())),
        }
        offset += character.len_utf16();
    }
    runs
}

fn appearance_at(offset: usize, entities: &[Entity]) -> Appearance<'_> {
    let mut look = Appearance::default();
    for (index, entity) in entities.iter().enumerate() {
        if !(entity.offset..entity.offset + entity.length).contains(&offset) {
            continue;
        }
        match &entity.kind {
            EntityKind::Bold => look.bold = true,
            EntityKind::Italic => look.italic = true,
            EntityKind::Strikethrough => look.strike = true,
            EntityKind::Code => look.code = true,
            EntityKind::TextLink { url } => look.link = Some(url),
            EntityKind::Blockquote if look.block == Block::Section => look.block = Block::Quote(index),
            EntityKind::Blockquote => {}
            // It ends a quote: a quote cannot contain a block.
            EntityKind::Pre { .. } => look.block = Block::Code(index),
        }
    }
    look
}

/// A block with its pieces.
type BlockRuns<'a> = (Block, Vec<(Appearance<'a>, String)>);

/// Groups pieces by their blocks. A block starts on a line of its own: the line breaks around it are dropped.
fn blocks_of<'a>(runs: &[(Appearance<'a>, String)]) -> Vec<BlockRuns<'a>> {
    let mut blocks: Vec<BlockRuns<'a>> = Vec::new();
    for (look, text) in runs {
        match blocks.last_mut() {
            Some((block, pieces)) if *block == look.block => pieces.push((*look, text.clone())),
            _ => blocks.push((look.block, vec![(*look, text.clone())])),
        }
    }
    let count = blocks.len();
    for (index, (_, pieces)) in blocks.iter_mut().enumerate() {
        if let Some((_, first)) = pieces.first_mut().filter(|_| index > 0) {
            *first = first.trim_start_matches('\n').to_owned();
        }
        if let Some((_, last)) = pieces.last_mut().filter(|_| index + 1 < count) {
            *last = last.trim_end_matches('\n').to_owned();
        }
        pieces.retain(|(_, text)| !text.is_empty());
    }
    blocks
}

fn element((block, pieces): BlockRuns<'_>) -> Option<Value> {
    if pieces.is_empty() {
        return None;
    }
    let kind = match block {
        Block::Section => "rich_text_section",
        Block::Quote(_) => "rich_text_quote",
        Block::Code(_) => "rich_text_preformatted",
    };
    let is_code = matches!(block, Block::Code(_));
    let elements: Vec<_> = pieces.into_iter().map(|(look, text)| inline(look, text, is_code)).collect();
    Some(json!({"type": kind, "elements": elements}))
}

fn inline(look: Appearance<'_>, text: String, is_code: bool) -> Value {
    let mut object = Map::new();
    match look.link {
        Some(url) => {
            object.insert("type".to_owned(), "link".into());
            object.insert("url".to_owned(), url.into());
        }
        None => _ = object.insert("type".to_owned(), "text".into()),
    }
    object.insert("text".to_owned(), text.into());
    let styles = [("bold", look.bold), ("italic", look.italic), ("strike", look.strike), ("code", look.code)];
    let style: Map<_, _> =
        styles.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name.to_owned(), true.into())).collect();
    if !style.is_empty() && !is_code {
        object.insert("style".to_owned(), Value::Object(style));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use teamster_channel::Prompt;

    use super::*;

    fn elements(markdown: &str) -> Value {
        rich_text(&shown(markdown)).1["elements"].clone()
    }

    fn section(elements: &Value) -> Value {
        json!([{"type": "rich_text_section", "elements": elements}])
    }

    #[test]
    fn markdown_is_elements_with_styles() {
        let text = |text: &str, style: Value| json!({"type": "text", "text": text, "style": style});
        let expected = json!([text("a", json!({"bold": true})), {"type": "text", "text": " "},
            text("b", json!({"italic": true})), {"type": "text", "text": " "}, text("c", json!({"code": true}))]);
        assert_eq!(elements("**a** *b* `c`"), section(&expected));
        let link = json!([{"type": "link", "url": "https://e.org", "text": "here"}]);
        assert_eq!(elements("[here](https://e.org)"), section(&link));
    }

    #[test]
    fn code_and_quotes_are_blocks_of_their_own() {
        let shown = elements("before\n\n```rust\nlet x = \"```\";\n```\n\nafter\n\n> quoted");
        let kinds: Vec<_> = shown.as_array().unwrap().iter().map(|element| element["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["rich_text_section", "rich_text_preformatted", "rich_text_section", "rich_text_quote"]);
        assert_eq!(shown[1]["elements"], json!([{"type": "text", "text": "let x = \"```\";"}]));
        assert_eq!(shown[0]["elements"][0]["text"], "before");
        assert_eq!(elements("```\na\n```\n```\nb\n```").as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_text_mentions_no_person_and_forges_no_link_in_the_notification() {
        let (text, _) = rich_text(&shown("<!channel> <@U1> <https://evil.org|https://good.org> & @here"));
        assert!(!text.contains(['<', '>']) && text.contains("&amp;"), "{text}");
    }

    #[test]
    fn buttons_have_ids_of_their_own_and_show_what_they_do() {
        let button = |label: &str, style, takes_text| Button {
            label: label.to_owned(),
            token: "t".to_owned(),
            style,
            takes_text,
        };
        let buttons_of = vec![
            button(&"x".repeat(100), ButtonStyle::Positive, false),
            button("Deny", ButtonStyle::Negative, false),
            button("Answer", ButtonStyle::Plain, true),
        ];
        let prompt = Content::Prompt(Prompt { id: "p".to_owned(), text: String::new(), buttons: buttons_of });
        let block = buttons(&prompt).unwrap();
        let ids: Vec<_> =
            block["elements"].as_array().unwrap().iter().map(|one| one["action_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["teamster:press:0", "teamster:press:1", "teamster:text:2"]);
        assert_eq!(
            (&block["elements"][0]["style"], &block["elements"][1]["style"]),
            (&json!("primary"), &json!("danger"))
        );
        assert_eq!(block["elements"][0]["text"]["text"].as_str().unwrap().len(), MAX_LABEL);
        assert_eq!(buttons(&Content::Notice { text: String::new() }), None);
    }

    proptest! {
        #[test]
        fn any_markdown_is_a_block_that_is_not_empty_and_loses_no_visible_character(markdown in "[a-z*_`>#\\-\\[\\]() \n😀<&]{0,200}") {
            let shown = shown(&markdown);
            let (text, block) = rich_text(&shown);
            let elements = block["elements"].as_array().unwrap();
            prop_assert!(!text.is_empty() && !elements.is_empty());
            let mut all = String::new();
            for piece in elements.iter().flat_map(|element| element["elements"].as_array().unwrap()) {
                prop_assert!(piece["text"].as_str().is_some_and(|text| !text.is_empty()));
                all.push_str(piece["text"].as_str().unwrap());
            }
            let visible = |text: &str| text.replace('\n', "");
            prop_assert_eq!(visible(&all), visible(&shown.text));
        }
    }
}
