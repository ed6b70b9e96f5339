//! The turns of a conversation that have not ended: one may run, the others wait.

use std::collections::{HashSet, VecDeque};

use teamster::event::Event;

use crate::printable::{Printable, printable};

/// The number of waiting turns that are shown.
const SHOWN: usize = 4;

/// A turn that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WaitingTurn {
    pub(super) id: String,
    pub(super) author: String,
    pub(super) text: String,
    pub(super) attachments: Vec<String>,
    /// Whether its message was sent from here.
    pub(super) is_own: bool,
}

/// The turn that runs.
#[derive(Debug)]
pub(super) struct RunningTurn {
    pub(super) id: String,
    /// Whether its abort was requested here.
    pub(super) is_stopping: bool,
    /// The failure and the end of the last attempt. Another attempt may follow, and then they are not the turn's.
    pub(super) held: Vec<Event>,
}

#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) running: Option<RunningTurn>,
    waiting: VecDeque<WaitingTurn>,
    /// Turns of messages that were sent from here, and whose event has not arrived.
    own: HashSet<String>,
    /// Messages that are being sent.
    sending: Vec<String>,
}

impl WaitingTurn {
    /// Returns the author of a message of another client, as the start of its first line.
    pub(super) fn head(&self) -> Printable {
        if self.is_own { Printable::default() } else { printable!("{}: ", Printable::exact(&self.author)) }
    }

    /// Returns the message with the names of its attachments.
    pub(super) fn message(&self) -> String {
        let names = self.attachments.iter().map(|name| format!("\n[{name}]"));
        std::iter::once(self.text.clone()).chain(names).collect()
    }
}

impl Turns {
    pub(super) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    pub(super) fn begin_sending(&mut self, text: &str) {
        self.sending.push(text.to_owned());
    }

    /// Notes that a message was accepted as this turn, or that it failed.
    pub(super) fn end_sending(&mut self, text: &str, turn: Option<(&str, u64)>, last_seq: u64) {
        if let Some(index) = self.sending.iter().position(|sending| sending == text) {
            self.sending.remove(index);
        }
        let Some((turn, seq)) = turn else { return };
        match self.waiting.iter_mut().find(|waiting| waiting.id == turn) {
            Some(waiting) => waiting.is_own = true,
            None if seq > last_seq => _ = self.own.insert(turn.to_owned()),
            None => {}
        }
    }

    /// Returns the messages that are being sent.
    pub(super) fn unconfirmed(&self) -> &[String] {
        &self.sending
    }

    /// Adds a turn. A message that equals one which is being sent is taken for it.
    pub(super) fn add(&mut self, mut turn: WaitingTurn) {
        turn.is_own = self.own.remove(&turn.id) || self.sending.contains(&turn.text);
        self.waiting.retain(|waiting| waiting.id != turn.id);
        self.waiting.push_back(turn);
    }

    pub(super) fn edit(&mut self, id: &str, text: String) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == id) {
            waiting.text = text;
        }
    }

    pub(super) fn take(&mut self, id: &str) -> Option<WaitingTurn> {
        let index = self.waiting.iter().position(|waiting| waiting.id == id)?;
        self.waiting.remove(index)
    }

    pub(super) fn is_running(&self, id: &str) -> bool {
        self.running.as_ref().is_some_and(|running| running.id == id)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Forgets the turns of the copied log of a fork. They belong to the original conversation.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Returns a line for each of the first waiting turns, and the number of the others.
    pub(super) fn lines(&self) -> Vec<Printable> {
        let line = |turn: &WaitingTurn| {
            let text = turn.text.split_whitespace().collect::<Vec<_>>().join(" ");
            printable!("  queued: {}{}", turn.head(), Printable::exact(&text))
        };
        let mut lines: Vec<Printable> = self.waiting.iter().take(SHOWN).map(line).collect();
        if self.waiting.len() > SHOWN {
            lines.push(printable!("  ... and {} more", self.waiting.len() - SHOWN));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(id: &str, text: &str) -> WaitingTurn {
        let (author, attachments) = ("ana".to_owned(), vec!["a.png".to_owned()]);
        WaitingTurn { id: id.to_owned(), author, text: text.to_owned(), attachments, is_own: false }
    }

    #[test]
    fn a_message_of_this_chat_has_no_author_whether_its_event_or_its_answer_comes_first() {
        let mut turns = Turns::default();
        turns.begin_sending("hello");
        turns.add(turn("1", "hello"));
        turns.end_sending("hello", Some(("1", 5)), 5);
        turns.begin_sending("again");
        turns.end_sending("again", Some(("2", 9)), 5);
        turns.add(turn("2", "again"));
        turns.add(turn("3", "hello"));
        let heads: Vec<String> = ["1", "2", "3"].map(|id| turns.take(id).unwrap().head().as_str().to_owned()).into();
        assert_eq!(heads, ["", "", "ana: "]);
        assert!(!turns.is_sending() && turns.waiting() == 0);
    }

    #[test]
    fn waiting_messages_are_shown_on_one_line_each() {
        let mut turns = Turns::default();
        (1..=5).for_each(|number| turns.add(turn(&number.to_string(), "two\nlines")));
        turns.edit("1", "new".to_owned());
        let lines: Vec<String> = turns.lines().iter().map(|line| line.as_str().to_owned()).collect();
        assert_eq!(lines[..2], ["  queued: ana: new", "  queued: ana: two lines"]);
        assert_eq!(lines.last().map(String::as_str), Some("  ... and 1 more"));
        assert_eq!(turns.take("2").unwrap().message(), "two\nlines\n[a.png]");
    }
}
