//! What a program says to a session from outside of this process: one JSON document a command.
//!
//! Invariant: what is not understood is refused whole; no field is passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Attachment, PermissionMode};
use crate::event::RequestId;

/// A command to a session, as `teamster session` reads it: one document a line.
///
/// Each may have an `id` of the sender's. That of `send` is the `turnId` of every event of its turn; if a command is wrong,
/// its error names it.
///
/// ```
/// use teamster_protocol::request::SessionCommand;
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
    /// The model is told something: a turn, which begins when those sent before it have ended.
    Send {
        /// The words.
        text: String,
        /// Files that go to the model with them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Whether the model is to hear them within the running turn, where that can be. Otherwise they are a turn that comes before
        /// those that wait.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
        /// The turn's name in the events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A turn ends as aborted: the named one, whether it runs or waits, or else the one that runs.
    Interrupt {
        /// The `id` of the turn's `send`, or the name of a turn that the agent began by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<String>,
        /// The command's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// A permission request or a question is answered: by a decision, by one of the listed options, or by choices.
    Answer {
        /// What is answered.
        request_id: RequestId,
        /// The answer to a permission request; `deny` declines a question too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision: Option<Decision>,
        /// The answer to a permission request: one of the options that it lists.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option_id: Option<String>,
        /// The answer to a question: labels of options, or words of one's own, by the question's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        choices: Option<BTreeMap<String, Vec<String>>>,
        /// With `deny`: why, for the model to read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// With `allow`: what the tool is called with instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        /// The command's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Another model is to answer.
    SetModel {
        /// In the agent's words.
        model: String,
        /// The command's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Another permission mode is to hold from the next turn on.
    SetPermissionMode {
        /// The mode.
        mode: PermissionMode,
        /// The command's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// The session ends when the turns that were sent have ended.
    Close {
        /// The command's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The answer to a permission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// This once.
    Allow,
    /// This, and the like of it until the session's end.
    AllowAlways,
    /// No.
    Deny,
}

/// Why the parts of an answer make none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// No decision, no option and no choices.
    #[error("an answer needs a decision (allow, allow_always or deny), an optionId, or choices for a question")]
    Empty,
    /// More than one of a decision, an option, and choices.
    #[error("an answer is a decision, an optionId or choices, not several of them")]
    Both,
    /// A message without a denial.
    #[error("a message goes with the decision deny alone")]
    Message,
    /// An input without leave for this once.
    #[error("an input goes with the decision allow alone")]
    Input,
}

impl Answer {
    /// An answer from the parts of a command.
    ///
    /// # Errors
    /// When they make none.
    pub fn of_parts(
        decision: Option<Decision>,
        option_id: Option<String>,
        choices: Option<BTreeMap<String, Vec<String>>>,
        message: Option<String>,
        input: Option<Value>,
    ) -> Result<Self, NoAnswer> {
        if message.is_some() && decision != Some(Decision::Deny) {
            return Err(NoAnswer::Message);
        }
        if input.is_some() && decision != Some(Decision::Allow) {
            return Err(NoAnswer::Input);
        }
        match (decision, option_id, choices) {
            (Some(Decision::Allow), None, None) => Ok(Self::Allow { input }),
            (Some(Decision::AllowAlways), None, None) => Ok(Self::AllowAlways),
            (Some(Decision::Deny), None, None) => Ok(Self::Deny { message }),
            (None, Some(option_id), None) => Ok(Self::Option { option_id }),
            (None, None, Some(chosen)) => Ok(Self::Choose(chosen)),
            (None, None, None) => Err(NoAnswer::Empty),
            _ => Err(NoAnswer::Both),
        }
    }
}
