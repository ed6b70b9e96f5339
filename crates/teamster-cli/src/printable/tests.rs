//! Whatever the text is, all of it is seen, and only it.

use proptest::prelude::*;

use super::fold::GUTTER;
use super::*;

/// Restores the original text: the inverse of [`Printable::exact`].
fn original(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((literal, escape)) = rest.split_once('⟦') {
        text.push_str(literal);
        let (code, after) = escape.split_once('⟧').unwrap();
        match code {
            "BEL" => text.push('\x07'),
            "TAB" => text.push('\t'),
            "LF" => text.push('\n'),
            "CR" => text.push('\r'),
            "ESC" => text.push('\x1b'),
            _ => match code.strip_prefix("U+") {
                Some(number) => text.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap()),
                None => text.push_str(&" ".repeat(code.strip_suffix(" spaces").unwrap().parse().unwrap())),
            },
        }
        rest = after;
    }
    text + rest
}

/// Returns whether a character is visible, by the standard library and the Unicode Standard, not by the tested tables.
fn is_seen(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_graphic();
    }
    let ignorable = [
        0xad..=0xad,
        0x34f..=0x34f,
        0x61c..=0x61c,
        0x115f..=0x1160,
        0x17b4..=0x17b5,
        0x180b..=0x180f,
        0x200b..=0x200f,
        0x202a..=0x202e,
        0x2060..=0x206f,
        0x3164..=0x3164,
        0xfe00..=0xfe0f,
        0xfeff..=0xfeff,
        0xffa0..=0xffa0,
        0xfff0..=0xfff8,
        0x1bca0..=0x1bca3,
        0x1d173..=0x1d17a,
        0xe0000..=0xe0fff,
    ];
    let is_ignorable =
        ignorable.iter().any(|range: &std::ops::RangeInclusive<u32>| range.contains(&u32::from(character)));
    !character.is_control() && !character.is_whitespace() && !is_ignorable
}

/// Asserts that every character is visible: no hidden blank, no mark without a letter.
fn assert_all_seen(shown: &str) {
    for character in shown.chars() {
        assert!(character == ' ' || is_seen(character), "{character:?} in {shown:?}");
        let is_unknown = !character.is_ascii() && character.escape_debug().len() > 1;
        assert!(!is_unknown || character.width() == Some(0), "{character:?} in {shown:?}");
    }
    assert!(!shown.contains("   ") && !shown.starts_with(' ') && !shown.ends_with(' '), "{shown:?}");
}

#[test]
fn every_character_is_visible_alone_and_in_context() {
    std::thread::scope(|scope| {
        for plane in 0..=16 {
            scope.spawn(move || {
                let characters = (plane << 16..=plane << 16 | 0xffff).filter_map(char::from_u32);
                // The others have no character yet, or private ones.
                let is_in_use = matches!(plane, 0..=3 | 14);
                characters.for_each(|character| assert_seen(character, is_in_use));
            });
        }
    });
}

fn assert_seen(character: char, is_in_use: bool) {
    let text = character.to_string();
    let alone = Printable::exact(&text).0;
    assert!(alone == text || alone.starts_with('⟦'), "{character:?} as {alone:?}");
    // A mark has no letter here.
    assert!(alone.chars().all(|c| c.is_ascii() || c.width().is_some_and(|columns| columns > 0)), "{alone:?}");
    assert_eq!(original(&alone), text);
    let prose = Printable::prose(&text).0;
    assert!(prose.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()), "{character:?} as {prose:?}");
    if is_in_use {
        let among = Printable::exact(&format!("a{text}{text}b")).0;
        assert_all_seen(&among);
        assert_eq!(original(&among), format!("a{text}{text}b"));
    } else {
        assert!(alone.starts_with('⟦'), "{character:?} as {alone:?}");
    }
}

#[test]
fn visible_characters_are_literal() {
    for text in
        ["cargo test -p a --all", "r'\\x1b[31m\\n'", "naïve", "nai\u{308}ve", "漢字", "हिन्दी", "Ελλάδα", "→ 🎉 ⟧ €"]
    {
        assert_eq!(Printable::exact(text).0, text);
    }
}

#[test]
fn characters_that_hide_reverse_or_imitate_text_are_escaped() {
    for (text, expected) in [
        ("a\u{202e}b\u{2066}c\u{200f}\u{61c}", "a⟦U+202E⟧b⟦U+2066⟧c⟦U+200F⟧⟦U+061C⟧"),
        ("a\u{200b}\u{200d}\u{feff}\u{fe0f}\u{e0041}\u{ad}", "a⟦U+200B⟧⟦U+200D⟧⟦U+FEFF⟧⟦U+FE0F⟧⟦U+E0041⟧⟦U+00AD⟧"),
        ("a\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}", "a⟦U+115F⟧⟦U+1160⟧⟦U+3164⟧⟦U+FFA0⟧⟦U+2800⟧"),
        ("a\u{a0}\u{3000}\u{2028}\u{85}\u{e000}\u{378}", "a⟦U+00A0⟧⟦U+3000⟧⟦U+2028⟧⟦U+0085⟧⟦U+E000⟧⟦U+0378⟧"),
        ("e\u{301}\u{301}\u{301}\u{301}", "e\u{301}\u{301}\u{301}⟦U+0301⟧"),
        ("/\u{338}\u{301}", "/⟦U+0338⟧⟦U+0301⟧"),
        ("a  b   c", "a  b⟦3 spaces⟧c"),
        (" a \nb ", "⟦U+0020⟧a⟦U+0020⟧⟦LF⟧b⟦U+0020⟧"),
        ("⟦ESC⟧\\x1b\x1b", "⟦U+27E6⟧ESC⟧\\x1b⟦ESC⟧"),
    ] {
        assert_eq!(Printable::exact(text).0, expected);
    }
}

#[test]
fn a_word_for_a_shell_is_one_word() {
    for (word, expected) in [
        ("67c9c3e6-c7de", "67c9c3e6-c7de"),
        ("a; rm -rf ~", "'a; rm -rf ~'"),
        ("$(x)'", r"'$(x)'\'''"),
        ("\x1b]52;c;eA==\x07", "'⟦ESC⟧]52;c;eA==⟦BEL⟧'"),
    ] {
        assert_eq!(Printable::shell_word(word).0, expected);
    }
}

#[test]
fn a_line_is_truncated_by_columns_and_no_escape_is_split() {
    let cut = |text: &str, room| Printable::exact(text).cut(room).0;
    assert_eq!(cut("abcdef", 6), "abcdef");
    assert_eq!(cut("abcdefg", 6), "abcde…");
    assert_eq!(cut("漢字漢字", 6), "漢字…");
    assert_eq!(cut("ab cdef", 4), "ab…");
    assert_eq!(cut("ab\x1b[31m", 6), "ab…");
    assert_eq!(cut("ab", 0), "");
}

#[test]
fn external_values_are_escaped_by_the_format_macro() {
    let (path, word) = (Path::new("a\nb"), UntrustedText::from("\u{202e}"));
    assert_eq!(printable!("{}: {} {:<3}|", path, &word, "x").0, "a⟦LF⟧b: ⟦U+202E⟧ x  |");
    let error = io::Error::other("one\n  two\x1b");
    assert_eq!(Printable::error(&error).0, "one two⟦ESC⟧");
}

proptest! {
    #[test]
    fn an_escaped_text_is_visible_and_can_be_restored(text in hostile()) {
        let shown = Printable::exact(&text).0;
        assert_all_seen(&shown);
        prop_assert_eq!(original(&shown), text);
    }

    #[test]
    fn wrapped_lines_fit_and_begin_with_the_prefix(text in hostile(), width in 0_usize..60) {
        let lines = folded("head: ".into(), &text, width);
        for (index, line) in lines.iter().enumerate() {
            let head = if index == 0 { "head: " } else { GUTTER };
            prop_assert!(line.0.starts_with(head), "{line:?}");
            prop_assert!(line.columns() <= width.max(24), "{line:?}");
            prop_assert!(line.0.chars().all(|c| c == ' ' || is_seen(c)), "{line:?}");
            prop_assert!(!line.0.ends_with(' ') || line.0 == "head: ", "{line:?}");
        }
        let joined: String = lines.iter().map(|line| line.0.strip_prefix(GUTTER).unwrap_or(&line.0)).collect();
        prop_assert_eq!(original(joined.strip_prefix("head: ").unwrap()), text);
    }

    #[test]
    fn escaping_does_not_depend_on_how_an_answer_is_split(pieces in prop::collection::vec(hostile(), 0..6)) {
        let shown: String = pieces.iter().map(|piece| Printable::prose(piece).0).collect();
        prop_assert_eq!(shown, Printable::prose(&pieces.concat()).0);
    }

    #[test]
    fn a_truncated_line_fits(line in hostile(), room in 0_usize..30) {
        prop_assert!(Printable::exact(&line).cut(room).columns() <= room);
    }
}

fn hostile() -> impl Strategy<Value = String> {
    let parts = [
        "\x1b]",
        "\x07",
        "\x1b\\",
        "\u{9b}",
        "\u{9d}",
        "\n",
        "\r\n",
        "\t",
        " ",
        "  ",
        "     ",
        "⟦",
        "⟧",
        "⟦ESC⟧",
        "\\x1b",
        "\u{202e}",
        "\u{200d}",
        "\u{301}",
        "e",
        "漢",
        "? Bash asks for leave",
    ];
    let part = prop_oneof![
        prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        "[ -~]{0,8}",
        any::<char>().prop_map(|character| character.to_string()),
    ];
    prop::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}
