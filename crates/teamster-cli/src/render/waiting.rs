//! The time for which a turn waits for a person.

use std::time::{Duration, Instant};

use teamster::event::{Event, RequestId};

/// The time during which a request of the agent was open.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    /// The requests without an answer.
    open: Vec<OpenWait>,
    /// Since when at least one request is open.
    since: Option<Instant>,
    /// The time that has ended.
    ended: Duration,
}

#[derive(Debug)]
struct OpenWait {
    id: RequestId,
    /// An agent may not report that a question was answered: what it does next shows it.
    is_question: bool,
}

impl Waiting {
    /// Updates the time by an event.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::PermissionRequest(request) => self.begin(request.request_id.clone(), false, now),
            Event::Question(question) => self.begin(question.request_id.clone(), true, now),
            Event::PermissionAnswered(answered) => self.end(now, |open| open.id == answered.request_id),
            Event::Text(_) | Event::Thinking(_) | Event::ToolUse(_) | Event::ToolResult(_) => {
                self.end(now, |open| open.is_question);
            }
            Event::Done(_) => self.end(now, |_| true),
            _ => {}
        }
    }

    /// Returns the time so far.
    pub(crate) fn total(&self, now: Instant) -> Duration {
        self.ended + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Returns how long the open requests wait; `None` if there are none.
    pub(crate) fn current(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| now.saturating_duration_since(since))
    }

    fn begin(&mut self, id: RequestId, is_question: bool, now: Instant) {
        self.open.push(OpenWait { id, is_question });
        self.since.get_or_insert(now);
    }

    fn end(&mut self, now: Instant, ends: impl Fn(&OpenWait) -> bool) {
        self.open.retain(|open| !ends(open));
        if self.open.is_empty() {
            self.ended += self.since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::event::{AnsweredBy, Delta, PermissionAnswered, PermissionDecision, PermissionRequest, Question};

    use super::*;

    #[test]
    fn the_time_of_requests_that_overlap_is_counted_once() {
        let (start, mut waiting) = (Instant::now(), Waiting::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        let request =
            |id: &str| Event::PermissionRequest(Box::new(PermissionRequest::new(id.into(), "Bash", json!({}).into())));
        let answer = |id: &str| {
            let answered = PermissionAnswered::new(id.into(), PermissionDecision::Allow, AnsweredBy::Caller);
            Event::PermissionAnswered(Box::new(answered))
        };
        waiting.event(&request("a"), at(0));
        waiting.event(&request("b"), at(2));
        waiting.event(&answer("a"), at(5));
        assert_eq!(waiting.current(at(6)), Some(Duration::from_secs(6)));
        waiting.event(&answer("b"), at(7));
        assert_eq!((waiting.total(at(9)), waiting.current(at(9))), (Duration::from_secs(7), None));
        waiting.event(&Event::Question(Box::new(Question::new("q", Vec::new()))), at(10));
        waiting.event(&Event::Text(Delta::new("m", "thanks")), at(13));
        assert_eq!(waiting.total(at(20)), Duration::from_secs(10));
    }
}
