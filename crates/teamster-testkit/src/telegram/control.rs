//! The calls of tests in other languages: JSON in, JSON out.
//!
//! | call | body |
//! |---|---|
//! | `POST /control/write` | a [`Post`] |
//! | `POST /control/edit` | `chat`, `message`, `text` |
//! | `POST /control/press` | `chat`, `message`, `button`, `by` |
//! | `POST /control/group` | `id`, `topics` |
//! | `POST /control/fail` | `method`, `fault`, `times` |
//! | `GET /control/messages/CHAT`, `GET /control/calls` | |

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
    chat: i64,
    message: i64,
    text: String,
}

#[derive(Deserialize)]
struct Press {
    chat: i64,
    message: i64,
    button: String,
    by: Person,
}

#[derive(Deserialize)]
struct Group {
    id: i64,
    #[serde(default)]
    topics: Vec<i64>,
}

#[derive(Deserialize)]
struct Failure {
    method: String,
    fault: Fault,
    times: u32,
}

/// Returns the routes.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new().route("/{action}", post(act)).route("/messages/{chat}", get(messages)).route("/calls", get(calls))
}

async fn act(State(shared): State<Arc<Shared>>, Path(action): Path<String>, body: Bytes) -> Response {
    let done = match action.as_str() {
        "write" => with(&shared, &body, |world, post: Post| json!({"message": world.write(post)})),
        "edit" => with(&shared, &body, |world, Edit { chat, message, text }| {
            world.edit(chat, message, &text);
            json!({})
        }),
        "press" => with(
            &shared,
            &body,
            |world, Press { chat, message, button, by }| json!({"query": world.press(chat, message, &button, &by)}),
        ),
        "group" => with(&shared, &body, |world, Group { id, topics }| {
            world.create_group(id, &topics);
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

async fn messages(State(shared): State<Arc<Shared>>, Path(chat): Path<i64>) -> Response {
    let messages = shared.world().messages(chat);
    answer(&json!(messages))
}

async fn calls(State(shared): State<Arc<Shared>>) -> Response {
    let calls = shared.world().calls.clone();
    answer(&json!(calls))
}

fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
