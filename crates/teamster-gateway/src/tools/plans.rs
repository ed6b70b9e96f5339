//! The tools for schedules.

use serde::Deserialize;
use serde_json::{Value, json};
use teamster::tools::{JsonSchema, Reply, schemars};
use teamster_store::{PageRequest, Schedule, ScheduleFilter, ScheduleId};

use super::call::Call;
use crate::engine::is_by_api;
use crate::event::rfc3339;
use crate::schedules::{self, BY_TURN, Missed, ScheduleBody};

/// The schedules that are listed. The configuration permits fewer.
const LISTED: u32 = 1000;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlanInput {
    /// The text of the message. It must make sense on its own.
    text: String,
    /// A cron expression of five fields, such as "0 9 * * 1-5".
    cron: Option<String>,
    /// One time, such as "2026-03-01T09:00" in the time zone, or "2026-03-01T09:00:00Z".
    at: Option<String>,
    /// The IANA name of the time zone, such as "Europe/London". The default is UTC.
    time_zone: Option<String>,
    /// What happens to a time at which the gateway was down: "once" (late; the default) or "skip".
    missed: Option<MissedInput>,
    /// A missed time that is older than this many seconds is skipped. The default is a day.
    max_age_seconds: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum MissedInput {
    Once,
    Skip,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteInput {
    /// The id of the schedule.
    id: String,
}

/// Creates a schedule. Its author is the author of the turn's message.
pub(super) async fn create(call: &Call, input: PlanInput) -> Result<Reply, String> {
    let PlanInput { text, cron, at, time_zone, missed, max_age_seconds } = input;
    let turn = &call.current.turn;
    let running = call.gateway.store().turn(turn.turn).await.map_err(|error| error.to_string())?;
    let by_api = running.map(|running| is_by_api(&running.message)).transpose().map_err(|error| error.to_string())?;
    let body = ScheduleBody {
        cron,
        at,
        time_zone: time_zone.unwrap_or_else(|| "UTC".to_owned()),
        text,
        author: turn.author.clone(),
        missed: match missed {
            Some(MissedInput::Skip) => Missed::Skip,
            Some(MissedInput::Once) | None => Missed::Once,
        },
        max_age_seconds: max_age_seconds.unwrap_or(24 * 60 * 60),
        by_api: by_api.unwrap_or_default(),
        created_by: format!("{BY_TURN}{}", turn.turn),
    };
    let document = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
    let effect = call.current.effect("schedule", &[&document], &call.id);
    let id = ScheduleId::new(effect.uuid());
    call.gateway.begin_effect(turn.lease()).await.map_err(|error| error.to_string())?;
    let created = schedules::create(&call.gateway, turn.conversation, id, &body).await;
    created.map(|schedule| described(&schedule).into()).map_err(|error| error.to_string())
}

/// Lists the schedules of the conversation.
pub(super) async fn list(call: &Call) -> Result<Reply, String> {
    let filter = ScheduleFilter { conversation: Some(call.current.turn.conversation), due_by: None };
    let page = call.gateway.store().schedules(filter, PageRequest::first(LISTED)).await;
    let page = page.map_err(|error| error.to_string())?;
    Ok(Value::Array(page.items.iter().map(described).collect()).into())
}

/// Deletes a schedule of the conversation.
pub(super) async fn delete(call: &Call, input: &DeleteInput) -> Result<Reply, String> {
    let id: ScheduleId = input.id.parse().map_err(|_| format!("{:?} is not the id of a schedule", input.id))?;
    call.current.effect("delete", &[id.to_string().as_bytes()], &call.id);
    call.gateway.begin_effect(call.current.turn.lease()).await.map_err(|error| error.to_string())?;
    let deleted = schedules::delete(&call.gateway, call.current.turn.conversation, id).await;
    deleted.map(|()| "deleted".into()).map_err(|error| error.to_string())
}

fn described(schedule: &Schedule) -> Value {
    json!({
        "id": schedule.id.to_string(),
        "nextAt": schedule.next_at.map(rfc3339),
        "schedule": schedule.body.to::<Value>().unwrap_or_default(),
    })
}
