//! The word check: names and sentences use the standard terms of the field, not the project's earlier vocabulary.
//!
//! It reads comments, docstrings, string literals, the names that code defines, and the prose of Markdown pages. Text
//! between backquotes is not read: it quotes code.

mod list;
mod names;
mod page;
mod passages;
mod text;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;
use std::sync::LazyLock;

use super::source::{Check, Finding, Source};
use list::{ALLOWED, EXCEPTIONS, IMAGES, PHRASES, PROSE, TYPES};
use text::{Kind, Passage, Word};

/// The phrases that start with a word.
static BY_FIRST_WORD: LazyLock<HashMap<&str, Vec<Phrase>>> = LazyLock::new(|| {
    let listed = |phrases: &'static [(&'static str, &'static str)], use_in: fn(Kind) -> bool| {
        phrases.iter().map(move |(phrase, better)| Phrase::new(phrase, Some(better), use_in))
    };
    let allowed = ALLOWED.iter().map(|phrase| Phrase::new(phrase, None, |_| true));
    let all = listed(PHRASES, |_| true)
        .chain(listed(IMAGES, |_| true))
        .chain(listed(PROSE, |kind| kind != Kind::Literal))
        .chain(listed(TYPES, |kind| kind == Kind::TypeName))
        .chain(allowed);
    let mut by_first = HashMap::<_, Vec<_>>::new();
    for phrase in all {
        by_first.entry(phrase.words.first().copied().unwrap_or_default()).or_default().push(phrase);
    }
    for phrases in by_first.values_mut() {
        phrases.sort_by_key(|phrase| Reverse(phrase.words.len()));
    }
    by_first
});

struct Phrase {
    text: &'static str,
    words: Vec<&'static str>,
    /// `None` if the phrase is allowed although it contains a listed word.
    better: Option<&'static str>,
    use_in: fn(Kind) -> bool,
}

impl Phrase {
    fn new(text: &'static str, better: Option<&'static str>, use_in: fn(Kind) -> bool) -> Self {
        Self { text, words: text.split(' ').collect(), better, use_in }
    }

    fn matches(&self, kind: Kind, words: &[Word], is_whole: bool) -> bool {
        let is_prefix =
            words.len() >= self.words.len() && self.words.iter().zip(words).all(|(one, word)| word.text == *one);
        // `Left` is listed, `LeftBehind` is not.
        let is_type = TYPES.iter().any(|(name, _)| *name == self.text);
        is_prefix && (self.use_in)(kind) && (!is_type || (is_whole && words.len() == self.words.len()))
    }
}

pub(super) fn check_rust(source: &Source, syntax: &syn::File) -> Vec<Finding> {
    findings(source, passages::of(&source.text).into_iter().chain(names::of(syntax)))
}

pub(super) fn check_page(source: &Source) -> Vec<Finding> {
    findings(source, [page::of(&source.text)].into_iter())
}

fn findings(source: &Source, passages: impl Iterator<Item = Passage>) -> Vec<Finding> {
    passages.flat_map(|passage| in_passage(source, &passage)).collect()
}

fn in_passage(source: &Source, passage: &Passage) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut rest = passage.words.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let phrases = BY_FIRST_WORD.get(first.text.as_str()).map_or(&[][..], Vec::as_slice);
        let is_whole = rest.len() == passage.words.len();
        let found = phrases.iter().find(|phrase| phrase.matches(passage.kind, rest, is_whole));
        if let Some(Phrase { text, better: Some(better), .. }) = found
            && !is_excepted(&source.path, text)
        {
            findings.push(Finding {
                file: source.path.clone(),
                line: Some(first.line),
                check: Check::Words,
                text: format!("\"{text}\": {better}"),
            });
        }
        rest = found.map_or(after, |phrase| rest.get(phrase.words.len()..).unwrap_or_default());
    }
    findings
}

fn is_excepted(file: &Path, phrase: &str) -> bool {
    EXCEPTIONS
        .iter()
        .any(|(folder, words, _)| file.starts_with(folder) && (words.is_empty() || words.contains(&phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let source = Source { path: "src/a.rs".into(), text: text.to_owned() };
        check_rust(&source, &syn::parse_file(text).unwrap()).iter().map(ToString::to_string).collect()
    }

    fn found_words(text: &str) -> Vec<String> {
        found(text).iter().map(|finding| finding.split('"').nth(1).unwrap().to_owned()).collect()
    }

    #[test]
    fn a_finding_has_its_line_and_a_better_word() {
        let text = "\n// A comment of two lines, whose second\n// is read by nobody.\nstruct A;\n";
        let [found] = &found(text)[..] else { panic!() };
        assert!(found.starts_with("src/a.rs:3: \"nobody\": "), "{found}");
    }

    #[test]
    fn docstrings_literals_and_names_are_read() {
        assert_eq!(found_words("/// It is told.\nstruct A;"), ["told"]);
        assert_eq!(found_words("/** It is told. */ struct A;"), ["told"]);
        assert_eq!(found_words("const A: &str = \"it \\\"was\\\" told\";"), ["told"]);
        assert_eq!(found_words("const A: &str = r#\"it \"was\" told\"#;"), ["told"]);
        assert_eq!(found_words("#[test] fn nobody_is_told() { let heard = '\"'; }"), ["nobody", "told", "heard"]);
        assert_eq!(found_words("macro_rules! a { () => { fn whoever_comes() {} } }"), ["whoever"]);
        assert_eq!(found_words("enum A { ToldTwice { nobody: u8 } }"), ["told", "nobody"]);
    }

    #[test]
    fn a_phrase_is_found_also_where_a_line_ends_within_it() {
        assert_eq!(found_words("// It goes\n// on with the next.\nstruct A;"), ["goes on with"]);
    }

    #[test]
    fn quoted_code_and_calls_of_other_code_are_not_read() {
        assert_eq!(found_words("// Calls `told`.\nfn a() { told() }"), [""; 0]);
        assert_eq!(found_words("/// ```\n/// told();\n/// ```\nstruct A;"), [""; 0]);
    }

    #[test]
    fn an_ordinary_word_is_listed_only_as_the_name_of_a_type() {
        assert_eq!(found_words("// What is kept.\nstruct Kept; struct KeptFile;"), ["kept"]);
    }

    #[test]
    fn a_lifetime_and_a_character_start_no_literal() {
        assert_eq!(found_words("fn a<'a>(b: &'a str) -> char { '\"' } // told"), ["told"]);
    }

    #[test]
    fn every_exception_names_listed_words_and_a_reason() {
        for (folder, words, reason) in EXCEPTIONS {
            assert!(!reason.is_empty() && crate::command::root().join(folder).exists(), "{folder}");
            let is_listed = |word: &&str| [PHRASES, IMAGES, PROSE, TYPES].concat().iter().any(|(one, _)| one == word);
            assert!(words.iter().all(is_listed), "{folder}");
        }
    }

    #[test]
    fn an_exception_is_for_its_files_and_its_words_only() {
        assert!(is_excepted(Path::new("crates/teamster-channel/src/render.rs"), "fence"));
        assert!(!is_excepted(Path::new("crates/teamster-channel/src/render.rs"), "nobody"));
        assert!(!is_excepted(Path::new("crates/teamster-channel/src/pace.rs"), "fence"));
    }

    #[test]
    fn the_prose_of_a_page_is_read_and_its_code_is_not() {
        let text = "# Title\n\nWhat `told` is,\nand nobody.\n\n```\nwhoever\n```\n";
        let source = Source { path: "a.md".into(), text: text.to_owned() };
        let [found] = &check_page(&source)[..] else { panic!() };
        assert!(found.to_string().starts_with("a.md:4: \"nobody\""), "{found}");
    }
}
