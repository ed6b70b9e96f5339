use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::{escape_names, events};

/// Returns the text as it is shown, with `<b>`, `<i>` and `<s>` for styles.
fn shown(source: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut shown = String::new();
    for (event, _) in events(Parser::new_ext(source, options), source) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineHtml(text) | Event::Html(text) => {
                shown.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => shown.push('\n'),
            Event::Start(Tag::Strong) => shown.push_str("<b>"),
            Event::End(TagEnd::Strong) => shown.push_str("</b>"),
            Event::Start(Tag::Emphasis) => shown.push_str("<i>"),
            Event::End(TagEnd::Emphasis) => shown.push_str("</i>"),
            Event::Start(Tag::Strikethrough) => shown.push_str("<s>"),
            Event::End(TagEnd::Strikethrough) => shown.push_str("</s>"),
            _ => {}
        }
    }
    shown
}

#[test]
fn names_paths_and_commands_are_shown_as_they_were_written() {
    for text in [
        "Edit __init__.py and __main__.py, 5 * 3 * 2, call __len__ and _private_ here.",
        "__init__",
        "_private_",
        "(__dirname__)",
        "\"__name__\" == '__main__'",
        "self.__dict__, __call__(self) and obj.__class__.__name__",
        "src/__tests__/a_b_c.js and ./__mocks__/",
        "https://example.org/__init__/_next_/x",
        "snake_case, trailing_, _leading and __both__",
        "a*b and c*d, a*b*c, 2*3*4",
        "2 ** 3 ** 4",
        "**/*.rs and **/*.py",
        "*.py,*.rs or *.py *.rs",
        "rm *.py and foo/*",
        "\"*.py\" '*.rs'",
        "\"*_test.go\" \"*_bench.go\"",
        "src/**/test_*.py, **/node_modules/**",
        "f(*args, **kwargs) and g(*args,**kwargs)",
        "COUNT(*), SUM(*)",
        "SELECT COUNT(*) FROM f(*)",
        "*foo.txt* and *_test*",
        "/*comment*/",
        "std::*a*::b",
        "~/x~y and ~/a~",
        "HEAD~1..HEAD~2 and ~5~",
        "C:\\new\\_private\\.git",
        "C:\\_x",
        "\\\\server\\share",
        "\\d+\\.\\d+ and ^\\[a\\]$",
        "foo\\.rs$",
        "find . -name \\*.rs \\( -type f \\) -exec rm {} \\;",
        "a\\|b",
        "\\$HOME \\{x\\}",
        "a[i](j) and handlers[name](event)",
        "f()[0](x)",
        "[x]()",
        "Vec<T> and HashMap<K, V>",
        "$x_1$ and $_x_$",
        "# no",
        "a &unknown; b",
    ] {
        let text = text.trim_start_matches("# ");
        assert_eq!(shown(text), text);
    }
    assert_eq!(shown("run a \\\n--flag"), "run a \\\n--flag");
}

#[test]
fn words_are_emphasized() {
    for (text, expected) in [
        ("**bold** and *emphasis*", "<b>bold</b> and <i>emphasis</i>"),
        ("**Note:** text, **a**, (**b**) \"*c*\"", "<b>Note:</b> text, <b>a</b>, (<b>b</b>) \"<i>c</i>\""),
        ("**Note**: text **end**.", "<b>Note</b>: text <b>end</b>."),
        ("*several words.* ***both***", "<i>several words.</i> <i><b>both</b></i>"),
        ("**`a_b`** and **__init__**", "<b>a_b</b> and <b>__init__</b>"),
        ("_several words_ __and more__", "<i>_several words_</i> <b>__and more__</b>"),
        ("这是**重要**的，**中文**。", "这是<b>重要</b>的，<b>中文</b>。"),
        ("~~gone~~", "<s>gone</s>"),
        ("**--flag** and **.gitignore**", "<b>--flag</b> and <b>.gitignore</b>"),
        ("[a](https://x.y) see[b](https://x.y)", "a seeb"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn an_escaped_mark_is_shown_without_its_backslash() {
    for (text, expected) in [
        ("snake\\_case and \\_\\_init\\_\\_", "snake_case and __init__"),
        ("5 \\* 3, \\*not\\* and \\`x", "5 * 3, *not* and `x"),
        ("1986\\. A year", "1986. A year"),
        ("\\# no heading", "# no heading"),
        ("\\- no item", "- no item"),
        ("\\[a\\](b)", "[a](b)"),
        ("Vec\\<T\\>", "Vec<T>"),
        ("&amp;lt; &lt;b&gt;", "&lt; <b>"),
        ("| a |\n|---|\n| x\\|y |", "ax|y"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn lines_of_a_paragraph_keep_their_indentation() {
    for (text, expected) in [
        ("def f():\n    return 1\n      x", "def f():\n    return 1\n      x"),
        ("- one\n  two", "one\ntwo"),
        ("- one\n      two", "one\n    two"),
        ("1. one\n   two", "one\ntwo"),
        ("> one\n>     two", "one\ntwo"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn names_are_escaped_for_a_service_that_formats_markdown() {
    for (text, expected) in [
        ("**Hi** *you*", "**Hi** *you*"),
        ("__init__.py and a_b", "\\_\\_init\\_\\_.py and a\\_b"),
        ("`__a__` https://x.y/__a__/b_c a\\_b", "`__a__` https://x.y/__a__/b_c a\\_b"),
        ("```\n__a__\n```", "```\n__a__\n```"),
        ("*.py,*.rs", "\\*.py,\\*.rs"),
    ] {
        assert_eq!(escape_names(text), expected);
    }
}

proptest! {
    #[test]
    fn a_word_with_underscores_is_shown(words in proptest::collection::vec("[_a-z]{0,3}[a-z0-9]{1,3}[_a-z.]{0,3}[a-z_]", 1..6)) {
        let text = words.join(" ");
        let shown = shown(&text).replace("<i>", "").replace("</i>", "").replace("<b>", "").replace("</b>", "");
        prop_assert_eq!(shown, text);
    }

    #[test]
    fn a_word_with_asterisks_inside_is_shown(words in proptest::collection::vec("[a-z]{1,3}\\*{1,2}[./]?[a-z]{1,3}(\\*[a-z]+)?", 1..6), space in "[ ,]") {
        let text = words.join(&space);
        prop_assert_eq!(shown(&text), text);
    }

    #[test]
    fn every_text_is_parsed(text in "[a-b_*~\\\\ \n\\[\\]()!<>|`.:/é漢-]{0,40}") {
        shown(&text);
    }
}
