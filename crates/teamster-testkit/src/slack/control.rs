//! The calls of tests in other languages: JSON in, JSON out.
//!
//! | call | body |
//! |---|---|
//! | `POST /control/write` | a [`Post`] |
//! | `POST /control/edit` | `channel`, `ts`, `text` |
//! | `POST /control/delete` | `channel`, `ts` |
//! | `POST /control/press` | `channel`, `ts`, `button`, `by` |
//! | `POST /control/command` | `channel`, `by`, `text` |
//! | `POST /control/channel` | `id`, `kind` |
//! | `POST /control/disconnect` | `reason` |
//! | `POST /control/fail` | `method`, `fault`, `times` |
//! | `GET /control/messages/CHANNEL`, `GET /control/calls`, `GET /control/acks`, `GET /control/responses/TRIGGER` | |

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::faults::Fault;
use super::people::{Person, Post};
use super::world::{Shared, World};

#[derive(Deserialize)]
struct Edit {
    channel: String,
    ts: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct Press {
    channel: String,
    ts: String,
    button: String,
    by: Person,
}

#[derive(Deserialize)]
struct Command {
    channel: String,
    by: Person,
    text: String,
}

#[derive(Deserialize)]
struct Created {
    id: String,
    kind: String,
}

#[derive(Deserialize)]
struct Disconnection {
    reason: String,
}

#[derive(Deserialize)]
struct Failure {
    method: String,
    fault: Fault,
    times: u32,
}

/// Returns the routes.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/{action}", post(act))
        .route("/messages/{channel}", get(messages))
        .route("/responses/{trigger}", get(responses))
        .route("/calls", get(calls))
        .route("/acks", get(acks))
}

async fn act(State(shared): State<Arc<Shared>>, Path(action): Path<String>, body: Bytes) -> Response {
    let done = match action.as_str() {
        "write" => with(&shared, &body, |world, post: Post| json!({"ts": world.write(post)})),
        "edit" => with(&shared, &body, |world, Edit { channel, ts, text }| {
            world.edit(&channel, &ts, &text);
            json!({})
        }),
        "delete" => with(&shared, &body, |world, Edit { channel, ts, .. }| {
            world.remove(&channel, &ts);
            json!({})
        }),
        "press" => with(
            &shared,
            &body,
            |world, Press { channel, ts, button, by }| json!({"trigger": world.press(&channel, &ts, &button, &by)}),
        ),
        "command" => with(
            &shared,
            &body,
            |world, Command { channel, by, text }| json!({"trigger": world.command(&channel, &by, &text)}),
        ),
        "channel" => with(&shared, &body, |world, Created { id, kind }| {
            world.create_channel(&id, &kind, true);
            json!({})
        }),
        "disconnect" => with(&shared, &body, |world, Disconnection { reason }| {
            world.envelopes.announce_end(&reason);
            json!({})
        }),
        "fail" => with(&shared, &body, |world, Failure { method, fault, times }| {
            world.faults.add(&method, &fault, times);
            json!({})
        }),
        _ => Err(format!("there is no action {action}")),
    };
    match done {
        Ok(value) => answer(&value),
        Err(problem) => (StatusCode::BAD_REQUEST, problem).into_response(),
    }
}

fn with<T: DeserializeOwned>(
    shared: &Shared,
    body: &[u8],
    act: impl FnOnce(&mut World, T) -> Value,
) -> Result<Value, String> {
    let input = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(shared.change(|world| act(world, input)))
}

async fn messages(State(shared): State<Arc<Shared>>, Path(channel): Path<String>) -> Response {
    let messages = shared.world().messages(&channel);
    answer(&json!(messages))
}

async fn responses(State(shared): State<Arc<Shared>>, Path(trigger): Path<String>) -> Response {
    let responses = shared.world().responses.get(&trigger).cloned();
    answer(&json!(responses))
}

async fn calls(State(shared): State<Arc<Shared>>) -> Response {
    let calls = shared.world().calls.clone();
    answer(&json!(calls))
}

async fn acks(State(shared): State<Arc<Shared>>) -> Response {
    let acks = shared.world().envelopes.acks.clone();
    answer(&json!(acks))
}

fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
