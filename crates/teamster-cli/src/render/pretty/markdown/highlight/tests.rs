use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::Markdown;
use super::*;

const LANGUAGES: [&str; 14] = [
    "rust",
    "bash",
    "css",
    "dockerfile",
    "html",
    "javascript",
    "json",
    "markdown",
    "python",
    "toml",
    "typescript",
    "yaml",
    "diff",
    "",
];

/// Formats a text that arrives in parts.
fn lines(parts: &[&str]) -> Vec<Printable> {
    let mut markdown = Markdown::default();
    let mut lines: Vec<_> = parts.iter().flat_map(|part| markdown.push(&Printable::prose(part), 80)).collect();
    lines.extend(markdown.finish(80));
    lines
}

fn plain(lines: &[Printable]) -> Vec<String> {
    lines.iter().map(|line| line.without_styles().as_str().to_owned()).collect()
}

/// Formats a block of code, with the first letters of its colors.
fn shown(language: &str, code: &str) -> String {
    let lines = lines(&[&format!("```{language}\n{code}\n```")]);
    let mut shown = Printable::join(lines.get(1..lines.len() - 1).unwrap().to_vec(), "\n").as_str().to_owned();
    for (style, name) in [
        (AnsiColor::Magenta.on_default(), "m"),
        (AnsiColor::Green.on_default(), "g"),
        (AnsiColor::Red.on_default(), "r"),
        (AnsiColor::Blue.on_default(), "b"),
        (AnsiColor::Cyan.on_default(), "c"),
        (DIM, "d"),
    ] {
        shown = shown.replace(&style.to_string(), &format!("<{name}>"));
    }
    shown.replace("\u{1b}[0m", "</>")
}

#[test]
fn code_of_a_known_language_has_colors() {
    for (language, code, expected) in [
        ("rust", "let a = f(\"x\"); // b", "<m>let</> a = <b>f</>(<g>\"x\"</>); <d>// b</>"),
        ("rust,ignore", "fn", "<m>fn</>"),
        ("PY title=a.py", "1", "<c>1</>"),
        ("rs{1,2}", "\"a\nb\"", "<g>\"a</>\n<g>b\"</>"),
        ("json", "{\"a\": [true]}", "{<b>\"a\"</>: [<c>true</>]}"),
        ("sh", "git log -n \"$A\" # b", "<b>git</> log <b>-n</> <g>\"</><c>$A</><g>\"</> <d># b</>"),
        ("diff", "@@ 1\n+a\n-b\n c", "<c>@@ 1</>\n<g>+a</>\n<r>-b</>\n c"),
        ("klingon", "fn", "<c>fn</>"),
        ("", "fn", "<c>fn</>"),
    ] {
        assert_eq!(shown(language, code), expected, "{language}");
    }
}

#[test]
fn a_string_or_a_comment_of_several_lines_keeps_its_color() {
    assert_eq!(shown("python", "'''one\n\ntwo\nthree'''\nx"), "<g>'''one</>\n\n<g>two</>\n<g>three'''</>\nx");
    assert_eq!(shown("rust", "/* one\n\ntwo\nthree */\nx"), "<d>/* one</>\n\n<d>two</>\n<d>three */</>\nx");
}

#[test]
fn code_in_a_list_has_colors() {
    let lines = lines(&["- a\n\n  ```rust\n  fn\n  ```\n"]);
    assert!(lines.iter().any(|line| line.as_str() == "  \u{1b}[35mfn\u{1b}[0m"), "{lines:?}");
}

#[test]
fn an_incomplete_line_has_colors() {
    let mut markdown = Markdown::default();
    markdown.push(&"```rust\n/* a\nb */ let".into(), 80);
    assert_eq!(Printable::join(markdown.tail(80), "|").as_str(), "\u{1b}[2mb */\u{1b}[0m \u{1b}[35mlet\u{1b}[0m");
}

#[test]
fn long_lines_and_long_strings_have_one_color() {
    let mut highlighter = Highlighter::of_info("rust").unwrap();
    assert_eq!(highlighter.line(&"x".repeat(MAX_LINE + 1)), None);
    assert!(highlighter.line("fn").is_some());
    assert!(highlighter.line("\"").is_some());
    let line = "x".repeat(MAX_LINE);
    let colored = (0..10).take_while(|_| highlighter.line(&line).is_some()).count();
    assert!(colored < 10);
    assert_eq!(highlighter.line("fn"), None);
}

#[test]
fn the_cost_of_a_block_is_limited_whatever_its_length() {
    for line in ["a", "\""] {
        let mut highlighter = Highlighter::of_info("rust").unwrap();
        let mut before = 0;
        for _ in 0..6_000 {
            highlighter.line(line);
            assert!(highlighter.before.len() <= MAX_BEFORE);
            assert!(highlighter.lexed == usize::MAX || highlighter.lexed - before <= MAX_BEFORE + MAX_LINE + 1);
            before = highlighter.lexed;
        }
        assert!(before == usize::MAX || before <= MAX_LEXED + MAX_BEFORE + MAX_LINE + 1, "{before}");
    }
}

#[test]
fn a_long_block_has_colors_to_its_end() {
    let function = "fn name(a: usize) -> usize {\n    // a comment\n    let b = a + 1;\n    b * 2\n}\n";
    let mut highlighter = Highlighter::of_info("rust").unwrap();
    for _ in 0..(256 << 10) / function.len() {
        assert!(function.lines().chain([""]).all(|line| highlighter.line(line).is_some()));
    }
}

#[test]
fn no_pattern_takes_long() {
    let start = Instant::now();
    let patterns = [
        "\"", "'", "`", "/", "/*", "r#", "<", "<!--", "${", "$(", "{", "[", "(", "#", "\\", "*", "|", "- ", ": ",
        "<<A ", "'''", "a", "0", "//", "```", "~", "_", "!", "@", "&", "é", "\"\\", "](", "=\"", "--", ".", "\t", "?",
    ];
    for language in LANGUAGES {
        let Some(highlighter) = Highlighter::of_info(language) else { continue };
        for pattern in patterns {
            let line = pattern.repeat(MAX_LINE / pattern.len());
            highlighter.clone().line(&line);
            highlighter.lines(&format!("{line}\n").repeat(30));
        }
    }
    // A lexer of quadratic cost needs minutes without optimizations.
    assert!(start.elapsed() < Duration::from_mins(1), "{:?}", start.elapsed());
}

/// Returns a text with the marks of many languages, or any text.
fn any_code() -> impl Strategy<Value = String> {
    prop_oneof![
        "([a-z0-9 \"'/*#<>=:;,.(){}$&|!?@+~^%\\\\\n-]|\\[|\\]|\n\n|fn |\"\"\"|`|/\\*|<<EOF\n|\\$\\{|é|漢|👩‍👩‍👧){0,60}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn colors_do_not_change_the_text(
        language in prop_oneof![prop::sample::select(&LANGUAGES[..]).prop_map(str::to_owned), "[a-z+#{:,é-]{0,8}"],
        code in any_code(),
        cut in 0_usize..80,
    ) {
        let text = format!("````````{language}\n{code}\n````````");
        let (before, after) = text.split_at(text.floor_char_boundary(cut.min(text.len())));
        let colored = lines(&[before, after]);
        prop_assert_eq!(&colored, &lines(&[&text]));
        let expected: Vec<_> = Printable::prose(&text).as_str().split('\n').map(str::to_owned).collect();
        prop_assert_eq!(plain(&colored), expected);
    }

    #[test]
    fn colors_do_not_change_the_text_of_a_list(language in prop::sample::select(&LANGUAGES[..]), code in any_code()) {
        let text = |language: &str| {
            lines(&[&format!("- item\n\n  ````````{language}\n  {}\n  ````````\n", code.replace('\n', "\n  "))])
        };
        let (colored, without) = (plain(&text(language)), plain(&text("")));
        prop_assert_eq!(colored.get(3..), without.get(3..));
    }
}
