//! Tokens and cost.

use std::collections::BTreeMap;

use axum::extract::State as Extract;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use teamster_store::{ConversationId, Day, Usage, UsageQuery, UsageRow};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{Authenticated, Params};
use super::problem::{Problem, Result};
use super::state::State;
use super::turns::UsageView;
use super::wire::page;
use crate::access::Scope;
use crate::clock::day;

/// The days of a query without a start.
const DEFAULT_DAYS: i32 = 30;

/// The largest number of days of a query.
const MAX_DAYS: i32 = 366;

/// Which usage is summed, and how.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct UsageParams {
    /// The keys by which usage is summed: a list of `day`, `agent`, `conversation` and `author`, separated by commas.
    #[param(default = "day", pattern = "^(day|agent|conversation|author)(,(day|agent|conversation|author))*$")]
    by: Option<String>,
    /// The last day, in UTC. The default is today.
    #[param(value_type = Option<String>, format = Date)]
    to: Option<String>,
    /// The number of days.
    #[param(minimum = 1, maximum = 366, default = 30)]
    days: Option<i32>,
    /// Only usage of this conversation.
    conversation_id: Option<Uuid>,
    /// The number of items.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The position of the page: `nextCursor` of the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
}

/// A page of sums.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageList {
    /// The sums.
    items: Vec<UsageItem>,
    /// The sum of all pages.
    total: UsageView,
    /// The value of `cursor` for the next page. It is absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A sum.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageItem {
    /// The day, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Date)]
    day: Option<Date>,
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_id: Option<Uuid>,
    /// Who wrote the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    /// Tokens and cost.
    usage: UsageView,
}

/// A key by which usage is summed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Day,
    Agent,
    Conversation,
    Author,
}

/// What the rows of a sum have in common.
type Key = (Option<Day>, Option<String>, Option<ConversationId>, Option<String>);

/// Sums tokens and cost.
#[utoipa::path(get, path = "/v1/usage", tag = "operation", operation_id = "listUsage",
    params(UsageParams), responses((status = 200, body = UsageList)))]
pub(super) async fn list(
    Extract(api): State,
    caller: Authenticated,
    Params(params): Params<UsageParams>,
) -> Result<axum::Json<UsageList>> {
    caller.require(Scope::Read)?;
    let groups = groups(params.by.as_deref().unwrap_or("day"))?;
    let (from, to) = days(&params, day(api.gateway.now()))?;
    let request = page(params.limit, params.cursor)?;
    let position = request.cursor.as_ref().map_or(Ok(0), |cursor| cursor.as_str().parse::<usize>());
    let position = position.map_err(|_| Problem::invalid("cursor", "is not one of this list"))?;
    let conversation = params.conversation_id.map(ConversationId::new);
    let rows = api.gateway.store().usage(UsageQuery { from, to, conversation }).await?;
    let mut sums: BTreeMap<Key, Usage> = BTreeMap::new();
    let mut total = Usage::default();
    for row in rows {
        total = total.plus(row.usage);
        let sum = sums.entry(key(&groups, &row)).or_default();
        *sum = sum.plus(row.usage);
    }
    let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
    let next = position.saturating_add(limit);
    let next_cursor = (next < sums.len()).then(|| next.to_string());
    let items = sums.into_iter().skip(position).take(limit).map(|(key, usage)| item(key, usage)).collect();
    Ok(axum::Json(UsageList { items, total: total.into(), next_cursor }))
}

fn groups(text: &str) -> Result<Vec<Group>> {
    let group = |name: &str| match name.trim() {
        "day" => Ok(Group::Day),
        "agent" => Ok(Group::Agent),
        "conversation" => Ok(Group::Conversation),
        "author" => Ok(Group::Author),
        _ => Err(Problem::invalid("by", "must be a list of day, agent, conversation and author")),
    };
    text.split(',').map(group).collect()
}

fn key(groups: &[Group], row: &UsageRow) -> Key {
    let by = |group| groups.contains(&group);
    (
        by(Group::Day).then_some(row.day),
        by(Group::Agent).then(|| row.agent.clone()),
        by(Group::Conversation).then_some(row.conversation),
        by(Group::Author).then(|| row.author.clone()),
    )
}

/// Returns the first and the last day.
fn days(params: &UsageParams, today: Day) -> Result<(Day, Day)> {
    let days = params.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=MAX_DAYS).contains(&days) {
        return Err(Problem::invalid("days", format_args!("must be a number from 1 to {MAX_DAYS}")));
    }
    let to = params.to.as_deref().map_or(Some(today), parse_day);
    let to = to.ok_or_else(|| Problem::invalid("to", "must be a day such as 2026-03-01"))?;
    Ok((Day::new(to.get().saturating_sub(days - 1)), to))
}

fn parse_day(text: &str) -> Option<Day> {
    let date: Date = text.parse().ok().filter(|_| text.len() == 10)?;
    let since = date.since(Date::constant(1970, 1, 1)).ok()?;
    Some(Day::new(since.get_days()))
}

fn item((day, agent, conversation, author): Key, usage: Usage) -> UsageItem {
    let date = |day: Day| {
        let since = jiff::Span::new().try_days(day.get()).ok()?;
        Date::constant(1970, 1, 1).checked_add(since).ok()
    };
    let conversation_id = conversation.map(ConversationId::uuid);
    UsageItem { day: day.and_then(date), agent, conversation_id, author, usage: usage.into() }
}
