//! Sends messages.

use axum::extract::State as Extract;
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use teamster_store::{ConversationId, IdempotencyKey, MessageMode};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{Authenticated, Body, Id, complete};
use super::problem::{Problem, ProblemCode, Result};
use super::settings::NAME_LENGTH;
use super::state::State;
use super::wire::check_length;
use crate::access::Scope;
use crate::attachments::StoredAttachment;
use crate::engine::{AcceptedMessage, Gateway, IncomingMessage, MessageTarget};

/// The largest number of attachments of a message.
const MAX_ATTACHMENTS: usize = 32;

/// The largest number of characters of an idempotency key.
const KEY_LENGTH: usize = 255;

/// A message to send.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewMessage {
    /// The text. It may be empty if there are attachments.
    #[serde(default)]
    #[schema(required = true, pattern = r"^[^\x00]*$")]
    text: String,
    /// Files that were uploaded before.
    #[serde(default)]
    #[schema(max_items = 32)]
    attachments: Vec<NewAttachment>,
    /// The author. Only an admin can name an author other than the owner of the token.
    #[schema(max_length = 500, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    author: Option<String>,
    /// Whether the message may join the running turn.
    #[serde(default)]
    mode: Mode,
}

/// An uploaded file of a message.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewAttachment {
    /// The hash that the upload returned.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    hash: String,
    /// The file name, for people.
    #[schema(max_length = 255, pattern = r"^[^\x00-\x1f\x7f-\x9f]*$")]
    name: String,
    /// The media type.
    #[serde(default = "bytes")]
    #[schema(max_length = 255, default = "application/octet-stream", pattern = "^[!-.0-~]+/[!-.0-~]+$")]
    media_type: String,
}

/// Whether a message may join a running turn.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = MessageMode)]
pub(super) enum Mode {
    /// It waits for its own turn.
    #[default]
    Queue,
    /// It joins the running turn if possible.
    Steer,
}

/// An accepted message. It is durable, and its turn will run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AcceptedMessage)]
pub(super) struct AcceptedView {
    /// The message.
    message_id: Uuid,
    /// The turn that answers it.
    turn_id: Uuid,
    /// The number of the event `turn_queued`.
    seq: u64,
}

/// Sends a message. It is durable when the call returns.
///
/// A repeated call with the same `Idempotency-Key` and the same body returns the same response.
#[utoipa::path(post, path = "/v1/conversations/{id}/messages", tag = "messages", operation_id = "sendMessage",
    params(("id" = Uuid, Path, description = "The conversation."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]+$",
            description = "A key of the caller. A repeated call with the same key sends no second message.")),
    request_body = NewMessage, responses((status = 202, body = AcceptedView)))]
pub(super) async fn send(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
    headers: HeaderMap,
    Body(new): Body<NewMessage>,
) -> Result<(StatusCode, axum::Json<AcceptedView>)> {
    caller.require(Scope::Send)?;
    check_length("text", &new.text, usize::MAX)?;
    let author = author(&caller, new.author.as_deref())?;
    let idempotency = idempotency(&headers, &caller, id, &new)?;
    if let Some(known) = api.gateway.accepted_before("http", &[], idempotency.as_ref()).await? {
        return Ok((StatusCode::ACCEPTED, axum::Json(view(known))));
    }
    let attachments = attachments(&api.gateway, &new.attachments).await?;
    let message = IncomingMessage {
        target: MessageTarget::Conversation(id),
        channel_ids: Vec::new(),
        idempotency,
        author,
        text: new.text,
        attachments,
        mode: new.mode.into(),
    };
    let gateway = api.gateway.clone();
    let accepted = complete(async move { Ok(gateway.accept(message).await?) }).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(view(accepted))))
}

fn view(accepted: AcceptedMessage) -> AcceptedView {
    AcceptedView {
        message_id: accepted.turn.message.uuid(),
        turn_id: accepted.turn.turn.uuid(),
        seq: accepted.turn.seq.get(),
    }
}

/// Returns the author of a message or a schedule: the owner of the token, unless an admin names another one.
pub(super) fn author(caller: &Authenticated, wanted: Option<&str>) -> Result<String> {
    let owner = &caller.identity.owner;
    let Some(wanted) = wanted.filter(|wanted| wanted != owner) else { return Ok(owner.clone()) };
    if !caller.is_admin() {
        let detail = "only a token with the scope admin can send messages of another author";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    }
    check_length("author", wanted, NAME_LENGTH)?;
    if wanted.trim().is_empty() {
        return Err(Problem::invalid("author", "must not be empty; leave it out for the owner of the token"));
    }
    Ok(wanted.to_owned())
}

/// Reads the idempotency key. Its scope is the token, and its body includes the conversation.
fn idempotency(
    headers: &HeaderMap,
    caller: &Authenticated,
    id: ConversationId,
    body: &NewMessage,
) -> Result<Option<IdempotencyKey>> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=KEY_LENGTH).contains(&key.len()) && !key.contains(' '));
    let Some(key) = key else {
        let problem = format_args!("must have 1 to {KEY_LENGTH} visible characters of ASCII");
        return Err(Problem::invalid("Idempotency-Key", problem));
    };
    // The order of fields and white space are ignored: the parsed body is hashed.
    let body = serde_json::to_vec(&(id, body)).map_err(|error| Problem::internal(&error))?;
    let scope = match caller.identity.token {
        Some(token) => format!("token:{token}"),
        None => format!("owner:{}", caller.identity.owner),
    };
    Ok(Some(IdempotencyKey { scope, key: key.to_owned(), body_hash: Sha256::digest(&body).into() }))
}

/// Checks that the files exist and that their sizes are within the limit.
async fn attachments(gateway: &Gateway, wanted: &[NewAttachment]) -> Result<Vec<StoredAttachment>> {
    if wanted.len() > MAX_ATTACHMENTS {
        return Err(Problem::invalid("attachments", format_args!("must be at most {MAX_ATTACHMENTS}")));
    }
    let limit = u64::try_from(gateway.config().limits.attachment_bytes).unwrap_or(u64::MAX);
    let mut total = 0_u64;
    let mut found = Vec::with_capacity(wanted.len());
    for (index, NewAttachment { hash, name, media_type }) in wanted.iter().enumerate() {
        check_length(&format!("attachments[{index}].name"), name, 255)?;
        if name.chars().any(char::is_control) {
            // The name is shown to people and to the agent.
            return Err(Problem::invalid(format!("attachments[{index}].name"), "must not contain control characters"));
        }
        check_media_type(&format!("attachments[{index}].mediaType"), media_type)?;
        let size = gateway.attachments().size(hash).await.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Problem::not_found(format_args!("attachments[{index}].hash: the file"), hash)
            }
            _ => Problem::internal(&error),
        })?;
        total = total.saturating_add(size);
        if total > limit {
            let detail = format!("the attachments of a message must have at most {limit} bytes in all");
            return Err(Problem::new(ProblemCode::PayloadTooLarge, detail));
        }
        found.push(StoredAttachment { name: name.clone(), media_type: media_type.clone(), hash: hash.clone(), size });
    }
    Ok(found)
}

/// Checks that a text looks like a media type.
fn check_media_type(field: &str, text: &str) -> Result<()> {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    let is_valid = text.len() <= 255 && text.split_once('/').is_some_and(|(kind, rest)| is_part(kind) && is_part(rest));
    let problem = "must be a media type without spaces, for example image/png";
    if is_valid { Ok(()) } else { Err(Problem::invalid(field, problem)) }
}

fn bytes() -> String {
    "application/octet-stream".to_owned()
}

impl From<Mode> for MessageMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Queue => Self::Queue,
            Mode::Steer => Self::Steer,
        }
    }
}

impl From<MessageMode> for Mode {
    fn from(mode: MessageMode) -> Self {
        match mode {
            MessageMode::Queue => Self::Queue,
            MessageMode::Steer => Self::Steer,
        }
    }
}
