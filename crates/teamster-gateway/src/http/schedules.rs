//! Schedules: messages that arrive in a conversation once or repeatedly.

use axum::extract::State as Extract;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use teamster_store::{ConversationId, PageRequest, Schedule, ScheduleFilter, ScheduleId};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::audit::audit_from;
use super::conversations::find as find_conversation;
use super::extract::{Authenticated, Body, Id, Params, complete};
use super::messages::author;
use super::problem::{Problem, ProblemCode, Result};
use super::settings::{CHANNEL, NAME_LENGTH};
use super::state::State;
use super::wire::{List, Time, check_length, page, read, whole};
use crate::access::Scope;
use crate::engine::Gateway;
use crate::schedules::{self, Missed, ScheduleBody};

/// What a schedule sends, and when. Exactly one of `cron` and `at` is set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScheduleRequest {
    /// A cron expression: minute, hour, day of month, month, day of week.
    #[schema(max_length = 500)]
    cron: Option<String>,
    /// One time: in RFC 3339, or without an offset (`2026-03-01T09:00`) in the time zone.
    #[schema(max_length = 500)]
    at: Option<String>,
    /// The IANA name of the time zone. The default is UTC.
    #[schema(max_length = 500, default = "UTC")]
    time_zone: Option<String>,
    /// The text of the message.
    #[schema(max_length = 100_000, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    text: String,
    /// The author of the message. Only an admin can name an author other than the owner of the token.
    #[schema(max_length = 500, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    author: Option<String>,
    /// The rule for times at which the gateway was down.
    #[serde(default)]
    missed: Missed,
    /// A missed time that is older than this many seconds is skipped. The default is a day.
    #[serde(default, deserialize_with = "whole")]
    #[schema(default = 86_400)]
    max_age_seconds: Option<u64>,
}

/// Which schedules are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct ScheduleQuery {
    /// Only schedules of this conversation.
    conversation_id: Option<Uuid>,
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// A schedule.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Schedule)]
pub(super) struct ScheduleView {
    /// Its id.
    id: Uuid,
    /// The conversation.
    conversation_id: Uuid,
    /// A cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    /// One time.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    /// The IANA name of the time zone.
    time_zone: String,
    /// The text of the message.
    text: String,
    /// The author of the message.
    author: String,
    /// The rule for times at which the gateway was down.
    missed: Missed,
    /// A missed time that is older than this many seconds is skipped.
    max_age_seconds: u64,
    /// What has created it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    created_by: String,
    /// The next time. It is absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<Time>,
    /// The last time that was sent or skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<Time>,
    /// When it was created.
    created_at: Time,
}

/// Creates a schedule of a conversation.
#[utoipa::path(post, path = "/v1/conversations/{id}/schedules", tag = "schedules", operation_id = "createSchedule",
    params(("id" = Uuid, Path, description = "The conversation.")),
    request_body = ScheduleRequest, responses((status = 201, body = ScheduleView)))]
pub(super) async fn create(
    Extract(api): State,
    caller: Authenticated,
    Id(conversation): Id<ConversationId>,
    Body(request): Body<ScheduleRequest>,
) -> Result<(StatusCode, axum::Json<ScheduleView>)> {
    caller.require(Scope::Send)?;
    find_conversation(&api.gateway, conversation).await?;
    let author = author(&caller, request.author.as_deref())?;
    let body = body(request, author, true, created_by(&caller))?;
    let gateway = api.gateway.clone();
    let schedule = complete(async move {
        check_number(&gateway, conversation).await?;
        let schedule = put(&gateway, ScheduleId::new(Uuid::now_v7()), conversation, &body).await?;
        audit_from(&gateway, &caller, "schedule.create", &schedule.id.to_string()).await;
        Ok(schedule)
    });
    Ok((StatusCode::CREATED, axum::Json(view(&schedule.await?)?)))
}

/// Lists schedules in the order of their creation.
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", operation_id = "listSchedules",
    params(ScheduleQuery), responses((status = 200, body = List<ScheduleView>)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Params(query): Params<ScheduleQuery>,
) -> Result<axum::Json<List<ScheduleView>>> {
    caller.require(Scope::Read)?;
    let filter = ScheduleFilter { conversation: query.conversation_id.map(ConversationId::new), due_by: None };
    let found = api.gateway.store().schedules(filter, page(query.limit, query.cursor)?).await?;
    super::wire::list(found, |schedule| view(&schedule)).map(axum::Json)
}

/// Returns a schedule.
#[utoipa::path(get, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "getSchedule",
    params(("id" = Uuid, Path, description = "The schedule.")), responses((status = 200, body = ScheduleView)))]
pub(super) async fn get(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ScheduleId>,
) -> Result<axum::Json<ScheduleView>> {
    caller.require(Scope::Read)?;
    view(&find(&api.gateway, id).await?).map(axum::Json)
}

/// Replaces a schedule. It keeps its conversation and, unless another one is set, its author.
#[utoipa::path(put, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "replaceSchedule",
    params(("id" = Uuid, Path, description = "The schedule.")), request_body = ScheduleRequest,
    responses((status = 200, body = ScheduleView)))]
pub(super) async fn replace(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ScheduleId>,
    Body(request): Body<ScheduleRequest>,
) -> Result<axum::Json<ScheduleView>> {
    caller.require(Scope::Send)?;
    let found = find(&api.gateway, id).await?;
    let conversation = found.conversation;
    let before: ScheduleBody = read(&found.body)?;
    // The caller that writes the text is its author, unless the author stays the same person.
    let wanted = request.author.as_deref().or_else(|| caller.is_admin().then_some(before.author.as_str()));
    let author = author(&caller, wanted)?;
    let keeps_author = caller.is_admin() && author == before.author;
    let by_api = before.by_api || !keeps_author;
    let body = body(request, author, by_api, created_by(&caller))?;
    let gateway = api.gateway.clone();
    let schedule = complete(async move {
        let schedule = put(&gateway, id, conversation, &body).await?;
        audit_from(&gateway, &caller, "schedule.replace", &id.to_string()).await;
        Ok(schedule)
    });
    view(&schedule.await?).map(axum::Json)
}

/// Deletes a schedule.
#[utoipa::path(delete, path = "/v1/schedules/{id}", tag = "schedules", operation_id = "deleteSchedule",
    params(("id" = Uuid, Path, description = "The schedule.")), responses((status = 204, description = "It is deleted.")))]
pub(super) async fn delete(Extract(api): State, caller: Authenticated, Id(id): Id<ScheduleId>) -> Result<StatusCode> {
    caller.require(Scope::Send)?;
    let gateway = api.gateway.clone();
    complete(async move {
        if !gateway.store().delete_schedule(id).await? {
            return Err(Problem::not_found("schedule", id));
        }
        audit_from(&gateway, &caller, "schedule.delete", &id.to_string()).await;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Names the caller for the operator.
fn created_by(caller: &Authenticated) -> String {
    match caller.identity.token {
        Some(token) => format!("token {token}"),
        None => format!("{CHANNEL}:{}", caller.identity.owner),
    }
}

fn body(request: ScheduleRequest, author: String, by_api: bool, created_by: String) -> Result<ScheduleBody> {
    let ScheduleRequest { cron, at, time_zone, text, missed, max_age_seconds, .. } = request;
    for (field, text) in [("cron", &cron), ("at", &at), ("timeZone", &time_zone)] {
        check_length(field, text.as_deref().unwrap_or_default(), NAME_LENGTH)?;
    }
    check_length("text", &text, usize::MAX)?;
    Ok(ScheduleBody {
        cron,
        at,
        time_zone: time_zone.unwrap_or_else(|| "UTC".to_owned()),
        text,
        author,
        missed,
        max_age_seconds: max_age_seconds.unwrap_or(24 * 60 * 60),
        by_api,
        created_by,
    })
}

/// Checks that the conversation may have one more schedule.
async fn check_number(gateway: &Gateway, conversation: ConversationId) -> Result<()> {
    let limit = gateway.config().schedules.per_conversation;
    let filter = ScheduleFilter { conversation: Some(conversation), due_by: None };
    let found = gateway.store().schedules(filter, PageRequest::first(limit.max(1))).await?;
    if u32::try_from(found.items.len()).unwrap_or(u32::MAX) < limit {
        return Ok(());
    }
    let detail = format!("the conversation has {limit} schedules, its limit; delete one first");
    Err(Problem::new(ProblemCode::Conflict, detail))
}

async fn put(gateway: &Gateway, id: ScheduleId, conversation: ConversationId, body: &ScheduleBody) -> Result<Schedule> {
    Ok(schedules::create(gateway, conversation, id, body).await?)
}

async fn find(gateway: &Gateway, id: ScheduleId) -> Result<Schedule> {
    gateway.store().schedule(id).await?.ok_or_else(|| Problem::not_found("schedule", id))
}

fn view(schedule: &Schedule) -> Result<ScheduleView> {
    let body: ScheduleBody = read(&schedule.body)?;
    let ScheduleBody { cron, at, time_zone, text, author, missed, max_age_seconds, by_api: _, created_by } = body;
    Ok(ScheduleView {
        id: schedule.id.uuid(),
        conversation_id: schedule.conversation.uuid(),
        cron,
        at,
        time_zone,
        text,
        author,
        missed,
        max_age_seconds,
        created_by,
        next_at: schedule.next_at.map(Time),
        last_at: schedule.last_at.map(Time),
        created_at: Time(schedule.created_at),
    })
}
