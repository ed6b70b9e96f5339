//! Conversations.

use axum::extract::State as Extract;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use teamster_store::{Conversation, ConversationFilter, ConversationId, Seq, StoreError};

use super::audit::audit_from;
use super::conversation::{
    ConversationQuery, ConversationUpdate, ConversationView, ForkRequest, NewConversation, view,
};
use super::extract::{Authenticated, Body, Id, OptionalBody, Params, complete, if_match};
use super::problem::{Problem, ProblemCode, Result};
use super::settings::{CHANNEL, Change, NAME_LENGTH, check_permission, check_sizes};
use super::state::State;
use super::wire::{List, check_length, page, read};
use crate::access::Scope;
use crate::config::{ConversationSettings, ForkOrigin};
use crate::engine::{ConversationChange, Gateway, NewConversationRequest};
use crate::error::GatewayError;

/// The largest number of characters of a search.
const SEARCH_LENGTH: usize = 200;

/// The number of times that a change without an expected version is repeated after a conflict.
const CHANGE_ATTEMPTS: usize = 5;

/// Creates a conversation.
#[utoipa::path(post, path = "/v1/conversations", tag = "conversations", operation_id = "createConversation",
    request_body = NewConversation, responses((status = 201, body = ConversationView)))]
pub(super) async fn create(
    Extract(api): State,
    caller: Authenticated,
    Body(new): Body<NewConversation>,
) -> Result<Response> {
    caller.require(Scope::Send)?;
    let NewConversation { agent, model, permission, directory, instructions, title, metadata } = new;
    check_names(agent.as_deref(), title.as_deref())?;
    if let Some(permission) = permission {
        check_permission(&api.gateway, &caller, permission)?;
    }
    let metadata = metadata.unwrap_or_default();
    let permission = permission.map(Into::into);
    let settings = ConversationSettings {
        model,
        permission,
        directory,
        instructions,
        metadata,
        ..ConversationSettings::default()
    };
    check_sizes(&settings)?;
    let author = caller.identity.owner.clone();
    let request = NewConversationRequest { channel: CHANNEL.to_owned(), author, agent, title, settings, fork: None };
    created(api.gateway.clone(), caller, request, "conversation.create").await
}

/// Lists conversations, the newest first.
#[utoipa::path(get, path = "/v1/conversations", tag = "conversations", operation_id = "listConversations",
    params(ConversationQuery), responses((status = 200, body = List<ConversationView>)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Params(query): Params<ConversationQuery>,
) -> Result<axum::Json<List<ConversationView>>> {
    caller.require(Scope::Read)?;
    let ConversationQuery { state, agent, channel, q, limit, cursor } = query;
    check_length("q", q.as_deref().unwrap_or_default(), SEARCH_LENGTH)?;
    let filter = ConversationFilter { state: state.map(Into::into), agent, channel, text: q };
    let found = api.gateway.store().conversations(filter, page(limit, cursor)?, api.gateway.now()).await?;
    super::wire::list(found, view).map(axum::Json)
}

/// Returns a conversation.
#[utoipa::path(get, path = "/v1/conversations/{id}", tag = "conversations", operation_id = "getConversation",
    params(("id" = Uuid, Path, description = "The conversation.")), responses((status = 200, body = ConversationView)))]
pub(super) async fn get(Extract(api): State, caller: Authenticated, Id(id): Id<ConversationId>) -> Result<Response> {
    caller.require(Scope::Read)?;
    respond(StatusCode::OK, find(&api.gateway, id).await?)
}

/// Changes a conversation.
#[utoipa::path(patch, path = "/v1/conversations/{id}", tag = "conversations", operation_id = "updateConversation",
    params(("id" = Uuid, Path, description = "The conversation."),
        ("If-Match" = Option<String>, Header, pattern = r#"^(\*|"[0-9]{1,18}")$"#, description = "Applies the change only to the version with this `ETag`.")),
    request_body = ConversationUpdate, responses((status = 200, body = ConversationView)))]
pub(super) async fn update(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
    headers: HeaderMap,
    Body(update): Body<ConversationUpdate>,
) -> Result<Response> {
    caller.require(Scope::Send)?;
    check_names(update.agent.as_deref(), update.title.value().map(String::as_str))?;
    if let Some(permission) = update.permission.value() {
        check_permission(&api.gateway, &caller, *permission)?;
    }
    let required = if_match(&headers)?;
    let gateway = api.gateway.clone();
    let changed = complete(async move {
        let expected = required.or(update.expected_version);
        let changed = change(&gateway, id, &update, &caller.identity.owner, expected).await;
        let changed = changed.map_err(|problem| match problem.code() {
            ProblemCode::Conflict if required.is_some() => problem.with_code(ProblemCode::PreconditionFailed),
            _ => problem,
        })?;
        audit_from(&gateway, &caller, "conversation.update", &id.to_string()).await;
        Ok(changed)
    });
    respond(StatusCode::OK, changed.await?)
}

/// Deletes a conversation with its log, turns and schedules. Abort a running turn before.
#[utoipa::path(delete, path = "/v1/conversations/{id}", tag = "conversations", operation_id = "deleteConversation",
    params(("id" = Uuid, Path, description = "The conversation.")), responses((status = 204, description = "It is deleted.")))]
pub(super) async fn delete(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
) -> Result<StatusCode> {
    caller.require(Scope::Send)?;
    let gateway = api.gateway.clone();
    complete(async move {
        // The session is closed too, because it contains the deleted history.
        gateway.delete_conversation(id).await?;
        audit_from(&gateway, &caller, "conversation.delete", &id.to_string()).await;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Creates a conversation with a copy of the history of another one.
#[utoipa::path(post, path = "/v1/conversations/{id}/fork", tag = "conversations", operation_id = "forkConversation",
    params(("id" = Uuid, Path, description = "The conversation.")), request_body = Option<ForkRequest>,
    responses((status = 201, body = ConversationView)))]
pub(super) async fn fork(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
    OptionalBody(request): OptionalBody<ForkRequest>,
) -> Result<Response> {
    caller.require(Scope::Send)?;
    let source = find(&api.gateway, id).await?;
    let after = request.after_seq.map_or(source.last_seq, Seq::new);
    if after > source.last_seq {
        let detail = format!("the log ends with event {}, before {after}", source.last_seq);
        return Err(Problem::new(ProblemCode::Conflict, detail));
    }
    let mut settings: ConversationSettings = read(&source.settings)?;
    // The fork belongs to the caller, so it gets only a permission that the caller may select.
    settings.permission_by = None;
    if let Some(permission) = settings.permission
        && check_permission(&api.gateway, &caller, permission.into()).is_err()
    {
        settings.permission = None;
    }
    settings.forked_from = Some(ForkOrigin { conversation_id: id.uuid(), seq: after.get() });
    let request = NewConversationRequest {
        channel: CHANNEL.to_owned(),
        author: caller.identity.owner.clone(),
        agent: Some(source.agent),
        title: source.title,
        settings,
        fork: Some((id, Some(after))),
    };
    created(api.gateway.clone(), caller, request, "conversation.fork").await
}

/// Ends the pause of a conversation, so that its next turn can start.
#[utoipa::path(post, path = "/v1/conversations/{id}/resume", tag = "conversations", operation_id = "resumeConversation",
    params(("id" = Uuid, Path, description = "The conversation.")), responses((status = 200, body = ConversationView)))]
pub(super) async fn resume(Extract(api): State, caller: Authenticated, Id(id): Id<ConversationId>) -> Result<Response> {
    caller.require(Scope::Send)?;
    let gateway = api.gateway.clone();
    let resumed = complete(async move {
        let resumed = gateway.resume_conversation(id).await?;
        audit_from(&gateway, &caller, "conversation.resume", &id.to_string()).await;
        Ok(resumed)
    });
    respond(StatusCode::OK, resumed.await?)
}

/// Returns a conversation, or a problem.
pub(super) async fn find(gateway: &Gateway, id: ConversationId) -> Result<Conversation> {
    let found = gateway.store().conversation(id, gateway.now()).await?;
    found.ok_or_else(|| Problem::not_found("conversation", id))
}

async fn created(
    gateway: Gateway,
    caller: Authenticated,
    request: NewConversationRequest,
    action: &'static str,
) -> Result<Response> {
    let created = complete(async move {
        let created = gateway.create_conversation(request).await?;
        audit_from(&gateway, &caller, action, &created.id.to_string()).await;
        Ok(created)
    });
    respond(StatusCode::CREATED, created.await?)
}

/// Applies a change to the version that it was made for.
async fn change(
    gateway: &Gateway,
    id: ConversationId,
    update: &ConversationUpdate,
    by: &str,
    expected: Option<u64>,
) -> Result<Conversation> {
    for _ in 0..CHANGE_ATTEMPTS {
        let current = find(gateway, id).await?;
        let settings = changed_settings(&current, update, by)?;
        let change = ConversationChange {
            agent: update.agent.clone(),
            title: match &update.title {
                Change::Keep => None,
                Change::Remove => Some(None),
                Change::Set(title) => Some(Some(title.clone())),
            },
            settings,
            expected_version: Some(expected.unwrap_or(current.version)),
        };
        match gateway.update_conversation(id, change).await {
            Err(GatewayError::Store(StoreError::VersionConflict { .. })) if expected.is_none() => {}
            other => return Ok(other?),
        }
    }
    Err(Problem::new(ProblemCode::Conflict, "the conversation was changed at the same time; send the change again"))
}

/// Returns the settings after an update. `None` if it changes none.
fn changed_settings(
    current: &Conversation,
    update: &ConversationUpdate,
    by: &str,
) -> Result<Option<ConversationSettings>> {
    let mut settings: ConversationSettings = read(&current.settings)?;
    let before = settings.clone();
    update.model.apply(&mut settings.model, Clone::clone);
    update.permission.apply(&mut settings.permission, |permission| (*permission).into());
    update.permission.apply(&mut settings.permission_by, |_| by.to_owned());
    update.directory.apply(&mut settings.directory, Clone::clone);
    update.instructions.apply(&mut settings.instructions, Clone::clone);
    let mut metadata = Some(settings.metadata);
    update.metadata.apply(&mut metadata, Clone::clone);
    settings.metadata = metadata.unwrap_or_default();
    check_sizes(&settings)?;
    Ok((settings != before).then_some(settings))
}

fn check_names(agent: Option<&str>, title: Option<&str>) -> Result<()> {
    check_length("agent", agent.unwrap_or_default(), NAME_LENGTH)?;
    check_length("title", title.unwrap_or_default(), NAME_LENGTH)
}

fn respond(status: StatusCode, conversation: Conversation) -> Result<Response> {
    let tag = HeaderValue::try_from(format!("\"{}\"", conversation.version));
    let tag = tag.map_err(|error| Problem::internal(&error))?;
    Ok((status, [(header::ETAG, tag)], axum::Json(view(conversation)?)).into_response())
}
