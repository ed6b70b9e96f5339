//! The inbox of one channel: what the channel receives goes through the access rules to the engine.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use subtle::ConstantTimeEq as _;
use teamster_channel::{
    Address, Author, Channel, ChatCommand, CommandReply, Content, Edit, EditOutcome, Inbox, InboxError, Message,
    PromptAnswer, PromptDecision, Receipt,
};
use teamster_store::{self as store, ChatAddress, DeliveryFilter, Json, MessageMode, PermissionId, StoreError};

use super::body::{Body, Meaning};
use super::commands;
use super::order::ChatOrder;
use super::pages::all_deliveries;
use super::token::request_of;
use crate::attachments::StoredAttachment;
use crate::config::{Origin, rule_for};
use crate::engine::{AcceptedMessage, AnswerResult, Caller, Gateway, IncomingMessage, MessageTarget};
use crate::error::GatewayError;

/// The number of chats whose messages of programs are counted. If there are more, all counters are reset.
const MAX_COUNTED_CHATS: usize = 10_000;

/// Who may answer a request.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Approvers {
    approvers: Vec<String>,
}

/// Accepts what a channel receives.
pub(super) struct ChannelInbox {
    gateway: Gateway,
    channel: String,
    senders_are_authenticated: bool,
    /// The number of messages of programs in a chat since the last message of a person.
    bots: Mutex<HashMap<String, u32>>,
    order: ChatOrder,
}

impl ChannelInbox {
    pub(super) fn new(gateway: Gateway, channel: &dyn Channel) -> Self {
        Self {
            gateway,
            channel: channel.name().to_owned(),
            senders_are_authenticated: channel.capabilities().senders_are_authenticated,
            bots: Mutex::default(),
            order: ChatOrder::default(),
        }
    }

    /// Returns whether rules permit what an author sends. A stranger needs a rule that names the channel, chat or author.
    fn admits(&self, address: &Address, author: &Author) -> bool {
        let origin = Origin { channel: &self.channel, chat: &address.chat, author: &author.id };
        match rule_for(self.gateway.config(), origin) {
            Some(rule) if rule.reject => false,
            Some(rule) => {
                self.senders_are_authenticated
                    || rule.channel.is_some()
                    || rule.chats.is_some()
                    || rule.authors.is_some()
            }
            None => self.senders_are_authenticated,
        }
    }

    /// Returns whether an author may answer a request of these approvers. If only `*` permits the author, the rules
    /// must also admit the author.
    fn may_answer(&self, answer: &PromptAnswer, approvers: &[String]) -> bool {
        let is_named = approvers.contains(&self.author_id(&answer.author));
        !answer.author.is_bot && (is_named || self.admits(&answer.address, &answer.author))
    }

    fn author_id(&self, author: &Author) -> String {
        format!("{}:{}", self.channel, author.id)
    }

    /// Returns whether a message of a program exceeds the limit. A message of a person resets the counter.
    fn is_loop(&self, message: &Message) -> bool {
        let settings = self.gateway.config().channels.bots;
        let mut bots = self.bots.lock().unwrap_or_else(PoisonError::into_inner);
        if !message.author.is_bot {
            bots.remove(&message.address.chat);
            return false;
        }
        let count = bots.get(&message.address.chat).copied().unwrap_or_default();
        !settings.accept || count >= settings.max_in_a_row
    }

    /// Counts an accepted message of a program. One that is sent again because it could not be stored counts once.
    fn count_program(&self, chat: String) {
        let mut bots = self.bots.lock().unwrap_or_else(PoisonError::into_inner);
        if bots.len() >= MAX_COUNTED_CHATS {
            bots.clear();
        }
        let count = bots.entry(chat).or_default();
        *count = count.saturating_add(1);
    }

    fn chat_address(&self, address: Address) -> ChatAddress {
        ChatAddress { channel: self.channel.clone(), chat: address.chat, thread: address.thread }
    }

    async fn store_attachments(
        &self,
        message: &mut Message,
    ) -> Result<Result<Vec<StoredAttachment>, String>, InboxError> {
        let size: usize = message.attachments.iter().map(|attachment| attachment.bytes.len()).sum();
        let limit = self.gateway.config().limits.attachment_bytes;
        if size > limit {
            return Ok(Err(format!("The attachments have {size} bytes; the limit is {limit}.")));
        }
        let mut stored = Vec::with_capacity(message.attachments.len());
        for attachment in message.attachments.drain(..) {
            let size = u64::try_from(attachment.bytes.len()).unwrap_or(u64::MAX);
            let hash = match self.gateway.attachments().put(attachment.bytes).await {
                Ok(hash) => hash,
                Err(error) if error.kind() == std::io::ErrorKind::QuotaExceeded => {
                    return Ok(Err(
                        "The gateway has no space for attachments. Its operator must free space.".to_owned()
                    ));
                }
                Err(error) => return Err(internal(&error)),
            };
            stored.push(StoredAttachment { name: attachment.name, media_type: attachment.media_type, hash, size });
        }
        Ok(Ok(stored))
    }

    /// Returns what a token means, and who may answer. `None`: the token is not valid, or not of this chat.
    async fn meaning(&self, answer: &PromptAnswer) -> Result<Option<(PermissionId, Meaning, Approvers)>, GatewayError> {
        let store = self.gateway.store();
        let Some(id) = request_of(&answer.token) else { return Ok(None) };
        let Some(permission) = store.permission(id).await? else { return Ok(None) };
        let filter = DeliveryFilter { turn: Some(permission.turn), ..DeliveryFilter::default() };
        for delivery in all_deliveries(store, filter).await? {
            let is_here = delivery.address.channel == self.channel && delivery.address.chat == answer.address.chat;
            let Ok(body) = delivery.body.to::<Body>() else { continue };
            let Content::Prompt(prompt) = body.content else { continue };
            if !is_here || prompt.id != id.to_string() {
                continue;
            }
            let matches = |token: &str| bool::from(token.as_bytes().ct_eq(answer.token.as_bytes()));
            let at = prompt.buttons.iter().position(|button| matches(&button.token));
            if let Some(meaning) = at.and_then(|at| body.meanings.into_iter().nth(at)) {
                return Ok(Some((id, meaning, permission.body.to()?)));
            }
        }
        Ok(None)
    }

    async fn decide(&self, answer: PromptAnswer) -> Result<PromptDecision, GatewayError> {
        let Some((id, meaning, Approvers { approvers })) = self.meaning(&answer).await? else {
            return Ok(PromptDecision::Closed);
        };
        if !self.may_answer(&answer, &approvers) {
            return Ok(PromptDecision::NotAllowed);
        }
        let caller = Caller { id: self.author_id(&answer.author), answers_all: false };
        let message = meaning.message.or(answer.message);
        match self.gateway.answer_permission(id, meaning.decision.into(), message, &caller).await {
            Ok(AnswerResult::Applied(_)) => Ok(PromptDecision::Applied),
            Ok(AnswerResult::Closed(_) | AnswerResult::Expired(_))
            | Err(GatewayError::Store(StoreError::NotFound { .. })) => Ok(PromptDecision::Closed),
            Err(GatewayError::Forbidden { .. }) => Ok(PromptDecision::NotAllowed),
            Err(error) => Err(error),
        }
    }
}

/// Returns the outcome of a message for the channel.
fn receipt(accepted: Result<AcceptedMessage, GatewayError>) -> Result<Receipt, InboxError> {
    match accepted {
        Ok(accepted) if accepted.is_duplicate => Ok(Receipt::Duplicate),
        Ok(accepted) => Ok(Receipt::Accepted { turn: accepted.turn.turn.to_string() }),
        Err(error @ GatewayError::Store(StoreError::QueueFull { .. })) => Ok(Receipt::Busy(error.to_string())),
        Err(
            error @ (GatewayError::Rejected { .. } | GatewayError::Invalid { .. } | GatewayError::Forbidden { .. }),
        ) => Ok(Receipt::Refused(error.to_string())),
        Err(error) => Err(internal(&error)),
    }
}

#[async_trait]
impl Inbox for ChannelInbox {
    fn is_admitted(&self, address: &Address, author: &Author) -> bool {
        let accepts_kind = !author.is_bot || self.gateway.config().channels.bots.accept;
        accepts_kind && self.admits(address, author)
    }

    async fn message(&self, mut message: Message) -> Result<Receipt, InboxError> {
        let _entered = self.order.enter(&message.address).await;
        if message.is_addressed {
            let known = self.gateway.accepted_before(&self.channel, &message.ids, None).await;
            if let Some(receipt) = known.transpose().map(receipt) {
                return receipt;
            }
        }
        let ignored =
            !message.is_addressed || !self.admits(&message.address, &message.author) || self.is_loop(&message);
        if ignored {
            return Ok(Receipt::Ignored);
        }
        let attachments = match self.store_attachments(&mut message).await? {
            Ok(attachments) => attachments,
            Err(refusal) => return Ok(Receipt::Refused(refusal)),
        };
        let program_chat = message.author.is_bot.then(|| message.address.chat.clone());
        let incoming = IncomingMessage {
            target: MessageTarget::Address(self.chat_address(message.address)),
            channel_ids: message.ids,
            idempotency: None,
            author: message.author.id,
            text: message.text,
            attachments,
            mode: MessageMode::Queue,
        };
        let receipt = receipt(self.gateway.accept(incoming).await)?;
        if let (Receipt::Accepted { .. }, Some(chat)) = (&receipt, program_chat) {
            self.count_program(chat);
        }
        Ok(receipt)
    }

    async fn edit(&self, edit: Edit) -> Result<EditOutcome, InboxError> {
        if edit.text.trim().is_empty() {
            return Ok(EditOutcome::Refused("the new text must not be empty".to_owned()));
        }
        match self.gateway.edit_message(&self.channel, &edit.id, &edit.text).await {
            Ok(store::EditOutcome::Replaced(_)) => Ok(EditOutcome::Edited),
            Ok(store::EditOutcome::TooLate(_)) => Ok(EditOutcome::NotWaiting),
            Ok(store::EditOutcome::Unknown) | Err(GatewayError::Store(StoreError::NotFound { .. })) => {
                Ok(EditOutcome::Unknown)
            }
            // The chat gets a notice.
            Err(GatewayError::Rejected { reason }) => Ok(EditOutcome::Refused(reason)),
            Err(error) => Err(internal(&error)),
        }
    }

    async fn delete(&self, id: &str) -> Result<(), InboxError> {
        self.gateway.delete_message(&self.channel, id).await.map_err(|error| internal(&error))
    }

    async fn answer(&self, answer: PromptAnswer) -> Result<PromptDecision, InboxError> {
        self.decide(answer).await.map_err(|error| internal(&error))
    }

    async fn command(&self, command: ChatCommand) -> Result<CommandReply, InboxError> {
        if command.author.is_bot || !self.admits(&command.address, &command.author) {
            return Ok(CommandReply { text: "You may not use this gateway.".to_owned() });
        }
        let address = self.chat_address(command.address.clone());
        match commands::run(&self.gateway, address, &command).await {
            Ok(text) => Ok(CommandReply { text }),
            Err(error) if is_for_people(&error) => {
                Ok(CommandReply { text: teamster_channel::render::escape(&error.to_string()) })
            }
            Err(error) => Err(internal(&error)),
        }
    }

    async fn state(&self, key: &str) -> Result<Option<Value>, InboxError> {
        let state = self.gateway.store().channel_state(format!("{}:{key}", self.channel)).await;
        let state = state.map_err(|error| internal(&error))?;
        state.map(|state| state.to()).transpose().map_err(|error| internal(&error))
    }

    async fn set_state(&self, key: &str, state: Value) -> Result<(), InboxError> {
        let state = Json::of(&state).map_err(|error| internal(&error))?;
        let stored = self.gateway.store().set_channel_state(format!("{}:{key}", self.channel), state).await;
        stored.map_err(|error| internal(&error))
    }
}

/// Returns an error for the channel, and perhaps for its program. The cause may name files of the gateway: it is in the log.
fn internal(error: &(dyn std::error::Error + 'static)) -> InboxError {
    if let Some(passing @ (GatewayError::ShuttingDown | GatewayError::Unavailable { .. })) = error.downcast_ref() {
        return InboxError(passing.to_string());
    }
    tracing::error!(error, "an item that a channel received could not be accepted");
    InboxError("internal error of the gateway; its log has the cause".to_owned())
}

/// Returns whether the text of an error is for the people of a chat.
fn is_for_people(error: &GatewayError) -> bool {
    match error {
        GatewayError::Rejected { .. } | GatewayError::Invalid { .. } | GatewayError::Forbidden { .. } => true,
        GatewayError::Store(error) => matches!(
            error,
            StoreError::NotFound { .. }
                | StoreError::VersionConflict { .. }
                | StoreError::ConversationBusy { .. }
                | StoreError::WrongState { .. }
                | StoreError::QueueFull { .. }
        ),
        _ => false,
    }
}
