//! Turns: their state and result, aborts and retries.

use std::time::Duration;

use axum::extract::State as Extract;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use teamster_store::{CancelOutcome, ChatAddress, Turn, TurnId, TurnState};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::audit::audit_from;
use super::conversations::find as find_conversation;
use super::extract::{Authenticated, Id, Params, complete};
use super::messages::Mode;
use super::problem::{Problem, ProblemCode, Result};
use super::state::State;
use super::wire::{Time, document, read};
use crate::access::Scope;
use crate::attachments::StoredAttachment;
use crate::config::Origin;
use crate::engine::{Gateway, StreamError, is_by_api};

/// The longest wait in seconds.
const MAX_WAIT: u64 = 60;

/// How long the call waits.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct TurnQuery {
    /// Waits this many seconds for the end of the turn.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u64>,
}

/// The state of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnState)]
pub(super) enum StateName {
    /// It waits.
    Queued,
    /// An agent works on it.
    Running,
    /// It has ended with an answer.
    Done,
    /// It has failed. It can be retried.
    Failed,
    /// It was aborted. It can be retried.
    Aborted,
}

/// The agent's work on one message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Turn)]
pub(super) struct TurnView {
    /// Its id.
    id: Uuid,
    /// Its conversation.
    conversation_id: Uuid,
    /// Its message.
    message: MessageView,
    /// Its state.
    state: StateName,
    /// The number of attempts that were started.
    attempts: u32,
    /// Whether its abort was requested.
    abort_requested: bool,
    /// The running turn that its message joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    joined_turn_id: Option<Uuid>,
    /// The result of the run (a `RunResult`), if the turn has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    result: Option<Box<RawValue>>,
    /// Why it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<TurnError>,
    /// What all attempts have used.
    usage: UsageView,
    /// The number of the event `turn_queued`.
    seq: u64,
    /// When its first attempt started.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Message)]
pub(super) struct MessageView {
    /// Its id.
    pub(super) id: Uuid,
    /// Who wrote it.
    pub(super) author: String,
    /// Its text.
    pub(super) text: String,
    /// Its attachments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) attachments: Vec<AttachmentView>,
    /// Whether it may join a running turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<Mode>,
    /// When it was accepted.
    pub(super) at: Time,
}

/// An attachment.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Attachment)]
pub(super) struct AttachmentView {
    /// The file name, for people.
    name: String,
    /// The media type.
    media_type: String,
    /// The hash, with which the file is downloaded.
    hash: String,
    /// The size in bytes.
    size: u64,
}

/// Why a turn has failed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TurnError {
    /// The stable code.
    code: String,
    /// The text for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// Tokens and cost.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Usage)]
pub(super) struct UsageView {
    /// Input tokens.
    input_tokens: u64,
    /// Output tokens.
    output_tokens: u64,
    /// The cost in US dollars.
    cost_usd: f64,
}

/// What is read of a stored result.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResultFields {
    pub(super) text: String,
    pub(super) final_text: String,
    pub(super) error: Option<ErrorFields>,
}

/// What is read of the error in a stored result.
#[derive(Deserialize)]
pub(super) struct ErrorFields {
    pub(super) message: Option<String>,
}

/// Returns a turn, or waits for its end before.
#[utoipa::path(get, path = "/v1/turns/{id}", tag = "turns", operation_id = "getTurn",
    params(("id" = Uuid, Path, description = "The turn."), TurnQuery), responses((status = 200, body = TurnView)))]
pub(super) async fn get(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<TurnId>,
    Params(query): Params<TurnQuery>,
) -> Result<axum::Json<TurnView>> {
    caller.require(Scope::Read)?;
    let wait = query.wait.unwrap_or_default();
    if wait > MAX_WAIT {
        return Err(Problem::invalid("wait", format_args!("must be at most {MAX_WAIT} seconds")));
    }
    let mut turn = find(&api.gateway, id).await?;
    if wait > 0 && !is_ended(&turn) {
        let limit = Duration::from_secs(wait);
        let closing = api.gateway.closing().clone();
        let ended = closing.run_until_cancelled_owned(tokio::time::timeout(limit, ended(&api.gateway, &turn))).await;
        turn = match ended {
            Some(Ok(turn)) => turn?,
            // The time has passed, or the gateway stops: the state as it is now.
            Some(Err(_)) | None => find(&api.gateway, id).await?,
        };
    }
    view(&turn).map(axum::Json)
}

/// Aborts a turn. One that runs ends soon after the call.
#[utoipa::path(post, path = "/v1/turns/{id}/abort", tag = "turns", operation_id = "abortTurn",
    params(("id" = Uuid, Path, description = "The turn.")), responses((status = 202, body = TurnView)))]
pub(super) async fn abort(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<TurnId>,
) -> Result<(StatusCode, axum::Json<TurnView>)> {
    caller.require(Scope::Send)?;
    let gateway = api.gateway.clone();
    let turn = complete(async move {
        match gateway.abort_turn(id).await? {
            CancelOutcome::Aborted | CancelOutcome::Requested => {
                audit_from(&gateway, &caller, "turn.abort", &id.to_string()).await;
            }
            CancelOutcome::Unchanged(TurnState::Aborted) => {}
            CancelOutcome::Unchanged(_) => {
                return Err(Problem::new(ProblemCode::Conflict, format!("the turn {id} has ended already")));
            }
        }
        find(&gateway, id).await
    });
    Ok((StatusCode::ACCEPTED, axum::Json(view(&turn.await?)?)))
}

/// Queues a failed or aborted turn again, for its author or an admin.
#[utoipa::path(post, path = "/v1/turns/{id}/retry", tag = "turns", operation_id = "retryTurn",
    params(("id" = Uuid, Path, description = "The turn.")), responses((status = 202, body = TurnView)))]
pub(super) async fn retry(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<TurnId>,
) -> Result<(StatusCode, axum::Json<TurnView>)> {
    caller.require(Scope::Send)?;
    let gateway = api.gateway.clone();
    let turn = complete(async move {
        // The turn runs as its author again.
        if !caller.is_admin() && !is_author(&gateway, &caller, &find(&gateway, id).await?).await? {
            let detail = "only its author, or a token with the scope admin, can retry a turn";
            return Err(Problem::new(ProblemCode::Forbidden, detail));
        }
        let turn = gateway.retry_turn(id).await?;
        audit_from(&gateway, &caller, "turn.retry", &id.to_string()).await;
        Ok(turn)
    });
    Ok((StatusCode::ACCEPTED, axum::Json(view(&turn.await?)?)))
}

/// Returns whether the caller has sent the message of a turn. This is true only for a message that came through the
/// API: an author of a chat may have the name of the token's owner.
async fn is_author(gateway: &Gateway, caller: &Authenticated, turn: &Turn) -> Result<bool> {
    let ChatAddress { channel, chat, .. } = find_conversation(gateway, turn.conversation).await?.address;
    let author = turn.message.author.as_str();
    let is_chat = Origin { channel: &channel, chat: &chat, author }.is_chat();
    let is_through_api = !is_chat || is_by_api(&turn.message).map_err(|error| Problem::internal(&error))?;
    Ok(is_through_api && author == caller.identity.owner)
}

/// Waits for the end of a turn, with the events of its conversation.
async fn ended(gateway: &Gateway, turn: &Turn) -> Result<Turn> {
    let (id, conversation) = (turn.id, turn.conversation);
    loop {
        let last = gateway.store().conversation(conversation, gateway.now()).await?.map(|found| found.last_seq);
        let mut events = gateway.events(conversation, last.unwrap_or_default());
        loop {
            // The stream was opened before, so that it contains an end after this read.
            let turn = find(gateway, id).await?;
            if is_ended(&turn) {
                return Ok(turn);
            }
            match next_end(&mut events).await {
                Ok(()) => {}
                Err(StreamError::Pruned { .. } | StreamError::FeedPruned { .. }) => break,
                Err(StreamError::Deleted) => return Err(Problem::not_found("turn", id)),
                Err(StreamError::Store(error)) => return Err(error.into()),
            }
        }
    }
}

/// Waits for the next end of a turn. A turn that joined another one ends with it.
async fn next_end(events: &mut crate::engine::EventStream) -> Result<(), StreamError> {
    while events.next().await?.kind != "turn_finished" {}
    Ok(())
}

async fn find(gateway: &Gateway, id: TurnId) -> Result<Turn> {
    gateway.store().turn(id).await?.ok_or_else(|| Problem::not_found("turn", id))
}

const fn is_ended(turn: &Turn) -> bool {
    matches!(turn.state, TurnState::Done | TurnState::Failed | TurnState::Aborted)
}

fn view(turn: &Turn) -> Result<TurnView> {
    let error = error(turn);
    Ok(TurnView {
        id: turn.id.uuid(),
        conversation_id: turn.conversation.uuid(),
        message: message(turn)?,
        state: turn.state.into(),
        attempts: turn.attempts,
        abort_requested: turn.abort_requested,
        joined_turn_id: turn.joined.map(TurnId::uuid),
        result: turn.result.as_ref().map(document).transpose()?,
        error,
        usage: turn.usage.into(),
        seq: turn.queued_seq.get(),
        started_at: turn.started_at.map(Time),
        ended_at: turn.ended_at.map(Time),
    })
}

/// Returns the message of a turn.
pub(super) fn message(turn: &Turn) -> Result<MessageView> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Details {
        attachments: Vec<StoredAttachment>,
    }
    let details: Details = read(&turn.message.details)?;
    let attachments = details.attachments.into_iter().map(|attachment| {
        let StoredAttachment { name, media_type, hash, size } = attachment;
        AttachmentView { name, media_type, hash, size }
    });
    Ok(MessageView {
        id: turn.message.id.uuid(),
        author: turn.message.author.clone(),
        text: turn.message.text.clone(),
        attachments: attachments.collect(),
        mode: Some(turn.message.mode.into()),
        at: Time(turn.message.accepted_at),
    })
}

/// Returns why a turn has failed.
pub(super) fn error(turn: &Turn) -> Option<TurnError> {
    let code = turn.error_code.clone()?;
    let fields: Option<ResultFields> = turn.result.as_ref().and_then(|result| result.to().ok());
    let message = fields.and_then(|fields| fields.error?.message);
    Some(TurnError { code, message })
}

impl TurnError {
    /// Returns an error from a log.
    pub(super) const fn new(code: String, message: Option<String>) -> Self {
        Self { code, message }
    }
}

impl From<TurnState> for StateName {
    fn from(state: TurnState) -> Self {
        match state {
            TurnState::Queued => Self::Queued,
            TurnState::Running => Self::Running,
            TurnState::Done => Self::Done,
            TurnState::Failed => Self::Failed,
            TurnState::Aborted => Self::Aborted,
        }
    }
}

impl From<teamster_store::Usage> for UsageView {
    fn from(usage: teamster_store::Usage) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a cost of more than 9 billion dollars may be rounded")]
        let cost_usd = usage.cost_micros as f64 / 1e6;
        Self { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens, cost_usd }
    }
}
