//! Completion with Tab: what is completed, and the menu of candidates.

use super::text::Text;

/// What a word at the cursor is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A slash command, without the slash.
    Command,
    /// The argument of this command.
    Argument(String),
    /// A path after `@`, relative to the agent's working directory.
    Path,
}

/// A request for the candidates of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompletionRequest {
    pub(crate) subject: Subject,
    pub(crate) word: String,
    /// The text before the cursor, which ends with the word.
    before: String,
}

impl CompletionRequest {
    /// Returns what is completed at the cursor.
    pub(super) fn at_cursor(text: &Text) -> Option<Self> {
        let before = text.before_cursor();
        let request = |subject, word: &str| Some(Self { subject, word: word.to_owned(), before: before.to_owned() });
        let last_word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        if let Some(path) = last_word.strip_prefix('@') {
            return request(Subject::Path, path);
        }
        let command = before.strip_prefix('/').filter(|rest| !rest.starts_with('/') && !rest.contains('\n'))?;
        match command.split_once(' ') {
            None => request(Subject::Command, command),
            Some((name, argument)) => request(Subject::Argument(name.to_owned()), argument.trim_start()),
        }
    }
}

/// What a word can be completed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) text: String,
    /// What it is, for the menu.
    pub(crate) note: &'static str,
}

impl Candidate {
    pub(crate) fn new(text: impl Into<String>, note: &'static str) -> Self {
        Self { text: text.into(), note }
    }
}

/// The candidates of a word, one of which may be chosen.
#[derive(Debug)]
pub(super) struct Menu {
    pub(super) candidates: Vec<Candidate>,
    pub(super) chosen: Option<usize>,
    /// Whether it was opened without Tab.
    pub(super) is_offered: bool,
    /// Whether the candidates are commands.
    pub(super) is_of_commands: bool,
    /// The position of the word in the text.
    from: usize,
}

impl Menu {
    /// Completes the word. Returns a menu if there are several candidates.
    pub(super) fn complete(text: &mut Text, request: &CompletionRequest, candidates: Vec<Candidate>) -> Option<Self> {
        // The text may have changed since the request.
        if text.before_cursor() != request.before {
            return None;
        }
        let from = text.position() - request.word.len();
        match candidates.as_slice() {
            [] => None,
            [one] => {
                let end = if one.text.ends_with('/') { "" } else { " " };
                text.replace_before_cursor(from, &format!("{}{end}", one.text));
                None
            }
            several => {
                let common = common_prefix(several);
                if common.len() > request.word.len() {
                    text.replace_before_cursor(from, common);
                }
                Some(Self::new(request, candidates, from, false))
            }
        }
    }

    /// Returns the menu of the word at the cursor, which is not completed. `None` if there are no candidates.
    pub(super) fn offered(text: &Text, request: &CompletionRequest, candidates: Vec<Candidate>) -> Option<Self> {
        let is_current = text.before_cursor() == request.before && !candidates.is_empty();
        is_current.then(|| Self::new(request, candidates, text.position() - request.word.len(), true))
    }

    fn new(request: &CompletionRequest, candidates: Vec<Candidate>, from: usize, is_offered: bool) -> Self {
        let is_of_commands = request.subject == Subject::Command;
        Self { candidates, chosen: None, is_offered, is_of_commands, from }
    }

    /// Chooses the next candidate or the previous one.
    pub(super) fn choose(&mut self, text: &mut Text, forward: bool) {
        let count = self.candidates.len();
        let index = match (self.chosen, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(index), true) => (index + 1) % count,
            (Some(index), false) => (index + count - 1) % count,
        };
        self.chosen = Some(index);
        if let Some(candidate) = self.candidates.get(index) {
            text.replace_before_cursor(self.from, &candidate.text);
        }
    }
}

fn common_prefix(candidates: &[Candidate]) -> &str {
    let Some((first, others)) = candidates.split_first() else { return "" };
    let first = first.text.as_str();
    let common = |other: &Candidate| {
        let same = first.char_indices().zip(other.text.chars()).find(|((_, a), b)| a != b);
        same.map_or(first.len().min(other.text.len()), |((at, _), _)| at)
    };
    first.get(..others.iter().map(common).min().unwrap_or(first.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_end(content: &str) -> Text {
        let mut text = Text::default();
        text.insert(content);
        text
    }

    #[test]
    fn the_subject_depends_on_the_words_before_the_cursor() {
        for (content, expected) in [
            ("/per", Some((Subject::Command, "per"))),
            ("/permission re", Some((Subject::Argument("permission".to_owned()), "re"))),
            ("see @src/ma", Some((Subject::Path, "src/ma"))),
            ("see\n@", Some((Subject::Path, ""))),
            ("/export @x", Some((Subject::Path, "x"))),
            ("//per", None),
            ("word", None),
            ("mail@host", None),
        ] {
            let request = CompletionRequest::at_cursor(&at_end(content));
            let found = request.map(|request| (request.subject, request.word));
            assert_eq!(found, expected.map(|(subject, word)| (subject, word.to_owned())), "{content}");
        }
    }

    #[test]
    fn one_candidate_is_inserted_and_several_are_chosen_in_turn() {
        let complete = |content: &str, candidates: &[&str]| {
            let mut text = at_end(content);
            let request = CompletionRequest::at_cursor(&text).unwrap();
            let candidates = candidates.iter().map(|&candidate| Candidate::new(candidate, "")).collect();
            let menu = Menu::complete(&mut text, &request, candidates);
            (text, menu)
        };
        assert_eq!(complete("see @sr", &["src/"]).0.as_str(), "see @src/");
        assert_eq!(complete("/he", &["help"]).0.as_str(), "/help ");
        let (mut text, menu) = complete("@m", &["main.rs", "mäin.c", "mail"]);
        let mut menu = menu.unwrap();
        assert_eq!(text.as_str(), "@m");
        menu.choose(&mut text, true);
        menu.choose(&mut text, true);
        assert_eq!(text.as_str(), "@mäin.c");
        menu.choose(&mut text, false);
        menu.choose(&mut text, false);
        assert_eq!(text.as_str(), "@mail");
    }

    #[test]
    fn candidates_that_are_late_change_nothing() {
        let mut text = at_end("@sr");
        let request = CompletionRequest::at_cursor(&text).unwrap();
        text.insert("x");
        assert!(Menu::complete(&mut text, &request, vec![Candidate::new("src/", "")]).is_none());
        assert_eq!(text.as_str(), "@srx");
    }
}
