use std::time::{Duration, Instant};

use anstyle::Style;
use insta::assert_snapshot;
use proptest::prelude::*;

use super::super::style::{BOLD, DIM};
use super::code_block::CODE;
use super::*;

/// Formats a text that arrives in parts.
fn lines(parts: &[&str], width: usize) -> Vec<Printable> {
    let mut markdown = Markdown::default();
    let mut lines: Vec<_> = parts.iter().flat_map(|part| markdown.push(&Printable::prose(part), width)).collect();
    lines.extend(markdown.finish(width));
    lines
}

fn plain(text: &str, width: usize) -> String {
    let lines = lines(&[text], width);
    lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Formats a text with names for its styles.
fn styled(text: &str) -> String {
    let mut shown: String = Printable::join(lines(&[text], 80), "\n").as_str().to_owned();
    for (style, name) in
        [(BOLD, "b"), (CODE, "c"), (DIM, "d"), (Style::new().italic(), "i"), (Style::new().strikethrough(), "s")]
    {
        shown = shown.replace(&style.to_string(), &format!("<{name}>"));
    }
    shown.replace("\u{1b}[0m", "</>")
}

#[test]
fn marks_are_replaced_by_styles() {
    for (text, expected) in [
        ("plain text", "plain text"),
        ("some **bold** and *italic* text", "some <b>bold</> and <i>italic</> text"),
        ("use `a*b*` and ``c`d``.", "use <c>a*b*</> and <c>c`d</>."),
        ("~~gone~~", "<s>gone</>"),
        ("# Title\ntext", "<b>Title</>\ntext"),
        ("Title\n===\ntext", "<b>Title</>\ntext"),
        ("#hash", "#hash"),
        ("[docs](https://docs.rs)", "docs<d> (https://docs.rs)</>"),
        ("<https://docs.rs>", "https://docs.rs"),
        ("![alt](a.png \"Title\")", "alt<d> (a.png \"Title\")</>"),
        ("a<br>b", "a<br>b"),
        ("```\nlet **a** = `b`;\n```\nafter", "<d>```</>\n<c>let **a** = `b`;</>\n<d>```</>\nafter"),
    ] {
        assert_eq!(styled(text), expected, "{text:?}");
    }
}

#[test]
fn text_that_only_looks_like_markup_is_kept() {
    for text in [
        "f(**kwargs)",
        "src/**/*.rs",
        "int **p",
        "**never closed",
        "2 ** 3 ** 4",
        "`open",
        "``",
        "snake_case_name",
        "a * b",
        "[not a link]",
        "[a]: https://x.y",
        "x < y && y > z",
        "| no | table |",
        "&unknown;",
        "1",
        "~",
        "~~",
    ] {
        assert_eq!(plain(text, 80), text, "{text:?}");
    }
    assert_eq!(plain("**never closed\nnext", 80), "**never closed\nnext");
}

#[test]
fn code_is_verbatim() {
    for text in ["~~~\n**a**\n~~~", "````\n```\n````", "```\nopen", "    indented **a**", "```\n\n\ta  b\n\n```"] {
        assert_eq!(plain(text, 80), text, "{text:?}");
    }
    assert_eq!(plain("- a\n\n  ```sh\n  x  y\n  ```\n", 80), "• a\n\n  ```sh\n  x  y\n  ```");
}

#[test]
fn blocks_keep_their_structure() {
    let text =
        "Intro:\n- one\n  - nested\n- [x] done\n- [ ] open\n\n3. three\n4. four\n\n> quoted\n> **twice**\n\n---\nend";
    assert_snapshot!(plain(text, 40), @r"
    Intro:
    • one
      • nested
    • ☑ done
    • ☐ open

    3. three
    4. four

    │ quoted
    │ twice

    ────────────────────────────────────────
    end
    ");
}

#[test]
fn prose_is_wrapped_with_its_indentation() {
    assert_snapshot!(plain("- a list item that is **too long** for one line\n\n> and a quotation that is too long", 24), @r"
    • a list item that is
      too long for one line

    │ and a quotation that
    │ is too long
    ");
    assert_eq!(plain("漢字漢字漢字漢字漢字", 16), "漢字漢字漢字漢字\n漢字");
}

#[test]
fn a_table_is_aligned_or_becomes_a_list_where_it_does_not_fit() {
    let table = "| Name | Number |\n|---|---:|\n| one | 1 |\n| `two` | 22 |\n";
    assert_snapshot!(plain(table, 40), @r"
    Name │ Number
    ─────┼───────
    one  │      1
    two  │     22
    ");
    let wide = "| A column | Another column |\n|---|---|\n| some long text here | other long text there |\n";
    assert_snapshot!(plain(wide, 30), @r"
    A column       │ Another
                   │ column
    ───────────────┼──────────────
    some long text │ other long
    here           │ text there
    ");
    assert_snapshot!(plain(wide, 20), @r"
    A column: some long
    text here
    Another column:
    other long text
    there
    ");
}

#[test]
fn an_open_block_is_shown_until_it_is_finished() {
    let mut markdown = Markdown::default();
    let mut push = |text: &'static str| {
        let finished = markdown.push(&text.into(), 80);
        let text = |lines: Vec<Printable>| Printable::join(lines, "|").without_styles().as_str().to_owned();
        (text(finished), text(markdown.tail(80)))
    };
    let both = |finished: &str, tail: &str| (finished.to_owned(), tail.to_owned());
    assert_eq!(push("A **bo"), both("", "A **bo"));
    assert_eq!(push("ld** word\n"), both("", "A bold word"));
    assert_eq!(push("\n- one\n"), both("A bold word", "|• one"));
    assert_eq!(push("- two"), both("", "|• one|• two"));
    assert_eq!(push("\n"), both("|• one", "• two"));
    assert_eq!(push("```\nlet"), both("• two|```", "let"));
    assert_eq!(push(" a;\n```\nend"), both("let a;|```", "end"));
}

#[test]
fn decoded_entities_cannot_control_the_terminal() {
    for text in ["&#27;[2J", "[a](https://x/&#27;]0;x)", "`&#27;`", "![&#x9b;](x)", "a \u{1b}[2J"] {
        let shown = plain(text, 80);
        assert!(!shown.contains(['\u{1b}', '\u{9b}']), "{shown:?}");
    }
}

/// The characters that are not marks.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

proptest! {
    #[test]
    fn the_lines_do_not_depend_on_how_the_text_is_split(text in "([a-c*`#~>|_+.:(! \n-]|\\[|\\]|1|    |```|\n\n){0,30}", cut in 0_usize..40) {
        let (before, after) = text.split_at(text.floor_char_boundary(cut.min(text.len())));
        prop_assert_eq!(lines(&[before, after], 40), lines(&[&text], 40));
    }

    #[test]
    fn no_text_is_lost(text in "([a-cü漢1*`#~>|_+.:<=\"'(! \n-]|\\[|\\]|    |```|\n\n|\n- |\n> ){0,40}") {
        let (shown, text) = (letters(&plain(&text, 40)), letters(&text));
        let mut rest = shown.chars();
        prop_assert!(text.chars().all(|c| rest.any(|other| other == c)), "{} is not in {}", text, shown);
    }

    #[test]
    fn code_of_any_kind_is_verbatim(code in "[a-c*_`#&<> \\\\\\[\\]()|-]{0,20}", mark in "````|~~~~") {
        let text = format!("{mark}\n{code}\n{mark}");
        prop_assert_eq!(plain(&text, 20), text);
    }
}

#[test]
fn the_cost_of_a_long_text_is_proportional_to_its_length() {
    // The number of parsed bytes stands for the cost: an open block is never longer than the limit.
    let mut markdown = Markdown::default();
    for _ in 0..4000 {
        markdown.push(&"- an item\n  with a line **and** more\n".into(), 80);
        assert!(markdown.open.len() < 200, "{}", markdown.open.len());
    }
    markdown.push(&Printable::prose(&"x ".repeat(1 << 20)), 80);
    assert!(markdown.tail(80).len() < MAX_OPEN, "only the end of a long line is shown");
    markdown.finish(80);
    for _ in 0..4000 {
        markdown.push(&"> a quotation that does not end\n".into(), 80);
        assert!(markdown.open.len() <= MAX_OPEN + 100);
    }
}

#[test]
fn definitions_without_an_end_are_finished_in_parts() {
    let (mut markdown, mut lines) = (Markdown::default(), 0);
    let definition = "[a]: https://example.org/\n";
    for _ in 0..(4 * MAX_OPEN / definition.len()) {
        lines += markdown.push(&Printable::from(definition), 80).len();
        assert!(markdown.open.len() <= MAX_OPEN + definition.len());
    }
    assert_eq!(lines + markdown.finish(80).len(), 4 * MAX_OPEN / definition.len());
}

#[test]
fn a_long_block_that_is_not_finished_is_parsed_and_shown_in_bounded_time() {
    for unit in ["[a](", "[a](\n", "> *a\n", "| a ", "x\n"] {
        let (start, mut markdown, mut parsed) = (Instant::now(), Markdown::default(), 0);
        let mut lines = Vec::new();
        for delta in 0..(90_000 / unit.len()) {
            lines.extend(markdown.push(&Printable::prose(unit), 80));
            parsed += usize::from(markdown.parsed_at == markdown.open.len() && !markdown.open.is_empty());
            if delta % 20 == 0 {
                markdown.tail(80);
            }
        }
        lines.extend(markdown.finish(80));
        let shown: String = lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect();
        let letter = unit.chars().find(|c| c.is_alphabetic()).unwrap();
        assert_eq!(shown.matches(letter).count(), 90_000 / unit.len(), "{unit:?}");
        // Without a limit, each line is a parse, and each delta a layout.
        assert!(parsed < 2000, "{unit:?}: {parsed}");
        assert!(start.elapsed() < Duration::from_secs(20), "{unit:?}: {:?}", start.elapsed());
    }
}

#[test]
fn the_tail_is_laid_out_again_only_if_it_changes() {
    let mut markdown = Markdown::default();
    markdown.push(&"some text".into(), 80);
    markdown.tail(80);
    let laid_out = markdown.shown.as_ref().unwrap().at;
    assert_eq!(markdown.tail(80).len(), 1);
    assert_eq!(markdown.shown.as_ref().unwrap().at, laid_out);
    assert_eq!(markdown.tail(16).len(), 1);
    assert!(markdown.shown.as_ref().unwrap().at > laid_out, "the width has changed");
    markdown.push(&"\n\n".into(), 80);
    assert_eq!(markdown.tail(80), [], "finished lines are never shown twice");
}

#[test]
fn a_long_code_block_in_one_delta_costs_as_much_as_its_length() {
    let start = Instant::now();
    let text = format!("```\n{}```\n", "x\n".repeat(1 << 19));
    assert_eq!(lines(&[&text], 80).len(), (1 << 19) + 2);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
