//! The input of clients and channels: messages, and requests to abort or retry turns.

use serde::{Deserialize, Serialize};
use teamster_store::{
    Accepted, AcceptedTurn, CancelOutcome, CancelScope, ChatAddress, Claim, ConversationId, Effects, EndState,
    IdempotencyKey, Json, Message, MessageId, MessageMode, NewConversation, NewMessage, Queue, QueueLimits, StoreError,
    Target, Turn, TurnId,
};
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::conversations::{not_found, rejected};
use super::ending::{TurnAnswer, TurnEnding, finished};
use super::gateway::{Gateway, Shared};
use super::running::TurnCommand;
use crate::attachments::StoredAttachment;
use crate::channels::deliveries::Recipient;
use crate::config::{ConversationSettings, Origin, resolve, resolve_message};
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::failpoints::failpoint;
use crate::hooks::{HookEvent, Verdict};
use crate::telemetry::spans::current_trace;

/// The part of the queue of all conversations that one author of the API can take: a quarter.
const QUEUE_SHARE: u32 = 4;

/// A message to accept.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// Its conversation.
    pub target: MessageTarget,
    /// The channel's own ids.
    pub channel_ids: Vec<String>,
    /// The caller's idempotency key.
    pub idempotency: Option<IdempotencyKey>,
    /// The id of its author.
    pub author: String,
    /// Its text.
    pub text: String,
    /// Its attachments, which are stored already.
    pub attachments: Vec<StoredAttachment>,
    /// Whether it may join the running turn.
    pub mode: MessageMode,
}

/// The conversation of a message.
#[derive(Clone, Debug)]
pub enum MessageTarget {
    /// A conversation that exists.
    Conversation(ConversationId),
    /// The conversation at this address, which is created if there is none.
    Address(ChatAddress),
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedMessage {
    /// Its turn.
    pub turn: AcceptedTurn,
    /// Whether it was accepted before.
    pub is_duplicate: bool,
}

/// The stored fields of a message besides its text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MessageDetails {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<StoredAttachment>,
    /// The trace of the message, so that the spans of its turn belong to it, even after a restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<String>,
    /// It came through the API, into the conversation of a chat.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) by_api: bool,
    /// The schedule that has sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schedule_id: Option<String>,
    /// The agent has created this schedule.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) by_agent: bool,
}

impl Gateway {
    /// Accepts a message once. It is durable when this returns.
    ///
    /// # Errors
    /// A rule or a hook rejects it, a queue is full, or the idempotency key was used with another body.
    pub async fn accept(&self, message: IncomingMessage) -> Result<AcceptedMessage, GatewayError> {
        let span = tracing::info_span!("message", channel = Empty, conversation = Empty, turn = Empty);
        let accepted = self.accept_once(message).instrument(span).await;
        accepted.inspect_err(|_| self.shared.metrics.message_refused())
    }

    /// Returns the first outcome of a message that was accepted before, by its idempotency key or by one of its ids in the
    /// channel. Rules and hooks permitted it then and are not checked again.
    ///
    /// # Errors
    /// The idempotency key was used with another body, or the message was deleted since.
    pub async fn accepted_before(
        &self,
        channel: &str,
        channel_ids: &[String],
        idempotency: Option<&IdempotencyKey>,
    ) -> Result<Option<AcceptedMessage>, GatewayError> {
        if channel_ids.is_empty() && idempotency.is_none() {
            return Ok(None);
        }
        let known = self.shared.store.known_message(channel.to_owned(), channel_ids.to_vec(), idempotency.cloned());
        let Some(known) = known.await? else { return Ok(None) };
        let accepted = accepted_message(known)?;
        self.shared.metrics.message_accepted(channel, true);
        Ok(Some(accepted))
    }

    async fn accept_once(&self, message: IncomingMessage) -> Result<AcceptedMessage, GatewayError> {
        let shared = &self.shared;
        let channel = match &message.target {
            MessageTarget::Address(address) => address.channel.as_str(),
            MessageTarget::Conversation(_) => "http",
        };
        if let Some(known) = self.accepted_before(channel, &message.channel_ids, message.idempotency.as_ref()).await? {
            return Ok(known);
        }
        if shared.stop.is_cancelled() {
            return Err(GatewayError::ShuttingDown);
        }
        if message.text.trim().is_empty() && message.attachments.is_empty() {
            let problem = "must not be empty: send a text or an attachment".to_owned();
            return Err(GatewayError::Invalid { field: "text", problem });
        }
        let (address, target) = self.target(&message).await?;
        let full_share = self.full_share(&message, &address).await?;
        let conversation_id = match &message.target {
            MessageTarget::Conversation(id) => Some(id.to_string()),
            MessageTarget::Address(_) => None,
        };
        let event = HookEvent::MessageAccepted {
            conversation_id,
            channel: address.channel.clone(),
            chat: address.chat.clone(),
            author: message.author.clone(),
            text: message.text.clone(),
        };
        let text = shared.judged(&event).await?;
        let new = shared.new_message(message, text, &address, target)?;
        // A message that was accepted before is a duplicate, even if the queue is full.
        let limits = if full_share.is_some() { QueueLimits { chat: 0, total: 0 } } else { self.queue_limits() };
        let mode = new.mode;
        failpoint!("accept.before");
        let uncounted = shared.metrics.write_started();
        let accepted = match shared.store.accept(new, limits, shared.clock.now()).await {
            Err(StoreError::QueueFull { queue, limit }) => {
                let (queue, limit) = full_share.map_or((queue, limit), |share| (Queue::Author, share));
                return Err(StoreError::QueueFull { queue, limit }.into());
            }
            other => other?,
        };
        failpoint!("accept.after");
        let AcceptedMessage { turn, is_duplicate } = accepted_message(accepted)?;
        shared.metrics.message_accepted(&address.channel, is_duplicate);
        drop(uncounted);
        Span::current()
            .record("channel", &address.channel)
            .record("conversation", display(turn.conversation))
            .record("turn", display(turn.turn));
        if !is_duplicate {
            self.announce_growth(turn.conversation);
            if mode == MessageMode::Steer {
                self.offer_to_running(turn);
            }
        }
        Ok(AcceptedMessage { turn, is_duplicate })
    }

    /// Returns the limits of the queues.
    pub fn queue_limits(&self) -> QueueLimits {
        let limits = &self.shared.config.limits;
        QueueLimits { chat: limits.queue_per_chat, total: limits.queue_total }
    }

    /// Returns the share of the queue of all conversations, if the author of a message has filled it. A chat has a queue of its own.
    async fn full_share(&self, message: &IncomingMessage, address: &ChatAddress) -> Result<Option<u32>, GatewayError> {
        let share = self.shared.config.limits.queue_total / QUEUE_SHARE;
        if share == 0 || !matches!(message.target, MessageTarget::Conversation(_)) {
            return Ok(None);
        }
        let waiting = self.shared.store.waiting_turns(address.channel.clone(), message.author.clone(), share).await?;
        Ok((waiting >= share).then_some(share))
    }

    /// Returns the address of a message, and its conversation as the store takes it. Rules may reject it.
    async fn target(&self, message: &IncomingMessage) -> Result<(ChatAddress, Target), GatewayError> {
        let shared = &self.shared;
        let author = message.author.as_str();
        match &message.target {
            MessageTarget::Conversation(id) => {
                let conversation = shared.store.conversation(*id, shared.clock.now()).await?;
                let conversation = conversation.ok_or_else(|| not_found(*id))?;
                let settings: ConversationSettings = conversation.settings.to()?;
                let ChatAddress { channel, chat, .. } = &conversation.address;
                let origin = Origin { channel, chat, author };
                let agent = Some(conversation.agent.as_str());
                resolve_message(&shared.config, agent, &settings, origin, true).ok_or_else(rejected)?;
                Ok((conversation.address, Target::Existing(*id)))
            }
            MessageTarget::Address(address) => {
                let origin = Origin { channel: &address.channel, chat: &address.chat, author };
                let settings = ConversationSettings::default();
                let resolved = resolve(&shared.config, None, &settings, origin).ok_or_else(rejected)?;
                let new = NewConversation {
                    id: ConversationId::new(Uuid::now_v7()),
                    address: address.clone(),
                    agent: resolved.agent,
                    title: None,
                    settings: Json::of(&settings)?,
                };
                Ok((address.clone(), Target::Address(new)))
            }
        }
    }

    /// Offers a message to the turn that runs in its conversation, if that turn runs in this process.
    fn offer_to_running(&self, accepted: AcceptedTurn) {
        if let Some(turn) = self.shared.running.of_conversation(accepted.conversation) {
            self.shared.running.send(turn, TurnCommand::Steer(accepted.turn));
        }
    }

    /// Aborts a turn that waits, or requests the abort of one that runs.
    pub async fn abort_turn(&self, turn: TurnId) -> Result<CancelOutcome, GatewayError> {
        self.cancel(turn, CancelScope::Open).await
    }

    /// Aborts a turn of this scope.
    pub(super) async fn cancel(&self, turn: TurnId, scope: CancelScope) -> Result<CancelOutcome, GatewayError> {
        let shared = &self.shared;
        let found = shared.store.turn(turn).await?;
        let id = found.ok_or_else(|| turn_not_found(turn))?.conversation;
        let conversation = shared.store.conversation(id, self.now()).await?.ok_or_else(|| not_found(id))?;
        let ending = TurnEnding { state: EndState::Aborted, code: None, error: None };
        let on_turn = Some((turn, conversation.epoch));
        let to = Recipient { conversation: id, address: &conversation.address, turn: on_turn, now: self.now() };
        // A turn that is queued again can be aborted again.
        let name = format!("aborted-{}", conversation.last_seq);
        let effects = Effects {
            events: vec![shared.event(&ending.event(), Some(turn))?],
            deliveries: ending.deliveries(&to, TurnAnswer::default(), &name)?,
        };
        let outcome = shared.store.cancel_turn(turn, scope, effects, self.now()).await?;
        match outcome {
            CancelOutcome::Aborted => {
                shared.hooks.notify(finished(id, turn, EndState::Aborted, None));
                self.announce_growth(id);
            }
            CancelOutcome::Requested => shared.running.send(turn, TurnCommand::Abort),
            CancelOutcome::Unchanged(_) => {}
        }
        Ok(outcome)
    }

    /// Queues a failed or aborted turn again.
    pub async fn retry_turn(&self, turn: TurnId) -> Result<Turn, GatewayError> {
        let found = self.shared.store.turn(turn).await?;
        let found = found.ok_or_else(|| turn_not_found(turn))?;
        let details = found.message.details.to()?;
        let event = queued_event(found.message.id, &found.message.author, &found.message.text, &details);
        let event = self.shared.event(&event, Some(turn))?;
        let requeued =
            self.shared.store.requeue_turn(turn, self.queue_limits(), Effects::events(vec![event]), self.now()).await?;
        self.announce_growth(requeued.conversation);
        Ok(requeued)
    }
}

impl Shared {
    /// Returns the text of a message after its hooks.
    ///
    /// # Errors
    /// A hook rejects it.
    pub(super) async fn judged(&self, event: &HookEvent) -> Result<String, GatewayError> {
        match self.hooks.judge(event).await {
            Verdict::Accept(text) => Ok(text),
            Verdict::Reject(reason) => Err(GatewayError::Rejected { reason }),
            Verdict::Unavailable(reason) => Err(GatewayError::Unavailable { reason }),
        }
    }

    fn new_message(
        &self,
        message: IncomingMessage,
        text: String,
        address: &ChatAddress,
        target: Target,
    ) -> Result<NewMessage, GatewayError> {
        let origin = Origin { channel: &address.channel, chat: &address.chat, author: &message.author };
        let by_api = matches!(message.target, MessageTarget::Conversation(_)) && origin.is_chat();
        let (id, turn) = (MessageId::new(Uuid::now_v7()), TurnId::new(Uuid::now_v7()));
        let attachments = message.attachments;
        let details = MessageDetails { attachments, trace: current_trace(), by_api, ..MessageDetails::default() };
        let event = self.event(&queued_event(id, &message.author, &text, &details), Some(turn))?;
        Ok(NewMessage {
            id,
            turn,
            target,
            channel_ids: message.channel_ids,
            idempotency: message.idempotency,
            author: message.author,
            text,
            details: Json::of(&details)?,
            mode: message.mode,
            event,
        })
    }
}

/// Returns whether a message came through the API into the conversation of a chat.
pub(crate) fn is_by_api(message: &Message) -> serde_json::Result<bool> {
    Ok(message.details.to::<MessageDetails>()?.by_api)
}

/// Returns the trace of a claimed message, if it has one.
pub(super) fn trace_of(claim: &Claim) -> Option<String> {
    // An unreadable document is reported when the turn reads its attachments.
    claim.turn.message.details.to::<MessageDetails>().ok()?.trace
}

fn queued_event(id: MessageId, author: &str, text: &str, details: &MessageDetails) -> GatewayEvent {
    GatewayEvent::TurnQueued {
        message_id: id.to_string(),
        author: author.to_owned(),
        text: text.to_owned(),
        attachments: details.attachments.iter().map(|attachment| attachment.name.clone()).collect(),
        schedule_id: details.schedule_id.clone(),
        by_agent: details.by_agent,
    }
}

fn accepted_message(accepted: Accepted) -> Result<AcceptedMessage, GatewayError> {
    match accepted {
        Accepted::New(turn) => Ok(AcceptedMessage { turn, is_duplicate: false }),
        Accepted::Duplicate(turn) => Ok(AcceptedMessage { turn, is_duplicate: true }),
        Accepted::Deleted => {
            let reason = "this message was accepted before, and its conversation has been deleted since".to_owned();
            Err(GatewayError::Rejected { reason })
        }
    }
}

fn turn_not_found(id: TurnId) -> GatewayError {
    StoreError::NotFound { entity: teamster_store::Entity::Turn, id: id.to_string() }.into()
}
