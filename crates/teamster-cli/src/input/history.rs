//! Earlier texts: up and down through them, and the search in them.

/// Earlier texts, the oldest first, and the place in them.
#[derive(Debug, Default)]
pub(crate) struct History {
    texts: Vec<String>,
    /// The index of the shown text. `None` if the person's own text is shown.
    shown: Option<usize>,
    /// The person's own text while an earlier one is shown.
    draft: String,
}

impl History {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        Self { texts, ..Self::default() }
    }

    /// Adds a text, unless it is the last one. A text that starts with a space is not kept.
    pub(super) fn add(&mut self, text: &str) {
        self.shown = None;
        if !text.starts_with(' ') && self.texts.last().is_none_or(|last| last != text) {
            self.texts.push(text.to_owned());
        }
    }

    /// Returns the text before the shown one. `current` is the text of the input box.
    pub(super) fn previous(&mut self, current: &str) -> Option<&str> {
        let index = self.shown.unwrap_or(self.texts.len()).checked_sub(1)?;
        if self.shown.is_none() {
            current.clone_into(&mut self.draft);
        }
        self.shown = Some(index);
        self.texts.get(index).map(String::as_str)
    }

    /// Returns the text after the shown one; after the last one, the person's own text.
    pub(super) fn next(&mut self) -> Option<&str> {
        let index = self.shown? + 1;
        if index < self.texts.len() {
            self.shown = Some(index);
            return self.texts.get(index).map(String::as_str);
        }
        self.shown = None;
        Some(&self.draft)
    }

    /// Whether an earlier text is shown.
    pub(super) fn is_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// Shows the person's own text from now on.
    pub(super) fn reset(&mut self) {
        self.shown = None;
    }

    /// Finds the last text before an index that contains the words. Upper case matters only if the words contain any.
    pub(super) fn find(&self, words: &str, before: usize) -> Option<(usize, &str)> {
        let exact = words.chars().any(char::is_uppercase);
        let contains = |text: &str| if exact { text.contains(words) } else { text.to_lowercase().contains(words) };
        let mut candidates = self.texts.iter().enumerate().take(before).rev();
        candidates.find(|(_, text)| contains(text)).map(|(index, text)| (index, text.as_str()))
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }
}

/// A search in the history, with Ctrl-R.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) words: String,
    /// The index of the found text.
    found: Option<usize>,
    pub(super) text: String,
}

impl Search {
    /// Searches again after the words were changed.
    pub(super) fn update(&mut self, history: &History) {
        self.find(history, history.len());
    }

    /// Searches the next older text.
    pub(super) fn older(&mut self, history: &History) {
        self.find(history, self.found.unwrap_or(history.len()));
    }

    fn find(&mut self, history: &History, before: usize) {
        if let Some((index, text)) = history.find(&self.words, before) {
            (self.found, self.text) = (Some(index), text.to_owned());
        } else if before == history.len() {
            (self.found, self.text) = (None, String::new());
        }
    }

    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_text_comes_back_after_the_last_earlier_one() {
        let mut history = History::default();
        for text in ["one", "two", "two", " secret"] {
            history.add(text);
        }
        assert_eq!(history.previous("draft"), Some("two"));
        assert_eq!(
            (history.previous("two").map(str::to_owned), history.previous("one")),
            (Some("one".to_owned()), None)
        );
        assert_eq!((history.next().map(str::to_owned), history.next()), (Some("two".to_owned()), Some("draft")));
        assert_eq!(history.next(), None);
    }

    #[test]
    fn a_search_goes_to_older_texts_and_stays_at_the_oldest() {
        let history = History::new(["Fix it", "other", "fix this"].map(str::to_owned).to_vec());
        let mut search = Search { words: "fix".to_owned(), ..Search::default() };
        search.update(&history);
        assert_eq!(search.text, "fix this");
        search.older(&history);
        search.older(&history);
        assert_eq!(search.text, "Fix it");
        search.words.push('!');
        search.update(&history);
        assert!(!search.is_found());
    }
}
