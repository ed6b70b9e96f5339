//! Builds the deliveries of a turn. The engine adds them in the transaction to which they belong.
//!
//! A key consists of the turn, its claim if the item belongs to one attempt, the kind and the part. Two different items
//! of a turn never share a key, so a notice of a failure cannot replace the answer.

use std::fmt::Write as _;

use teamster::event::{PermissionRequest, Question};
use teamster_channel::render::RequestText;
use teamster_channel::{Button, ButtonStyle, Content, Prompt};
use teamster_store::{
    ChatAddress, ConversationId, Decision, DeliveryId, Epoch, Json, Lease, NewDelivery, PermissionId,
    PermissionOutcome, Timestamp, TurnId,
};
use uuid::Uuid;

use super::body::{Body, Meaning};
use super::token::new_token;
use super::wording;
pub use super::wording::Choice;
use crate::config::EVERYONE;
use crate::error::GatewayError;

/// Channels whose clients read the log: nothing is delivered to them.
const WITHOUT_DELIVERY: [&str; 3] = ["http", "web", "openai"];

/// To whom a delivery goes, and to which turn it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Recipient<'a> {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its address.
    pub address: &'a ChatAddress,
    /// The turn and its claim. `None` is an item of the conversation itself.
    pub turn: Option<(TurnId, Epoch)>,
    /// The time.
    pub now: Timestamp,
}

impl<'a> Recipient<'a> {
    /// Addresses the chat of a running turn.
    pub const fn of_turn(lease: Lease, address: &'a ChatAddress, now: Timestamp) -> Self {
        Self { conversation: lease.conversation, address, turn: Some((lease.turn, lease.epoch)), now }
    }

    /// Addresses a chat outside of a turn.
    pub const fn of_conversation(conversation: ConversationId, address: &'a ChatAddress, now: Timestamp) -> Self {
        Self { conversation, address, turn: None, now }
    }

    /// Returns whether items are delivered to the channel of the address.
    pub fn has_deliveries(&self) -> bool {
        !WITHOUT_DELIVERY.contains(&self.address.channel.as_str())
    }

    /// Returns the key of an item of this claim.
    fn key(&self, kind: &str) -> String {
        match self.turn {
            Some((turn, epoch)) => format!("{turn}:{epoch}:{kind}"),
            None => format!("{}:{kind}", self.conversation),
        }
    }

    /// Returns the key of an item that all claims of the turn share.
    fn shared_key(&self, kind: &str) -> String {
        match self.turn {
            Some((turn, _)) => format!("{turn}:{kind}"),
            None => format!("{}:{kind}", self.conversation),
        }
    }

    fn delivery(&self, key: String, body: &Body) -> Result<Vec<NewDelivery>, GatewayError> {
        if !self.has_deliveries() {
            return Ok(Vec::new());
        }
        Ok(vec![NewDelivery {
            id: DeliveryId::new(Uuid::now_v7()),
            key,
            address: self.address.clone(),
            conversation: Some(self.conversation),
            turn: self.turn.map(|(turn, _)| turn),
            body: Json::of(body)?,
            not_before: self.now,
        }])
    }
}

/// Shows that the turn runs, by a message that the answer or the failure replaces. Build it only for channels with edits.
pub fn progress(to: &Recipient<'_>) -> Result<Vec<NewDelivery>, GatewayError> {
    to.delivery(progress_key(to), &Body::of(Content::Progress { text: wording::WORKING.to_owned() }))
}

/// Returns the key of the message that the answer replaces.
pub(super) fn progress_key(to: &Recipient<'_>) -> String {
    to.shared_key("progress")
}

/// Shows the answer of a turn. For an empty answer, the chat gets a text that states this.
pub fn answer(to: &Recipient<'_>, text: &str, session_id: Option<&str>) -> Result<Vec<NewDelivery>, GatewayError> {
    let text = if text.trim().is_empty() { wording::EMPTY_ANSWER } else { text };
    let content = Content::Answer { text: text.to_owned(), session_id: session_id.map(str::to_owned) };
    to.delivery(to.key("answer"), &Body { replaces: Some(progress_key(to)), ..Body::of(content) })
}

/// Shows that a turn has failed. `error` is for people, `code` for programs.
pub fn failure(to: &Recipient<'_>, error: &str, code: &str) -> Result<Vec<NewDelivery>, GatewayError> {
    let content = Content::Failure { error: error.to_owned(), code: code.to_owned() };
    to.delivery(to.key("failure"), &Body { replaces: Some(progress_key(to)), ..Body::of(content) })
}

/// Shows a notice in Markdown. `name` distinguishes it from the other notices of the turn or conversation; it is ASCII.
pub fn notice(to: &Recipient<'_>, name: &str, text: &str) -> Result<Vec<NewDelivery>, GatewayError> {
    to.delivery(to.key(&format!("notice:{name}")), &Body::of(Content::Notice { text: text.to_owned() }))
}

/// Shows what an agent sends with a tool, in its own chat or another one. The key is that of the tool call, so a
/// retried attempt that sends the same item again does not duplicate it.
pub fn of_tool(
    conversation: ConversationId,
    turn: TurnId,
    address: &ChatAddress,
    key: String,
    content: Content,
    now: Timestamp,
) -> Result<Vec<NewDelivery>, GatewayError> {
    let to = Recipient { conversation, address, turn: None, now };
    let mut deliveries = to.delivery(key, &Body::of(content))?;
    for delivery in &mut deliveries {
        delivery.turn = Some(turn);
    }
    Ok(deliveries)
}

/// Shows a prompt with these answers. Each button has an unguessable token that is bound to the request and its decision.
pub fn prompt(
    to: &Recipient<'_>,
    request: PermissionId,
    text: &str,
    choices: &[Choice],
) -> Result<Vec<NewDelivery>, GatewayError> {
    if !to.has_deliveries() {
        return Ok(Vec::new());
    }
    let buttons = choices.iter().map(|choice| button(request, choice)).collect::<Result<_, GatewayError>>()?;
    let content = Content::Prompt(Prompt { id: request.to_string(), text: text.to_owned(), buttons });
    let meanings = choices
        .iter()
        .map(|choice| Meaning { decision: choice.decision.into(), message: choice.message.clone() })
        .collect();
    to.delivery(to.shared_key(&prompt_kind(request)), &Body { meanings, ..Body::of(content) })
}

/// Shows a permission request, with the answers allow, allow always and deny. If none of the
/// approvers is in the chat, it has no answers and names where it can be answered. One that is not shown whole cannot be allowed.
pub fn permission_prompt(
    to: &Recipient<'_>,
    id: PermissionId,
    request: &PermissionRequest,
    approvers: &[String],
) -> Result<Vec<NewDelivery>, GatewayError> {
    let RequestText { mut text, is_whole } = wording::permission(request);
    if !is_answered_in(to.address, approvers) {
        _ = write!(text, "\n\n{}", wording::answered_elsewhere(id));
        return prompt(to, id, &text, &[]);
    }
    if !is_whole {
        _ = write!(text, "\n\n{}", wording::allowed_elsewhere(id));
    }
    prompt(to, id, &text, &wording::permission_choices(request, is_whole))
}

/// Returns whether a member of the chat may be an approver.
fn is_answered_in(address: &ChatAddress, approvers: &[String]) -> bool {
    let channel = |id: &str| id.split_once(':').is_some_and(|(channel, _)| channel == address.channel);
    approvers.iter().any(|id| id == EVERYONE || channel(id))
}

/// Shows a question of the agent, with a button for each option.
pub fn question_prompt(
    to: &Recipient<'_>,
    id: PermissionId,
    question: &Question,
) -> Result<Vec<NewDelivery>, GatewayError> {
    prompt(to, id, &wording::question(question), &wording::question_choices(question))
}

/// Shows how a prompt was closed: its message loses the buttons where the service can edit.
pub fn prompt_closed(
    to: &Recipient<'_>,
    request: PermissionId,
    outcome: PermissionOutcome,
    by: Option<&str>,
) -> Result<Vec<NewDelivery>, GatewayError> {
    let content = Content::PromptClosed {
        id: request.to_string(),
        text: wording::closed(outcome, by),
        outcome: wording::outcome_name(outcome).to_owned(),
    };
    let replaces = Some(to.shared_key(&prompt_kind(request)));
    to.delivery(to.shared_key(&format!("prompt-closed:{request}")), &Body { replaces, ..Body::of(content) })
}

fn prompt_kind(request: PermissionId) -> String {
    format!("prompt:{request}")
}

fn button(request: PermissionId, choice: &Choice) -> Result<Button, GatewayError> {
    let style = match choice.decision {
        Decision::Allow => ButtonStyle::Positive,
        Decision::AllowAlways => ButtonStyle::Plain,
        Decision::Deny => ButtonStyle::Negative,
    };
    Ok(Button { label: choice.label.clone(), token: new_token(request)?, style, takes_text: choice.takes_text })
}
