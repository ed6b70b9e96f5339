//! The earlier attempts of a turn, from the log: what an attempt without a recorded end has left.

use serde::Deserialize;
use teamster::event::ErrorCode;
use teamster::text::MESSAGE_SEPARATOR;
use teamster_store::{Event, Result, Seq, Store, StoreError, Turn};

/// The size of the text of an attempt that is read back. Later text is left out.
const MAX_TEXT: usize = 1 << 20;

/// What the log contains about the attempts of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PastAttempts {
    /// The session that the last attempt has reported.
    pub(super) session: Option<String>,
    /// The agent of the last attempt.
    pub(super) agent: Option<String>,
    /// The messages of the last attempt, with their ids.
    texts: Vec<(String, String)>,
    /// The number of attempts whose end was recorded. The others ended with their worker.
    pub(super) recorded: u32,
    /// The number of attempts that are not counted as failed: they ended with a pause, or with a lost session.
    pub(super) uncounted: u32,
    /// The failure of the last attempt was recorded. What it has done is void, and no later attempt was started.
    pub(super) has_ended: bool,
}

/// What an attempt has left that ended with its worker.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InterruptedAttempt {
    /// The agent with its session, if the agent has reported one.
    pub(super) session: Option<(String, String)>,
    /// All messages of the agent.
    pub(super) text: String,
    /// Its last message.
    pub(super) final_text: String,
}

/// The fields that are read from an event. Fields of other events are absent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    text: Option<String>,
    message_id: Option<String>,
    parent_tool_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitFields {
    session_id: Option<String>,
}

#[derive(Deserialize)]
struct RetryFields {
    code: Option<String>,
}

#[derive(Deserialize)]
struct StartFields {
    agent: Option<String>,
}

/// Reads the attempts of a turn since it was queued.
pub(super) async fn past_attempts(store: &dyn Store, turn: &Turn) -> Result<PastAttempts> {
    let mut after = Seq::new(turn.queued_seq.get().saturating_sub(1));
    let mut found = PastAttempts::default();
    loop {
        let page = match store.events(turn.conversation, after, 500).await {
            Err(StoreError::EventsPruned { oldest }) => {
                after = Seq::new(oldest.get().saturating_sub(1));
                continue;
            }
            other => other?,
        };
        let Some(last) = page.events.last() else { return Ok(found) };
        after = last.seq;
        page.events.iter().filter(|event| event.turn == Some(turn.id)).for_each(|event| found.add(event));
        if after >= page.last_seq {
            return Ok(found);
        }
    }
}

impl PastAttempts {
    /// Returns what the last attempt has left, unless its end was recorded.
    pub(super) fn interrupted(&self) -> Option<InterruptedAttempt> {
        if self.has_ended {
            return None;
        }
        let texts: Vec<_> = self.texts.iter().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty()).collect();
        Some(InterruptedAttempt {
            session: self.agent.clone().zip(self.session.clone()),
            final_text: texts.last().copied().unwrap_or_default().to_owned(),
            text: texts.join(MESSAGE_SEPARATOR),
        })
    }

    fn add(&mut self, event: &Event) {
        match event.kind.as_str() {
            // A client has queued it again, and its attempts are counted from 1 again.
            "turn_queued" => *self = Self::default(),
            "turn_started" => {
                self.has_ended = false;
                self.texts.clear();
                self.agent = event.body.to::<StartFields>().ok().and_then(|fields| fields.agent);
            }
            "turn_retrying" | "turn_paused" => {
                self.recorded += 1;
                self.has_ended = true;
                let code = event.body.to::<RetryFields>().ok().and_then(|fields| fields.code);
                let is_lost_session = code.is_some_and(|code| code == ErrorCode::SessionNotFound.as_str());
                self.uncounted += u32::from(event.kind == "turn_paused" || is_lost_session);
            }
            "turn_interrupted" => self.recorded += 1,
            // The agent starts another session.
            "session_reset" => self.session = None,
            "init" => {
                let session = event.body.to::<InitFields>().ok().and_then(|fields| fields.session_id);
                self.session = session.or(self.session.take());
            }
            "text" | "retract" => self.add_text(event),
            _ => {}
        }
    }

    fn add_text(&mut self, event: &Event) {
        let Ok(Fields { text, message_id, parent_tool_id: None }) = event.body.to::<Fields>() else { return };
        let id = message_id.unwrap_or_default();
        let Some(text) = text else { return self.texts.retain(|(known, _)| *known != id) };
        let length: usize = self.texts.iter().map(|(_, text)| text.len()).sum();
        let text = text.get(..text.floor_char_boundary(MAX_TEXT.saturating_sub(length))).unwrap_or_default();
        match self.texts.last_mut().filter(|(known, _)| *known == id) {
            Some((_, known)) => known.push_str(text),
            None => self.texts.push((id, text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use teamster_store::{Json, Timestamp};

    use super::*;

    fn event(kind: &str, body: &str) -> Event {
        let body = Json::parse(body).unwrap();
        Event { seq: Seq::new(1), kind: kind.to_owned(), turn: None, at: Timestamp::from_millis(0), body }
    }

    fn read(events: &[(&str, &str)]) -> PastAttempts {
        let mut found = PastAttempts::default();
        for (kind, body) in events {
            found.add(&event(kind, body));
        }
        found
    }

    #[test]
    fn attempts_are_counted_since_the_turn_was_queued_last() {
        let mut found = read(&[
            ("turn_queued", "{}"),
            ("init", r#"{"sessionId":"a"}"#),
            ("turn_retrying", "{}"),
            ("turn_queued", "{}"),
            ("init", r#"{"sessionId":"b"}"#),
            ("turn_paused", "{}"),
            ("turn_started", "{}"),
        ]);
        assert_eq!((found.session.as_deref(), found.recorded, found.has_ended), (Some("b"), 1, false));
        found.add(&event("turn_retrying", "{}"));
        assert_eq!((found.recorded, found.has_ended), (2, true));
        found.add(&event("turn_started", "{}"));
        found.add(&event("turn_interrupted", "{}"));
        assert_eq!((found.recorded, found.has_ended), (3, false));
    }

    #[test]
    fn an_interrupted_attempt_has_the_session_and_the_texts_that_its_agent_has_reported() {
        let found = read(&[
            ("turn_started", r#"{"agent":"claude"}"#),
            ("text", r#"{"text":"void","messageId":"0"}"#),
            ("turn_retrying", "{}"),
            ("turn_started", r#"{"agent":"claude"}"#),
            ("init", r#"{"sessionId":"a"}"#),
            ("text", r#"{"text":"One.","messageId":"1"}"#),
            ("text", r#"{"text":"wrong","messageId":"2"}"#),
            ("retract", r#"{"messageId":"2"}"#),
            ("text", r#"{"text":"of a subagent","messageId":"3","parentToolId":"t"}"#),
            ("text", r#"{"text":"Tw","messageId":"4"}"#),
            ("text", r#"{"text":"o.","messageId":"4"}"#),
            ("turn_interrupted", "{}"),
        ]);
        let interrupted = found.interrupted().unwrap();
        assert_eq!(interrupted.session, Some(("claude".to_owned(), "a".to_owned())));
        assert_eq!((interrupted.text.as_str(), interrupted.final_text.as_str()), ("One.\n\nTwo.", "Two."));
    }

    #[test]
    fn a_session_that_was_replaced_and_an_attempt_that_has_ended_leave_nothing() {
        let reset = read(&[
            ("turn_started", r#"{"agent":"claude"}"#),
            ("init", r#"{"sessionId":"a"}"#),
            ("session_reset", "{}"),
        ]);
        assert_eq!(reset.interrupted(), Some(InterruptedAttempt::default()));
        assert_eq!(read(&[("turn_started", r#"{"agent":"claude"}"#), ("turn_retrying", "{}")]).interrupted(), None);
    }
}
