//! The threads in which the bot has answered: a message in one needs no mention.

use std::collections::VecDeque;

use serde_json::{Value, json};

/// The largest number of threads. The oldest one is forgotten; then a mention is needed again.
const MAX_THREADS: usize = 1_000;

/// Threads, the oldest first, each as channel and time of its first message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threads(VecDeque<String>);

impl Threads {
    /// Reads what [`to_value`](Self::to_value) has written.
    pub(crate) fn from_value(value: &Value) -> Self {
        let entries = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        Self(entries.take(MAX_THREADS).map(str::to_owned).collect())
    }

    pub(crate) fn to_value(&self) -> Value {
        json!(self.0)
    }

    pub(crate) fn contains(&self, channel: &str, thread: &str) -> bool {
        self.0.contains(&format!("{channel}:{thread}"))
    }

    /// Adds a thread. Returns whether it is new.
    pub(crate) fn add(&mut self, channel: &str, thread: &str) -> bool {
        if self.contains(channel, thread) {
            return false;
        }
        self.0.push_back(format!("{channel}:{thread}"));
        if self.0.len() > MAX_THREADS {
            self.0.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_remembered_after_a_restart_and_the_oldest_is_forgotten() {
        let mut threads = Threads::default();
        assert!(threads.add("C1", "5.0") && !threads.add("C1", "5.0"));
        let mut threads = Threads::from_value(&threads.to_value());
        assert!(threads.contains("C1", "5.0") && !threads.contains("C2", "5.0"));
        for number in 0..MAX_THREADS {
            threads.add("C3", &number.to_string());
        }
        assert!(!threads.contains("C1", "5.0") && threads.0.len() == MAX_THREADS);
        assert_eq!(Threads::from_value(&json!({"no": "list"})), Threads::default());
    }
}
