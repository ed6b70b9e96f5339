//! The answer so far, for programs that show it while it is generated.

use std::collections::VecDeque;

use super::{Event, MessageId};

/// The maximum number of bytes that a view holds. The oldest messages are removed first.
const MAX_BYTES: usize = 16 << 20;

/// The messages of the main thread so far, with retractions applied.
///
/// A bot that edits its message passes each event to [`apply`](Self::apply) and shows [`messages`](Self::messages) when it
/// returns true.
///
/// ```
/// use teamster_types::event::{AnswerView, Event};
///
/// let mut view = AnswerView::default();
/// for line in [
///     r#"{"type":"text","messageId":"m1","text":"Hel"}"#,
///     r#"{"type":"retract","messageId":"m1"}"#,
///     r#"{"type":"text","messageId":"m1","text":"Hello"}"#,
/// ] {
///     let event: Event = serde_json::from_str(line)?;
///     assert!(view.apply(&event));
/// }
/// let texts: Vec<_> = view.messages().map(|(_, text)| text).collect();
/// assert_eq!(texts, ["Hello"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerView {
    messages: VecDeque<(MessageId, String)>,
    bytes: usize,
}

impl AnswerView {
    /// Applies an event. Returns whether the answer has changed. Text of subagents is not part of the answer.
    pub fn apply(&mut self, event: &Event) -> bool {
        match event {
            Event::Text(delta) if delta.parent_tool_id.is_none() => {
                self.append(&delta.message_id, delta.text.as_str());
                true
            }
            Event::Retract(retract) => self.retract(&retract.message_id),
            _ => false,
        }
    }

    /// Returns the messages in the order of their first delta.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = (&MessageId, &str)> {
        self.messages.iter().map(|(id, text)| (id, text.as_str()))
    }

    /// Returns the text of a message; `None` if it has no text or was retracted.
    pub fn message(&self, id: &MessageId) -> Option<&str> {
        self.messages().find(|(other, _)| *other == id).map(|(_, text)| text)
    }

    /// Returns whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    fn append(&mut self, id: &MessageId, text: &str) {
        // A delta belongs to the newest message almost always.
        if let Some((_, message)) = self.messages.iter_mut().rev().find(|(other, _)| other == id) {
            message.push_str(text);
        } else {
            self.bytes += id.as_str().len();
            self.messages.push_back((id.clone(), text.to_owned()));
        }
        self.bytes += text.len();
        while self.bytes > MAX_BYTES && self.messages.len() > 1 {
            if let Some((id, text)) = self.messages.pop_front() {
                self.bytes -= id.as_str().len() + text.len();
            }
        }
        self.cut_single_message();
    }

    /// Removes the beginning of a single message that is too long.
    fn cut_single_message(&mut self) {
        // Twice the limit, so that not every delta moves the text.
        if self.bytes <= 2 * MAX_BYTES {
            return;
        }
        if let Some((_, text)) = self.messages.front_mut() {
            let start =
                (self.bytes - MAX_BYTES..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.drain(..start);
            self.bytes -= start;
        }
    }

    fn retract(&mut self, id: &MessageId) -> bool {
        let Some(at) = self.messages.iter().position(|(other, _)| other == id) else { return false };
        if let Some((id, text)) = self.messages.remove(at) {
            self.bytes -= id.as_str().len() + text.len();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Delta, Retract};

    fn text(message: &str, text: &str, parent: Option<&str>) -> Event {
        Event::Text(Delta { text: text.into(), message_id: message.into(), parent_tool_id: parent.map(Into::into) })
    }

    #[test]
    fn text_of_a_subagent_is_not_part_of_the_answer() {
        let mut view = AnswerView::default();
        assert!(!view.apply(&text("m1", "inner", Some("t1"))));
        assert!(view.is_empty());
    }

    #[test]
    fn a_retracted_message_is_removed_and_the_others_stay() {
        let mut view = AnswerView::default();
        for (message, delta) in [("m1", "a"), ("m2", "b"), ("m1", "c")] {
            assert!(view.apply(&text(message, delta, None)));
        }
        assert!(view.apply(&Event::Retract(Retract { message_id: "m1".into() })));
        assert!(!view.apply(&Event::Retract(Retract { message_id: "m1".into() })));
        assert_eq!((view.message(&"m1".into()), view.message(&"m2".into())), (None, Some("b")));
    }

    #[test]
    fn a_view_is_bounded_whatever_the_agent_writes() {
        let mut view = AnswerView::default();
        let delta = "ä".repeat(1 << 20);
        for number in 0..40 {
            view.apply(&text("one", &delta, None));
            assert!(view.bytes <= 2 * MAX_BYTES + 3, "delta {number}: {}", view.bytes);
        }
        for number in 0..40 {
            view.apply(&text(&number.to_string(), &delta, None));
        }
        assert!(view.bytes <= MAX_BYTES);
        assert_eq!(view.bytes, view.messages().map(|(id, text)| id.as_str().len() + text.len()).sum::<usize>());
        assert_eq!(view.messages().next_back().map(|(id, _)| id.as_str()), Some("39"));
    }
}
