//! Questions of the agent (`elicitation/create`), and the responses.
//!
//! A form becomes a `question` event. A request to open an address is declined: Teamster opens no browser.

use serde_json::{Value, json};

use super::wire::ElicitationParams;
use crate::agent::form::Form;
use teamster_types::event::QuestionItem;
use teamster_types::request::Answer;

/// A question of the agent that waits for an answer.
#[derive(Debug)]
pub(super) struct Question {
    /// The agent's id of the request.
    pub(super) id: Value,
    form: Form,
}

impl Question {
    /// Reads a question; `None` if it is not a form that can be shown.
    pub(super) fn read(id: Value, params: &ElicitationParams) -> Option<Self> {
        let schema = params.requested_schema.as_ref().filter(|_| params.mode.as_deref() == Some("form"))?;
        let form = Form::read(params.message.as_deref().unwrap_or_default(), schema)?;
        Some(Self { id, form })
    }

    pub(super) fn items(&self) -> Vec<QuestionItem> {
        self.form.questions()
    }

    /// Returns the response for an answer. An answer that does not match the form declines it.
    pub(super) fn reply(&self, answer: &Answer) -> Value {
        match answer {
            Answer::Choose(chosen) => self
                .form
                .filled(chosen)
                .map_or_else(Self::declined, |content| json!({"action": "accept", "content": content})),
            _ => Self::declined(),
        }
    }

    /// Returns the response to a question that is not answered.
    pub(super) fn declined() -> Value {
        json!({"action": "decline"})
    }

    /// Returns the response to a question of a turn that has ended.
    pub(super) fn cancelled() -> Value {
        json!({"action": "cancel"})
    }
}
