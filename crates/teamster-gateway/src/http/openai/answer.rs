//! The text of an answer so far.

use teamster::text::MESSAGE_SEPARATOR;

/// The mark after streamed text that is void. A stream cannot retract text.
const AGAIN: &str = "\n\n[The agent starts this part again.]\n\n";

/// The text of an answer, and what a stream has sent of it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The messages of the agent: id and text.
    messages: Vec<(String, String)>,
    /// What the stream has sent, while it differs from the messages. `None`: it has sent all of them.
    sent: Option<String>,
}

impl Answer {
    /// Adds a delta of a message, and returns what a stream sends now.
    pub(super) fn add(&mut self, message: &str, delta: &str) -> String {
        let is_same = self.messages.last().is_some_and(|(id, _)| id == message);
        let separator = if is_same || self.messages.is_empty() { "" } else { MESSAGE_SEPARATOR };
        match self.messages.last_mut().filter(|_| is_same) {
            Some((_, text)) => text.push_str(delta),
            None => self.messages.push((message.to_owned(), delta.to_owned())),
        }
        match self.sent.take() {
            None => format!("{separator}{delta}"),
            Some(sent) => self.catch_up(sent),
        }
    }

    /// Removes a message whose text is void.
    pub(super) fn retract(&mut self, message: &str) {
        if self.messages.iter().any(|(id, _)| id == message) {
            self.keep_sent();
            self.messages.retain(|(id, _)| id != message);
        }
    }

    /// Removes everything: the next attempt starts.
    pub(super) fn restart(&mut self) {
        if !self.messages.is_empty() {
            self.keep_sent();
            self.messages.clear();
        }
    }

    /// Returns whether there is no text.
    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        let texts: Vec<_> = self.messages.iter().map(|(_, text)| text.as_str()).collect();
        texts.join(MESSAGE_SEPARATOR)
    }

    fn keep_sent(&mut self) {
        if self.sent.is_none() {
            self.sent = Some(self.text());
        }
    }

    /// Returns what follows the text that was sent. A repeated text is not sent again; another text follows a mark.
    fn catch_up(&mut self, sent: String) -> String {
        let text = self.text();
        if let Some(rest) = text.strip_prefix(sent.as_str()) {
            return rest.to_owned();
        }
        if sent.starts_with(&text) {
            self.sent = Some(sent);
            return String::new();
        }
        // The messages before the last one were compared with what was sent when they grew.
        let last = self.messages.last().map(|(_, text)| text.as_str()).unwrap_or_default();
        format!("{AGAIN}{last}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_separated_and_deltas_are_not() {
        let mut answer = Answer::default();
        let sent: String =
            [("a", "One "), ("a", "two."), ("b", "Three.")].map(|(id, text)| answer.add(id, text)).concat();
        assert_eq!(sent, "One two.\n\nThree.");
        assert_eq!(answer.text(), sent);
    }

    #[test]
    fn a_text_that_is_streamed_again_is_sent_once() {
        let mut answer = Answer::default();
        let mut sent = answer.add("a", "Hello wor");
        answer.retract("a");
        for delta in ["Hel", "lo world", "!"] {
            sent += &answer.add("b", delta);
        }
        assert_eq!(sent, "Hello world!");
        assert_eq!(answer.text(), "Hello world!");
    }

    #[test]
    fn another_text_follows_a_mark_and_the_whole_answer_has_the_last_text_only() {
        let mut answer = Answer::default();
        let mut sent = answer.add("a", "First try");
        answer.restart();
        sent += &answer.add("b", "Second");
        sent += &answer.add("b", " try");
        assert_eq!(sent, format!("First try{AGAIN}Second try"));
        assert_eq!(answer.text(), "Second try");
    }

    #[test]
    fn a_second_failure_during_the_repetition_changes_nothing() {
        let mut answer = Answer::default();
        let mut sent = answer.add("a", "Hello world");
        answer.restart();
        sent += &answer.add("b", "Hello");
        answer.restart();
        sent += &answer.add("c", "Hello world, again");
        assert_eq!(sent, "Hello world, again");
    }
}
