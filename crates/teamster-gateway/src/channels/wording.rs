//! The texts of the gateway in chats, in Markdown, and the answers that people can select. Texts of agents and people
//! are escaped.

use teamster::event::{PermissionOptionKind, PermissionRequest, Question, QuestionItem};
use teamster::text::UntrustedText;
use teamster_channel::render::{self, RequestText};
use teamster_store::{Decision, PermissionId, PermissionOutcome};

/// What the progress message shows while there is no text.
pub(super) const WORKING: &str = "…";

/// The answer of an agent that wrote nothing.
pub(super) const EMPTY_ANSWER: &str = "*The agent has finished without a text.*";

/// The largest number of options of a question that get a button. Services limit the buttons of a message.
const MAX_OPTIONS: usize = 10;

/// A possible answer to a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text on the button.
    pub label: String,
    /// What it decides.
    pub decision: Decision,
    /// The answer to a question, or a message for the agent.
    pub message: Option<String>,
    /// Whether the person writes the message.
    pub takes_text: bool,
}

/// Describes a permission request.
pub(super) fn permission(request: &PermissionRequest) -> RequestText {
    let targets: Vec<_> = request.targets.iter().map(UntrustedText::as_str).collect();
    render::permission_request(request.tool_name.as_str(), &targets, request.input.as_str())
}

/// Names where a request is answered that no member of the chat may answer.
pub(super) fn answered_elsewhere(id: PermissionId) -> String {
    format!("No member of this chat may answer. Answer it in the gateway's page, or with `teamster approve {id}`.")
}

/// Names where a request is allowed that is not shown whole.
pub(super) fn allowed_elsewhere(id: PermissionId) -> String {
    format!(
        "Parts of the call are hidden here, because it is too long for a chat. To allow it, read all of it in the gateway's \
         page, or with `teamster approve {id}`."
    )
}

/// Returns the answers to a permission request. "Allow always" is offered only if the agent offers it.
/// One that is not shown whole can only be denied.
pub(super) fn permission_choices(request: &PermissionRequest, is_whole: bool) -> Vec<Choice> {
    let choice = |label: &str, decision| Choice { label: label.to_owned(), decision, message: None, takes_text: false };
    let always = request.options.iter().any(|option| option.kind == PermissionOptionKind::AllowAlways);
    let mut choices = Vec::new();
    if is_whole {
        choices.push(choice("Allow", Decision::Allow));
    }
    if is_whole && always {
        choices.push(choice("Allow always", Decision::AllowAlways));
    }
    choices.push(choice("Deny", Decision::Deny));
    choices
}

/// Describes a question.
pub(super) fn question(question: &Question) -> String {
    let mut text = "**The agent asks:**\n".to_owned();
    for item in &question.questions {
        text.push('\n');
        text.push_str(&render::escape_block(item.text.as_str()));
        text.push('\n');
        for option in &item.options {
            text.push_str("\n- ");
            text.push_str(&render::escape(option.label.as_str()));
            if let Some(description) = &option.description {
                text.push_str(": ");
                text.push_str(&render::escape(description.as_str()));
            }
        }
    }
    text
}

/// Returns the answers to a question: its options, or a text.
pub(super) fn question_choices(question: &Question) -> Vec<Choice> {
    let deny = Choice { label: "Do not answer".to_owned(), decision: Decision::Deny, message: None, takes_text: false };
    let mut choices = match question.questions.as_slice() {
        [item] if is_simple(item) => item
            .options
            .iter()
            .map(|option| Choice {
                label: option.label.as_str().to_owned(),
                decision: Decision::Allow,
                message: Some(option.label.as_str().to_owned()),
                takes_text: false,
            })
            .collect(),
        _ => Vec::new(),
    };
    let free = Choice { label: "Answer".to_owned(), decision: Decision::Allow, message: None, takes_text: true };
    choices.extend([free, deny]);
    choices
}

fn is_simple(item: &QuestionItem) -> bool {
    item.multiple != Some(true) && item.options.len() <= MAX_OPTIONS
}

/// Describes how a prompt was closed.
pub(super) fn closed(outcome: PermissionOutcome, by: Option<&str>) -> String {
    let what = match outcome {
        PermissionOutcome::Allowed => "Allowed",
        PermissionOutcome::AllowedAlways => "Allowed, also later",
        PermissionOutcome::Denied => "Denied",
        PermissionOutcome::TimedOut => "Denied: the time limit has passed without an answer",
        PermissionOutcome::WorkerLost => "Denied: the agent's process has ended",
        PermissionOutcome::TurnEnded => "Closed: the turn has ended",
    };
    match by {
        Some(by) => format!("{what} by {}.", render::inline_code(by)),
        None => format!("{what}."),
    }
}

/// Names an outcome for programs.
pub(super) const fn outcome_name(outcome: PermissionOutcome) -> &'static str {
    match outcome {
        PermissionOutcome::Allowed => "allow",
        PermissionOutcome::AllowedAlways => "allow_always",
        PermissionOutcome::Denied => "deny",
        PermissionOutcome::TimedOut => "timed_out",
        PermissionOutcome::WorkerLost => "worker_lost",
        PermissionOutcome::TurnEnded => "turn_ended",
    }
}
