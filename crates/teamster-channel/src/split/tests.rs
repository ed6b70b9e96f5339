use proptest::prelude::*;

use super::fence::Fence;
use super::*;

const UNITS: [TextUnit; 3] = [TextUnit::Chars, TextUnit::Utf16, TextUnit::Bytes];

fn chars(text: &str, max: usize) -> Vec<String> {
    split(text, TextLimit { max, unit: TextUnit::Chars })
}

/// Returns the text without whitespace, borders of code blocks and escapes.
fn content(texts: &[String]) -> String {
    let mut open = None;
    let mut content = String::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        let was_open = open.is_some();
        open = Fence::after(open, line);
        if was_open == open.is_some() {
            content.extend(line.chars().filter(|character| !character.is_whitespace() && *character != '\\'));
        }
    }
    content
}

fn is_balanced(part: &str) -> bool {
    part.lines().fold(None, Fence::after).is_none()
}

fn check(text: &str, max: usize) {
    for unit in UNITS {
        let parts = split(text, TextLimit { max, unit });
        for part in &parts {
            assert!(unit.length(part) <= max, "{} > {max} {unit:?}: {part:?}\nof {text:?}", unit.length(part));
            assert!(!part.trim().is_empty(), "empty part of {text:?}");
            assert!(is_balanced(part), "unbalanced: {part:?}\nof {text:?}");
        }
        let before = content(&[normalized(text, max / 4, unit)]);
        assert_eq!(content(&parts), before, "{unit:?} {max} {text:?}\n{parts:#?}");
    }
}

#[test]
fn a_short_text_is_one_part() {
    assert_eq!(chars("hello\n", 100), ["hello"]);
    assert_eq!(chars("", 100), Vec::<String>::new());
    assert_eq!(chars(" \n\n\t\n", 100), Vec::<String>::new());
}

#[test]
fn a_text_ends_at_a_paragraph_then_at_a_line_then_at_a_word() {
    let paragraphs = format!("{}\n\n{}", "a".repeat(40), "b b ".repeat(12));
    assert_eq!(chars(&paragraphs, 64), ["a".repeat(40), "b b ".repeat(12).trim().to_owned()]);
    let lines = format!("{}\n{}", "a".repeat(20), "b ".repeat(25));
    assert_eq!(chars(&lines, 64)[0], "a".repeat(20));
    let words = "word ".repeat(30);
    assert!(chars(&words, 64).iter().all(|part| part.split(' ').all(|word| word == "word")));
}

#[test]
fn a_code_block_is_closed_and_opened_again_within_the_limit() {
    let code = format!("before\n\n```rust\n{}```\nafter", "let x = 1;\n".repeat(20));
    let parts = chars(&code, 80);
    assert!(parts.len() > 3);
    for part in &parts[1..parts.len() - 1] {
        assert!(part.starts_with("```rust\n") && part.ends_with("\n```"), "{part}");
    }
    check(&code, 80);
}

#[test]
fn an_unclosed_block_is_closed() {
    assert_eq!(chars("```\ncode", 100), ["```\ncode\n```"]);
    check(&format!("```python\n{}", "x".repeat(500)), 70);
}

#[test]
fn long_lines_long_info_strings_and_long_markers_fit() {
    check(&format!("```{}\n{}\n```", "i".repeat(3_000), "x".repeat(3_000)), 100);
    check(&format!("```rust {}\n{}\n```", "i".repeat(20), "x".repeat(3_000)), 100);
    check(&"`".repeat(1_000), 64);
    check(&format!("```\n{}\nx\n```", "`".repeat(200)), 64);
    check(&format!("~~~a\n```\n{}\n~~~", "y ".repeat(100)), 64);
    check(&format!("{}\nx\n{}", "`".repeat(17), "`".repeat(17)), 64);
}

#[test]
fn a_cut_never_makes_a_border_of_a_code_block() {
    // Each length moves the backticks over the limit.
    for length in 40..70 {
        check(&format!("{} ```not a border {}", "a".repeat(length), "b".repeat(100)), 64);
        check(&format!("```a`{} tail", "b".repeat(length + 40)), 64);
        check(&format!("```\n{}``` x{}\n```", "c".repeat(length), "d".repeat(100)), 64);
        check(&format!("```\n```{}{}\n```", " ".repeat(length), "e".repeat(100)), 64);
    }
}

#[test]
fn graphemes_stay_whole() {
    let family = "👨‍👩‍👧‍👦";
    let parts = split(&family.repeat(40), TextLimit { max: 64, unit: TextUnit::Utf16 });
    assert!(parts.iter().all(|part| part.graphemes(true).all(|grapheme| grapheme == family)));
    check(&format!("e{}", "\u{301}".repeat(1_000)), 64);
    check(&"🇩🇪".repeat(100), 64);
}

#[test]
fn the_closing_line_after_a_split_makes_no_empty_block() {
    for lines in 1..30 {
        let code = format!("```\n{}```", "12345678\n".repeat(lines));
        for part in chars(&code, 64) {
            assert!(part.contains("12345678"), "{part:?}");
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,90}",
        Just("```".to_owned()),
        Just("```rust".to_owned()),
        Just("~~~~ info".to_owned()),
        Just("~~~~".to_owned()),
        Just("  ```".to_owned()),
        Just(String::new()),
        Just("👨‍👩‍👧‍👦ä€".to_owned()),
        "[`~]{1,20}",
        "\\PC{0,60}",
        "[a-z]{60,200}",
    ];
    let line = proptest::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat());
    proptest::collection::vec(line, 0..25).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn parts_fit_are_balanced_and_keep_the_content(text in text(), max in 64_usize..300) {
        check(&text, max);
    }
}
