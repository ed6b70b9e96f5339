//! The part of a conversation's log that is shown when a chat joins it.

use std::collections::{HashSet, VecDeque};

use crate::client::{Conversation, LogBody, LogEvent};

/// The number of turns that are shown.
const TURNS: usize = 10;

/// The number of events that are read at most.
const WINDOW: u64 = 2_000;

/// The size of the events that are kept at most, in bytes.
const BYTES: usize = 8 << 20;

/// Collects the events up to the last one that the log had at the start.
#[derive(Debug)]
pub(super) struct History {
    last: u64,
    events: VecDeque<LogEvent>,
    bytes: usize,
    /// Whether earlier events are missing.
    is_cut: bool,
}

/// The collected events.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) events: Vec<LogEvent>,
    /// Whether the conversation has earlier turns, which are not shown.
    pub(super) is_cut: bool,
}

impl History {
    pub(super) fn of(conversation: &Conversation) -> Self {
        let is_cut = Self::start(conversation) > 0;
        Self { last: conversation.last_seq, events: VecDeque::new(), bytes: 0, is_cut }
    }

    /// Returns the number of the event before the first one that is read.
    pub(super) fn start(conversation: &Conversation) -> u64 {
        let oldest = conversation.oldest_seq.saturating_sub(1);
        oldest.max(conversation.last_seq.saturating_sub(WINDOW))
    }

    pub(super) fn add(&mut self, event: LogEvent) {
        self.bytes += event.json.get().len();
        self.events.push_back(event);
        while self.bytes > BYTES && self.events.len() > 1 {
            let Some(first) = self.events.pop_front() else { break };
            self.bytes -= first.json.get().len();
            self.is_cut = true;
        }
    }

    /// Whether the log has no further event that is older than the chat.
    pub(super) fn is_complete(&self) -> bool {
        self.last == 0 || self.events.back().is_some_and(|event| event.seq >= self.last)
    }

    /// Returns the events of the last turns. A turn whose start is missing is left out, unless it is the last one or runs.
    pub(super) fn finish(self) -> Shown {
        let mut order: Vec<&str> = Vec::new();
        let (mut started, mut ended) = (HashSet::new(), HashSet::new());
        for event in &self.events {
            let Some(turn) = event.turn.as_deref() else { continue };
            if !order.contains(&turn) {
                order.push(turn);
            }
            match &event.event {
                LogBody::Gateway(event) if event.kind() == "turn_queued" => _ = started.insert(turn),
                LogBody::Gateway(event) if event.kind() == "turn_finished" => _ = ended.insert(turn),
                _ => {}
            }
        }
        let last = order.last().copied();
        let is_whole = |turn: &&str| started.contains(turn) || !ended.contains(turn) || last == Some(*turn);
        let kept: HashSet<String> =
            order.iter().rev().take(TURNS).copied().filter(is_whole).map(str::to_owned).collect();
        let is_cut = self.is_cut || kept.len() < order.len();
        let is_kept = |event: &LogEvent| event.turn.as_ref().is_some_and(|turn| kept.contains(turn));
        let first = self.events.iter().position(is_kept).unwrap_or(self.events.len());
        let events = self.events.into_iter().skip(first);
        let events = events.filter(|event| event.turn.as_ref().is_none_or(|turn| kept.contains(turn))).collect();
        Shown { events, is_cut }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::read_event;

    fn conversation(oldest: u64, last: u64) -> Conversation {
        let fields = json!({"id": "c", "agent": "claude", "oldestSeq": oldest, "lastSeq": last});
        serde_json::from_value(fields).unwrap()
    }

    /// Returns the events of a turn: its message, a text and its end.
    fn turn(number: u64) -> Vec<LogEvent> {
        let (seq, id) = (number * 3 + 1, format!("t{number}"));
        [
            json!({"seq": seq, "turnId": id, "type": "turn_queued", "messageId": "m", "author": "a", "text": "hi"}),
            json!({"seq": seq + 1, "turnId": id, "type": "text", "messageId": "m", "text": "x"}),
            json!({"seq": seq + 2, "turnId": id, "type": "turn_finished", "state": "done"}),
        ]
        .iter()
        .map(|event| read_event(&event.to_string()).unwrap())
        .collect()
    }

    #[test]
    fn the_last_turns_are_shown_and_a_turn_without_its_start_is_left_out() {
        let mut history = History::of(&conversation(1, 36));
        for event in (0..12).flat_map(turn) {
            assert!(!history.is_complete());
            history.add(event);
        }
        assert!(history.is_complete());
        let Shown { events, is_cut } = history.finish();
        assert_eq!((events.len(), events.first().map(|event| event.seq), is_cut), (30, Some(7), true));
        let mut history = History::of(&conversation(2, 6));
        (0..2).flat_map(turn).skip(1).for_each(|event| history.add(event));
        let Shown { events, is_cut } = history.finish();
        assert_eq!((events.len(), events.first().map(|event| event.seq), is_cut), (3, Some(4), true));
    }

    #[test]
    fn an_empty_log_is_complete_at_once_and_a_long_one_is_read_from_its_end() {
        assert!(History::of(&conversation(1, 0)).is_complete());
        assert_eq!(History::start(&conversation(1, 5_000)), 3_000);
        assert_eq!(History::start(&conversation(4_000, 5_000)), 3_999);
    }
}
