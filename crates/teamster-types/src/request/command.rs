//! The commands of a session as JSON documents, for callers in other processes.
//!
//! Invariant: a command with an unknown field or value is rejected as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Attachment, PermissionMode};
use crate::event::RequestId;

/// A command to a session, as `teamster session` reads it: one JSON document per line.
///
/// Each may have an `id`. The `id` of `send` is the `turnId` of all events of its turn. The error of an invalid command
/// contains its `id`.
///
/// ```
/// use teamster_types::request::SessionCommand;
///
/// let command: SessionCommand = serde_json::from_str(r#"{"type": "send", "text": "Hello", "id": "1"}"#)?;
/// assert!(matches!(command, SessionCommand::Send { text, .. } if text == "Hello"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum SessionCommand {
    /// Send a prompt. Its turn starts when the turns before it have ended.
    Send {
        /// The text.
        text: String,
        /// Files to send with the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether to add the text to the running turn, if possible. Otherwise it becomes a turn before the waiting ones.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
        /// The turn's id in events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Abort a turn: the one with this id, running or waiting; without an id the running one.
    Interrupt {
        /// The `id` of the turn's `send`, or the id of a turn that the agent started by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<String>,
        /// The command's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Answer a permission request or a question: by a decision, one of the listed options, or choices.
    Answer {
        /// The id of the request or question.
        request_id: RequestId,
        /// The decision on a permission request; `deny` also declines a question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<Decision>,
        /// The id of one of the permission request's options.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        /// The answers to questions, by question id: labels of options, or free text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choices: Option<BTreeMap<String, Vec<String>>>,
        /// With `deny`: the reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// With `allow`: changed arguments of the tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The command's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Use another model.
    SetModel {
        /// The model, named as the agent names it.
        model: String,
        /// The command's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Use another permission mode from the next turn on.
    SetPermissionMode {
        /// The mode.
        mode: PermissionMode,
        /// The command's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Close the session when all sent turns have ended.
    Close {
        /// The command's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The decision on a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Allow this call.
    Allow,
    /// Allow this call and similar calls until the session ends.
    AllowAlways,
    /// Deny the call.
    Deny,
}

/// Why the fields of an answer are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAnswer {
    /// There is no decision, option or choice.
    #[error("an answer needs a decision (allow, allow_always or deny), an optionId, or choices for a question")]
    Empty,
    /// There is more than one of a decision, an option and choices.
    #[error("an answer must contain only one of a decision, an optionId and choices")]
    Both,
    /// A message without a denial.
    #[error("a message is valid only with the decision deny")]
    Message,
    /// An input without the decision `allow`.
    #[error("an input is valid only with the decision allow")]
    Input,
}

impl Answer {
    /// Creates an answer from the fields of a command.
    ///
    /// # Errors
    /// The fields are invalid.
    pub fn of_parts(
        decision: Option<Decision>,
        option_id: Option<String>,
        choices: Option<BTreeMap<String, Vec<String>>>,
        message: Option<String>,
        input: Option<Value>,
    ) -> Result<Self, InvalidAnswer> {
        if message.is_some() && decision != Some(Decision::Deny) {
            return Err(InvalidAnswer::Message);
        }
        if input.is_some() && decision != Some(Decision::Allow) {
            return Err(InvalidAnswer::Input);
        }
        match (decision, option_id, choices) {
            (Some(Decision::Allow), None, None) => Ok(Self::Allow { input }),
            (Some(Decision::AllowAlways), None, None) => Ok(Self::AllowAlways),
            (Some(Decision::Deny), None, None) => Ok(Self::Deny { message }),
            (None, Some(option_id), None) => Ok(Self::Option { option_id }),
            (None, None, Some(chosen)) => Ok(Self::Choose(chosen)),
            (None, None, None) => Err(InvalidAnswer::Empty),
            _ => Err(InvalidAnswer::Both),
        }
    }
}
