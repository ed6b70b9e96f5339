//! Accepts the message of a request, and follows its turn.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Deserialize;
use teamster_store::{ConversationId, Event, MessageMode, TurnId, Usage};
use tokio::time::timeout;
use tracing::Instrument as _;

use super::answer::Answer;
use super::content::Attached;
use super::error::ApiError;
use super::prompt::{self, Prompt};
use super::request::ChatRequest;
use crate::access::Identity;
use crate::attachments::StoredAttachment;
use crate::config::ConversationSettings;
use crate::engine::{EventStream, Gateway, IncomingMessage, MessageTarget, NewConversationRequest};
use crate::event::TurnEnd;

/// The turn of a request. Dropping it before its end aborts the turn, because the client has disconnected.
pub(super) struct ChatTurn {
    guard: AbortOnDrop,
    conversation: ConversationId,
    events: EventStream,
    answer: Answer,
}

/// A step of a turn.
#[derive(Debug)]
pub(super) enum Step {
    /// The answer has more text.
    Text(String),
    /// Nothing has happened for a while.
    Silence,
    /// The turn has ended with an answer.
    Done(Usage),
    /// The turn has failed.
    Failed(ApiError),
}

/// Aborts a turn, unless it has ended.
struct AbortOnDrop {
    gateway: Gateway,
    turn: TurnId,
    has_ended: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextBody {
    text: String,
    message_id: String,
    parent_tool_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetractBody {
    message_id: String,
}

#[derive(Deserialize)]
struct StartedBody {
    attempt: u32,
}

#[derive(Deserialize)]
struct DoneBody {
    result: DoneResult,
}

#[derive(Deserialize)]
struct DoneResult {
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FinishedBody {
    state: TurnEnd,
    error_code: Option<String>,
    error: Option<String>,
}

/// Accepts a request. It is durable when this returns.
///
/// A client that disconnects in the meantime does not leave a turn behind: the work continues in a task of its own, and its result
/// is dropped.
pub(super) async fn accept(gateway: Gateway, request: ChatRequest, owner: Identity) -> Result<ChatTurn, ApiError> {
    let work = tokio::spawn(accept_now(gateway, request, owner).in_current_span());
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a request for an answer could not be accepted");
        Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error of the gateway; its log has the cause",
            None,
        ))
    })
}

async fn accept_now(gateway: Gateway, request: ChatRequest, owner: Identity) -> Result<ChatTurn, ApiError> {
    let ChatRequest { agent, agent_model, messages, conversation, metadata, .. } = request;
    let prompt = match conversation {
        Some(id) => {
            check_conversation(&gateway, id, &agent, agent_model.as_deref()).await?;
            prompt::last_only(messages)
        }
        None => prompt::with_history(messages),
    };
    let Prompt { text, attached, instructions, title } = prompt;
    let attachments = store(&gateway, attached).await?;
    let target = if let Some(id) = conversation {
        id
    } else {
        let settings = ConversationSettings { model: agent_model, instructions, metadata, ..Default::default() };
        let new = NewConversationRequest {
            channel: "http".to_owned(),
            author: owner.owner.clone(),
            agent: Some(agent),
            title,
            settings,
            fork: None,
        };
        gateway.create_conversation(new).await?.id
    };
    let message = IncomingMessage {
        target: MessageTarget::Conversation(target),
        channel_ids: Vec::new(),
        idempotency: None,
        author: owner.owner,
        text,
        attachments,
        mode: MessageMode::Queue,
    };
    let accepted = match gateway.accept(message).await {
        Ok(accepted) => accepted.turn,
        Err(error) => {
            if conversation.is_none() {
                // The conversation would stay empty forever. An error here has no effect on the client.
                _ = gateway.store().delete_conversation(target, gateway.now()).await;
            }
            return Err(error.into());
        }
    };
    Ok(ChatTurn {
        events: gateway.events(accepted.conversation, accepted.seq),
        conversation: accepted.conversation,
        guard: AbortOnDrop { gateway, turn: accepted.turn, has_ended: false },
        answer: Answer::default(),
    })
}

/// Checks that a conversation is what the request names. A model that would be ignored is an error.
async fn check_conversation(
    gateway: &Gateway,
    id: ConversationId,
    agent: &str,
    model: Option<&str>,
) -> Result<(), ApiError> {
    let found = gateway.store().conversation(id, gateway.now()).await.map_err(crate::error::GatewayError::from)?;
    let Some(found) = found else {
        let message = format!("The conversation '{id}' does not exist");
        return Err(ApiError::new(StatusCode::NOT_FOUND, message, Some("NOT_FOUND")));
    };
    let settings: ConversationSettings = found.settings.to().map_err(crate::error::GatewayError::from)?;
    if found.agent != agent || model.is_some_and(|model| settings.model.as_deref() != Some(model)) {
        let name = match &settings.model {
            Some(model) => format!("{}/{model}", found.agent),
            None => found.agent,
        };
        return Err(ApiError::invalid("model", &format!("must be '{name}', which the conversation uses")));
    }
    Ok(())
}

async fn store(gateway: &Gateway, attached: Vec<Attached>) -> Result<Vec<StoredAttachment>, ApiError> {
    let limit = gateway.config().limits.attachment_bytes;
    if attached.iter().map(|file| file.bytes.len()).fold(0, usize::saturating_add) > limit {
        let message = format!("The files of the messages have more than {limit} bytes, the limit of the gateway");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message, None));
    }
    let mut stored = Vec::with_capacity(attached.len());
    for Attached { name, media_type, bytes } in attached {
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let hash = gateway.attachments().put(bytes).await.map_err(|error| {
            tracing::error!(%error, "an attachment cannot be stored");
            ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "the gateway cannot store the files of the message", None)
        })?;
        stored.push(StoredAttachment { name, media_type, hash, size });
    }
    Ok(stored)
}

impl ChatTurn {
    /// Returns the turn.
    pub(super) const fn id(&self) -> TurnId {
        self.guard.turn
    }

    /// Returns its conversation.
    pub(super) const fn conversation(&self) -> ConversationId {
        self.conversation
    }

    /// Returns the text so far, without what is void.
    pub(super) fn text(&self) -> String {
        self.answer.text()
    }

    /// Waits for the next step. After [`Step::Done`] or [`Step::Failed`] there is none.
    pub(super) async fn next(&mut self, silence: Duration) -> Step {
        match timeout(silence, self.next_step()).await {
            Ok(step) => step,
            Err(_) => Step::Silence,
        }
    }

    async fn next_step(&mut self) -> Step {
        loop {
            let stopping = self.guard.gateway.stopping();
            let event = tokio::select! {
                biased;
                event = self.events.next() => event,
                () = stopping.cancelled() => return Step::Failed(ApiError::shutting_down()),
            };
            let step = match event {
                Ok(event) if event.turn == Some(self.guard.turn) => self.step(&event).await,
                Ok(_) => None,
                Err(error) => {
                    let message = format!("the events of the turn cannot be read: {error}");
                    Some(Step::Failed(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message, None)))
                }
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    async fn step(&mut self, event: &Event) -> Option<Step> {
        match self.read(event) {
            Ok(Some(Step::Done(_))) => {
                self.guard.has_ended = true;
                let turn = self.guard.gateway.store().turn(self.guard.turn).await;
                // The answer is complete without the numbers of tokens.
                Some(Step::Done(turn.ok().flatten().map(|turn| turn.usage).unwrap_or_default()))
            }
            Ok(step) => {
                self.guard.has_ended |= matches!(step, Some(Step::Failed(_)));
                step
            }
            Err(error) => {
                tracing::error!(%error, seq = %event.seq, "an event cannot be read");
                let message = "internal error of the gateway; its log has the cause";
                Some(Step::Failed(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message, None)))
            }
        }
    }

    fn read(&mut self, event: &Event) -> Result<Option<Step>, serde_json::Error> {
        let step = match event.kind.as_str() {
            "text" => {
                let TextBody { text, message_id, parent_tool_id } = event.body.to()?;
                // The text of a subagent is not part of the answer.
                let text = if parent_tool_id.is_none() { self.answer.add(&message_id, &text) } else { String::new() };
                (!text.is_empty()).then_some(Step::Text(text))
            }
            "retract" => {
                self.answer.retract(&event.body.to::<RetractBody>()?.message_id);
                None
            }
            "turn_started" => {
                if event.body.to::<StartedBody>()?.attempt > 1 {
                    self.answer.restart();
                }
                None
            }
            "done" if self.answer.is_empty() => {
                let text = event.body.to::<DoneBody>()?.result.text;
                let text = if text.is_empty() { text } else { self.answer.add("done", &text) };
                (!text.is_empty()).then_some(Step::Text(text))
            }
            "turn_finished" => {
                let FinishedBody { state, error_code, error } = event.body.to()?;
                Some(match state {
                    TurnEnd::Done => Step::Done(Usage::default()),
                    TurnEnd::Failed => Step::Failed(ApiError::of_turn(error_code.as_deref(), error.as_deref())),
                    TurnEnd::Aborted => {
                        let message = error.as_deref().unwrap_or("the turn was aborted");
                        Step::Failed(ApiError::of_turn(Some("ABORTED"), Some(message)))
                    }
                })
            }
            _ => None,
        };
        Ok(step)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let (gateway, turn) = (self.gateway.clone(), self.turn);
        // Without a runtime the process is ending, and no turn can be aborted.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = gateway.abort_turn(turn).await {
                tracing::error!(%error, %turn, "the turn of a client that has disconnected cannot be aborted");
            }
        });
    }
}
