//! The prompts and answers that a caller sends in a session.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::validate::no_nul;
use super::{AgentInterface, Attachment, Conversation, OutputMode, RequestError, RunRequest};

/// The prompt of a turn.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Files to send with the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The turn's id, by which it can be interrupted. Its stamped events contain it. Agents do not get it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Prompt {
    /// Sets the turn's id.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Validates everything that does not depend on the machine.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate(&self) -> Result<(), RequestError> {
        if self.text.trim().is_empty() {
            return Err(RequestError::EmptyPrompt);
        }
        no_nul("the prompt", &self.text)
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

impl std::fmt::Debug for Prompt {
    /// Omits the text.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Prompt")
            .field("id", &self.id)
            .field("text", &format_args!("{} bytes", self.text.len()))
            .field("attachments", &self.attachments)
            .finish()
    }
}

/// The answer to a permission request or to a question of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Allow this call, optionally with changed arguments.
    Allow {
        /// The changed arguments.
        input: Option<Value>,
    },
    /// Allow this call and similar calls until the session ends.
    AllowAlways,
    /// Deny the call, or decline the question.
    Deny {
        /// The reason, for the model.
        message: Option<String>,
    },
    /// Choose one of the [options](crate::event::PermissionRequest::options) of a permission request.
    Option {
        /// The option's id.
        option_id: String,
    },
    /// Answer questions, by question id: labels of options, or free text.
    Choose(BTreeMap<String, Vec<String>>),
}

impl RunRequest {
    /// Validates the request as the options of a session, whose prompts are sent turn by turn.
    ///
    /// # Errors
    /// The first problem.
    pub fn validate_session(&self) -> Result<(), RequestError> {
        let refuse = |first, why| Err(RequestError::Contradiction { first, second: "a session", why });
        if !self.prompt.is_empty() || !self.attachments.is_empty() {
            return refuse("a prompt or attachments in the request", "they are sent turn by turn");
        }
        if self.output == OutputMode::Batch {
            return refuse("batch output", "a batch run ends with its process, but a session continues");
        }
        if self.retries.max > 0 {
            return refuse("retries", "the session may hold the prompt already; send it again instead");
        }
        if self.background_tasks && self.interface != AgentInterface::Auto {
            return Err(RequestError::Contradiction {
                first: "background tasks",
                second: "turns that are runs of their own",
                why: "all processes of a run end with it",
            });
        }
        let mut frame = self.clone();
        frame.background_tasks = false;
        "x".clone_into(&mut frame.prompt);
        frame.validate()
    }

    /// Returns the request of a run that is one turn of a session with these options.
    #[must_use]
    pub fn turn(&self, prompt: Prompt, conversation: Conversation) -> Self {
        let Prompt { text, attachments, id: _ } = prompt;
        Self { prompt: text, attachments, conversation, background_tasks: false, ..self.clone() }
    }
}

/// Prepends instructions to a prompt, marked as such, for an agent that accepts them in no other way.
///
/// ```
/// use teamster_types::request::with_instructions;
///
/// let prompt = with_instructions(Some("Answer in one word."), "What is it?");
/// assert_eq!(prompt, "<instructions>\nAnswer in one word.\n</instructions>\n\nWhat is it?");
/// assert_eq!(with_instructions(None, "What is it?"), "What is it?");
/// ```
pub fn with_instructions<'a>(instructions: Option<&str>, prompt: &'a str) -> Cow<'a, str> {
    match instructions {
        Some(text) => format!("<instructions>\n{text}\n</instructions>\n\n{prompt}").into(),
        None => prompt.into(),
    }
}
