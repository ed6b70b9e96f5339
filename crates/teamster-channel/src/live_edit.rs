//! Shows an unfinished text by edits at the rate that a service permits. Pure: time is an argument.

use std::time::{Duration, Instant};

/// The longest wait after a failure without a stated time.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// The longest stated time. A longer one is shortened, so that it can be added to a time.
const MAX_STATED_WAIT: Duration = Duration::from_hours(24);

/// Decides when an unfinished text is shown. At most one edit is in progress, and a later text replaces a waiting one.
#[derive(Clone, Debug)]
pub struct LiveEdit {
    interval: Duration,
    /// The newest text, if it is not shown.
    waiting: Option<String>,
    /// The text of the edit in progress.
    sending: Option<String>,
    shown: String,
    not_before: Option<Instant>,
    failures: u32,
    is_final: bool,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditStep {
    /// Show this text, and report the outcome.
    Show(String),
    /// Call again after this time, or after a change.
    Wait(Duration),
    /// Call again after a change.
    Idle,
    /// The final text is shown.
    Done,
}

impl LiveEdit {
    /// Starts with a shown text.
    pub fn new(interval: Duration, shown: impl Into<String>) -> Self {
        let shown = shown.into();
        Self { interval, waiting: None, sending: None, shown, not_before: None, failures: 0, is_final: false }
    }

    /// Sets the text. It has no effect after [`finish`](Self::finish).
    pub fn update(&mut self, text: impl Into<String>) {
        if !self.is_final {
            self.waiting = Some(text.into());
        }
    }

    /// Sets the final text. It is always shown, but not before a wait that the service requires.
    pub fn finish(&mut self, text: impl Into<String>) {
        self.waiting = Some(text.into());
        self.is_final = true;
    }

    /// Returns the next step.
    pub fn next(&mut self, now: Instant) -> EditStep {
        if self.sending.is_some() {
            return EditStep::Idle;
        }
        if self.waiting.as_ref() == Some(&self.shown) {
            self.waiting = None;
        }
        let Some(text) = self.waiting.take() else {
            return if self.is_final { EditStep::Done } else { EditStep::Idle };
        };
        let wait = self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        if wait > Duration::ZERO {
            self.waiting = Some(text);
            return EditStep::Wait(wait);
        }
        self.sending = Some(text.clone());
        EditStep::Show(text)
    }

    /// The service has the text.
    pub fn shown(&mut self, now: Instant) {
        if let Some(text) = self.sending.take() {
            self.shown = text;
        }
        self.failures = 0;
        self.not_before = Some(now + self.interval);
    }

    /// The service does not have the text, or it is unknown. `after` is the wait that the service requires, of at
    /// most 24 hours.
    pub fn failed(&mut self, after: Option<Duration>, now: Instant) {
        let text = self.sending.take();
        // A newer text replaces the one that failed.
        self.waiting = self.waiting.take().or(text);
        self.failures = self.failures.saturating_add(1);
        let backoff = self.interval.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_WAIT);
        self.not_before = Some(now + after.map_or(backoff, |after| after.min(MAX_STATED_WAIT)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn edits_keep_the_interval_and_show_the_newest_text() {
        let (mut edit, now) = (LiveEdit::new(SECOND * 2, ""), Instant::now());
        edit.update("a");
        assert_eq!(edit.next(now), EditStep::Show("a".into()));
        edit.update("ab");
        assert_eq!(edit.next(now), EditStep::Idle, "one edit is under way");
        edit.shown(now);
        edit.update("abc");
        assert_eq!(edit.next(now), EditStep::Wait(SECOND * 2));
        assert_eq!(edit.next(now + SECOND * 2), EditStep::Show("abc".into()));
    }

    #[test]
    fn a_demanded_wait_stops_edits_and_the_final_text_is_shown_after_it() {
        let (mut edit, now) = (LiveEdit::new(SECOND, ""), Instant::now());
        edit.update("a");
        assert_eq!(edit.next(now), EditStep::Show("a".into()));
        edit.failed(Some(SECOND * 13_938), now);
        edit.finish("the end");
        edit.update("late");
        assert_eq!(edit.next(now + SECOND), EditStep::Wait(SECOND * 13_937));
        let then = now + SECOND * 13_938;
        assert_eq!(edit.next(then), EditStep::Show("the end".into()));
        edit.shown(then);
        assert_eq!(edit.next(then), EditStep::Done);
    }

    #[test]
    fn an_absurd_wait_is_one_of_a_day() {
        let (mut edit, now) = (LiveEdit::new(SECOND, ""), Instant::now());
        edit.update("a");
        assert_eq!(edit.next(now), EditStep::Show("a".into()));
        edit.failed(Some(Duration::MAX), now);
        assert_eq!(edit.next(now), EditStep::Wait(MAX_STATED_WAIT));
    }

    #[test]
    fn a_failed_final_text_is_shown_again_and_waits_longer_each_time() {
        let (mut edit, mut now) = (LiveEdit::new(SECOND, ""), Instant::now());
        edit.finish("end");
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert_eq!(edit.next(now), EditStep::Show("end".into()));
            edit.failed(None, now);
            let EditStep::Wait(wait) = edit.next(now) else { panic!("it must wait") };
            waits.push(wait);
            now += wait;
        }
        assert!(waits.is_sorted() && waits[0] == SECOND * 2 && waits[7] == MAX_WAIT, "{waits:?}");
    }

    #[test]
    fn a_text_that_is_shown_is_not_sent_again() {
        let (mut edit, now) = (LiveEdit::new(SECOND, "same"), Instant::now());
        edit.update("same");
        assert_eq!(edit.next(now), EditStep::Idle);
        edit.finish("same");
        assert_eq!(edit.next(now), EditStep::Done);
    }
}
