//! The event streams of one conversation and of all.

use std::collections::VecDeque;

use axum::extract::State as Extract;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use teamster_store::{ConversationId, FeedCursor, Seq};
use utoipa::{IntoParams, ToSchema};

use super::conversations::find;
use super::extract::{Authenticated, Id, Params};
use super::problem::{Problem, ProblemCode, Result};
use super::sse::{Source, respond, take_permit};
use super::state::State;
use crate::access::Scope;

/// Where a stream of a conversation starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// The number of the last event that the subscriber has. 0 is the start. The header `Last-Event-ID` overrides it.
    after: Option<u64>,
}

/// Where a stream of all conversations starts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct FeedQuery {
    /// The id of the last event that the subscriber has, or the value of `/v1/events/end`. Without it, the stream starts
    /// with the oldest event. The header `Last-Event-ID` overrides it.
    #[param(pattern = "^[0-9]{1,18}(\\.[0-9]{1,18})?$")]
    after: Option<String>,
}

/// A position in the stream of all conversations.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct FeedEnd {
    /// The value of `after`.
    cursor: String,
}

/// Streams the events of a conversation: those of the log, then each new one. Each event has its number as `id`.
///
/// The stream ends with the event `stream_end`, which has a `code` and a `reason`: when the gateway stops, when the
/// conversation or the next event is deleted, or when the subscriber does not read.
#[utoipa::path(get, path = "/v1/conversations/{id}/events", tag = "events", operation_id = "streamEvents",
    params(("id" = Uuid, Path, description = "The conversation."), EventsQuery,
        ("Last-Event-ID" = Option<u64>, Header, description = "The number of the last event that the subscriber has.")),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn of_conversation(
    Extract(api): State,
    caller: Authenticated,
    Id(id): Id<ConversationId>,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    caller.require(Scope::Read)?;
    let permit = take_permit(&api, &caller.identity)?;
    let after = match last_event_id(&headers)? {
        Some(text) => text.parse().map_err(|_| Problem::invalid("Last-Event-ID", "must be the number of an event"))?,
        None => query.after.unwrap_or_default(),
    };
    let conversation = find(&api.gateway, id).await?;
    if after > conversation.last_seq.get() {
        let detail =
            format!("the log ends with event {}, before {after}; load the conversation again", conversation.last_seq);
        return Err(Problem::new(ProblemCode::Conflict, detail));
    }
    // The stream would end at once with the same reason, but a status is easier to see.
    api.gateway.store().events(id, Seq::new(after), 1).await?;
    Ok(respond(&api, permit, Source::Conversation(api.gateway.events(id, Seq::new(after)))))
}

/// Streams the events of all conversations. Each event has a position as `id`, and `conversationId` beside its own fields.
///
/// If retention has deleted events that the subscriber may not have, the call is refused, or the stream ends, with the code
/// `EVENTS_PRUNED`. `resumeAfter` is the position with which the subscriber continues after it has loaded again what it shows.
#[utoipa::path(get, path = "/v1/events", tag = "events", operation_id = "streamAllEvents",
    params(FeedQuery, ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event.")),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn of_all(
    Extract(api): State,
    caller: Authenticated,
    Params(query): Params<FeedQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    caller.require(Scope::Read)?;
    let permit = take_permit(&api, &caller.identity)?;
    let after = last_event_id(&headers)?.map(str::to_owned).or(query.after).map(FeedCursor::new);
    // A wrong position is a problem with a status.
    api.gateway.store().feed(after.clone(), 1).await?;
    Ok(respond(&api, permit, Source::All(VecDeque::new(), api.gateway.feed(after))))
}

/// Returns the end of the stream of all conversations. Read it, then load what you show, then subscribe after it.
#[utoipa::path(get, path = "/v1/events/end", tag = "events", operation_id = "getEventsEnd",
    responses((status = 200, body = FeedEnd)))]
pub(super) async fn end(Extract(api): State, caller: Authenticated) -> Result<axum::Json<FeedEnd>> {
    caller.require(Scope::Read)?;
    let cursor = api.gateway.store().feed_end().await?;
    Ok(axum::Json(FeedEnd { cursor: cursor.as_str().to_owned() }))
}

/// Returns the value of `Last-Event-ID`. An empty one is that of a client without an event.
fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let text = value.to_str().map_err(|_| Problem::invalid("Last-Event-ID", "must be the id of an event"))?;
    Ok(Some(text.trim()).filter(|text| !text.is_empty()))
}
