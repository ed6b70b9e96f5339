//! Texts and entities are what the service accepts, whatever the Markdown is.

use proptest::prelude::*;
use teamster_channel::{Entity, EntityKind};

use super::*;

/// Returns the ranges as `kind:text`.
fn ranges(formatted: &Formatted) -> Vec<String> {
    let units: Vec<u16> = formatted.text.encode_utf16().collect();
    let of = |entity: &Entity| {
        let range = &units[entity.offset..entity.offset + entity.length];
        let kind = match &entity.kind {
            EntityKind::Pre { language } => format!("pre({language})"),
            EntityKind::TextLink { url } => format!("link({url})"),
            other => format!("{other:?}").to_lowercase(),
        };
        format!("{kind}:{}", String::from_utf16(range).unwrap())
    };
    formatted.entities.iter().map(of).collect()
}

fn check(markdown: &str, text: &str, expected: &[&str]) {
    let formatted = format(markdown, MAX_TEXT);
    assert_eq!(
        (formatted.text.as_str(), ranges(&formatted)),
        (text, expected.iter().map(|x| (*x).to_owned()).collect())
    );
}

#[test]
fn markdown_is_a_text_with_entities() {
    check("**a** *b* ~~c~~ `d`", "a b c d", &["bold:a", "italic:b", "strikethrough:c", "code:d"]);
    check("# Title\ntext", "Title\n\ntext", &["bold:Title"]);
    check("a\n\n```rust\nlet x;\n```\nb", "a\n\nlet x;\n\nb", &["pre(rust):let x;"]);
    check("- a\n- b\n  - c\n\n1. x\n2. y", "• a\n• b\n  • c\n\n1. x\n2. y", &[]);
    check("> q\n> r\n\nz", "q\nr\n\nz", &["blockquote:q\nr"]);
    check("[t](https://e.org/x)", "t", &["link(https://e.org/x):t"]);
    check("😀 **😀**", "😀 😀", &["bold:😀"]);
    check("a\nb  \nc", "a\nb\nc", &[]);
    check(
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        &["pre():| a | b |\n|---|---|\n| 1 | 2 |"],
    );
    check("<b>x</b> & y", "<b>x</b> & y", &[]);
    check(r"\*no\* @x", "*no* @\u{2060}x", &[]);
}

#[test]
fn code_is_never_inside_of_other_formatting() {
    check("**a `b` c**", "a b c", &["bold:a ", "code:b", "bold:c"]);
    check("[a `b`](https://e.org)", "a b", &["link(https://e.org):a b"]);
    check("> `x`", "x", &["blockquote:x", "code:x"]);
}

#[test]
fn a_text_mentions_no_person() {
    for markdown in
        ["@alice hi", "hi @alice", "*@*alice", "\\@alice", "[@alice](https://e.org)", "@**alice**", "(@alice)"]
    {
        let text = format(markdown, MAX_TEXT).text;
        assert!(!text.contains("@alice"), "{text}");
    }
    check("[x](tg://user?id=5)", "x (tg://user?id=5)", &[]);
    check("mail a@b.org", "mail a@b.org", &[]);
    check("`@alice`", "@alice", &["code:@alice"]);
    let long = "@alice ".repeat(580);
    assert!(!format(&long, MAX_TEXT).text.contains("@a"), "neither does a text that is too long with its marks");
}

#[test]
fn an_invisible_text_is_shown_as_something() {
    for markdown in ["", " \n ", "\u{0}", "****"] {
        assert!(!format(markdown, MAX_TEXT).text.trim().is_empty());
    }
}

#[test]
fn a_text_that_does_not_fit_is_shown_as_it_is_written_and_a_caption_is_cut() {
    let long = format!("![]({})", "x".repeat(4_090));
    let formatted = format(&long, MAX_TEXT);
    assert!(utf16_length(&formatted.text) <= MAX_TEXT && formatted.text.contains("xxx"));
    let caption = format(&"word ".repeat(500), MAX_CAPTION);
    assert_eq!(utf16_length(&caption.text), MAX_CAPTION);
    assert!(caption.text.ends_with('…'));
}

/// Checks what the service demands.
fn assert_valid(formatted: &Formatted, max: usize) {
    let units: Vec<u16> = formatted.text.encode_utf16().collect();
    assert!(units.len() <= max && !formatted.text.trim().is_empty(), "{formatted:?}");
    assert!(formatted.entities.len() <= 100);
    let is_low = |at: usize| units.get(at).is_some_and(|unit| (0xdc00..0xe000).contains(unit));
    for (index, entity) in formatted.entities.iter().enumerate() {
        let (start, end) = (entity.offset, entity.offset + entity.length);
        assert!(entity.length > 0 && end <= units.len(), "{formatted:?}");
        assert!(!is_low(start) && !is_low(end), "a character is cut: {formatted:?}");
        for other in formatted.entities.iter().skip(index + 1) {
            let (from, to) = (other.offset, other.offset + other.length);
            let is_apart = from >= end || to <= start;
            let is_within = (from >= start && to <= end) || (start >= from && end <= to);
            assert!(is_apart || is_within, "overlap: {formatted:?}");
            let is_code = |kind: &EntityKind| matches!(kind, EntityKind::Code | EntityKind::Pre { .. });
            let has_code = is_code(&entity.kind) || is_code(&other.kind);
            let has_quote = [entity, other].iter().any(|one| one.kind == EntityKind::Blockquote);
            assert!(is_apart || !has_code || has_quote, "code in another range: {formatted:?}");
        }
    }
}

/// Pieces of Markdown, so that random texts have structure.
fn markdown() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("**"),
        Just("_"),
        Just("~~"),
        Just("`"),
        Just("```"),
        Just("\n"),
        Just("\n\n"),
        Just("> "),
        Just("- "),
        Just("1. "),
        Just("# "),
        Just("[a]("),
        Just("https://e.org"),
        Just(")"),
        Just("![x]("),
        Just("| a | b |\n|-|-|\n"),
        Just("😀"),
        Just("e\u{301}"),
        Just(" "),
        Just("@alice"),
        Just("<b>"),
        Just("&amp;"),
        Just("\\"),
        Just("word"),
        Just("    "),
        Just("---\n"),
        Just("\u{202e}"),
        Just("@"),
    ];
    prop_oneof![proptest::collection::vec(pieces, 0..60).prop_map(|pieces| pieces.concat()), any::<String>()]
}

proptest! {
    #[test]
    fn any_markdown_is_accepted_by_the_service_and_mentions_no_person(markdown in markdown()) {
        let formatted = format(&markdown, MAX_TEXT);
        assert_valid(&formatted, MAX_TEXT);
        assert_valid(&format(&markdown, 64), 64);
        let outside: String = outside_of_code(&formatted);
        prop_assert!(!outside.replace("word@alice", "").contains(" @alice"), "{:?}", formatted);
        prop_assert!(!outside.starts_with("@alice"), "{:?}", formatted);
    }
}

/// Returns the text with spaces instead of code.
fn outside_of_code(formatted: &Formatted) -> String {
    let mut units: Vec<u16> = formatted.text.encode_utf16().collect();
    for entity in &formatted.entities {
        if matches!(entity.kind, EntityKind::Code | EntityKind::Pre { .. }) {
            for unit in units.iter_mut().skip(entity.offset).take(entity.length) {
                *unit = u16::from(b'.');
            }
        }
    }
    String::from_utf16_lossy(&units)
}
