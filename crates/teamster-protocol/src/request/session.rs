//! What a caller says in a session, turn by turn.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::validate::no_nul;
use super::{Attachment, BackgroundTasks, Conversation, Mode, OutputMode, RequestError, RunRequest, ToolRules};

/// What the model is told in one turn.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Prompt {
    /// The words.
    pub text: String,
    /// Files that go to the model with them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// A name for the turn, by which it can be interrupted and which its stamped events have. Agents do not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

impl Prompt {
    /// Gives the turn a name.
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Checks everything that can be known without a look at the machine.
    ///
    /// # Errors
    /// The first thing that is wrong.
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
    /// Shows no words.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Prompt")
            .field("id", &self.id)
            .field("text", &format_args!("{} bytes", self.text.len()))
            .field("attachments", &self.attachments)
            .finish()
    }
}

/// The answer to a permission request or to a question of the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// This once; with other arguments, if some are given.
    Allow {
        /// What the tool is called with instead.
        input: Option<Value>,
    },
    /// This, and the like of it until the session's end.
    AllowAlways,
    /// No.
    Deny {
        /// Why, for the model to read.
        message: Option<String>,
    },
    /// One of the [options](crate::event::PermissionRequest::options) that a permission request lists.
    Option {
        /// The option's id.
        option_id: String,
    },
    /// What is chosen, by the question's id: labels of options, or words of one's own.
    Choose(BTreeMap<String, Vec<String>>),
}

impl RunRequest {
    /// Checks the request as the frame of a session, whose prompts come turn by turn.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate_session(&self) -> Result<(), RequestError> {
        let refuse = |first, why| Err(RequestError::Contradiction { first, second: "a session", why });
        if !self.prompt.is_empty() || !self.attachments.is_empty() {
            return refuse("a prompt or attachments in the request", "they are sent turn by turn");
        }
        if self.output == OutputMode::Batch {
            return refuse("batch output", "it is the end of a process, and a session goes on");
        }
        if self.retries.max > 0 {
            return refuse("retries", "the session may hold the prompt already; send it again instead");
        }
        if self.background_tasks == BackgroundTasks::On && self.mode != Mode::Auto {
            return Err(RequestError::Contradiction {
                first: "background tasks",
                second: "turns that are runs of their own",
                why: "nothing of a run goes on after it",
            });
        }
        ToolRules::read(&self.permissions, None)?;
        let mut frame = self.clone();
        frame.background_tasks = BackgroundTasks::Off;
        "x".clone_into(&mut frame.prompt);
        frame.validate()
    }

    /// The run that is one turn of a session with this frame.
    #[must_use]
    pub fn turn(&self, prompt: Prompt, conversation: Conversation) -> Self {
        let Prompt { text, attachments, id: _ } = prompt;
        Self { prompt: text, attachments, conversation, background_tasks: BackgroundTasks::Off, ..self.clone() }
    }
}

/// Prepends instructions to a prompt, marked as such. For an agent that has no other way to take them.
///
/// ```
/// use teamster_protocol::request::with_instructions;
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
