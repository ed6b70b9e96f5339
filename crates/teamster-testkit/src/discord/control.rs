//! The calls of tests in other languages: JSON in, JSON out.
//!
//! | call | body |
//! |---|---|
//! | `POST /control/guild` | `id`, `channel` |
//! | `POST /control/write` | a [`Post`] |
//! | `POST /control/edit` | `channel`, `message`, `text` |
//! | `POST /control/press` | `channel`, `message`, `button`, `by` |
//! | `POST /control/slash` | `channel`, `name`, `argument`, `by` |
//! | `POST /control/submit` | `interaction`, `text`, `by` |
//! | `POST /control/fail` | `route`, `fault`, `times` |
//! | `POST /control/cut`, `POST /control/reconnect` | `{}` |
//! | `GET /control/messages/CHANNEL`, `GET /control/shown/INTERACTION`, `GET /control/calls` | |

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
use super::person::{Person, Post};
use super::sessions::Order;
use super::world::{Shared, World};

#[derive(Deserialize)]
struct Guild {
    id: u64,
    channel: u64,
}

#[derive(Deserialize)]
struct Edit {
    channel: u64,
    message: u64,
    text: String,
}

#[derive(Deserialize)]
struct Press {
    channel: u64,
    message: u64,
    button: String,
    by: Person,
}

#[derive(Deserialize)]
struct Slash {
    channel: u64,
    name: String,
    argument: Option<String>,
    by: Person,
}

#[derive(Deserialize)]
struct Submit {
    interaction: u64,
    text: String,
    by: Person,
}

#[derive(Deserialize)]
struct Failure {
    route: String,
    fault: Fault,
    times: u32,
}

#[derive(Deserialize)]
struct Nothing {}

/// Returns the routes.
pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/{action}", post(act))
        .route("/messages/{channel}", get(messages))
        .route("/shown/{interaction}", get(shown))
        .route("/calls", get(calls))
}

async fn act(State(shared): State<Arc<Shared>>, Path(action): Path<String>, body: Bytes) -> Response {
    let done = match action.as_str() {
        "guild" => with(&shared, &body, |world, Guild { id, channel }| {
            world.create_guild(id, channel);
            json!({})
        }),
        "write" => with(&shared, &body, |world, post: Post| json!({"message": world.write(post)})),
        "edit" => with(&shared, &body, |world, Edit { channel, message, text }| {
            world.edit(channel, message, &text);
            json!({})
        }),
        "press" => with(
            &shared,
            &body,
            |world, Press { channel, message, button, by }| json!({"interaction": world.press(channel, message, &button, &by)}),
        ),
        "slash" => with(
            &shared,
            &body,
            |world, Slash { channel, name, argument, by }| json!({"interaction": world.slash(channel, &name, argument.as_deref(), &by)}),
        ),
        "submit" => with(
            &shared,
            &body,
            |world, Submit { interaction, text, by }| json!({"interaction": world.submit(interaction, &text, &by)}),
        ),
        "fail" => with(&shared, &body, |world, Failure { route, fault, times }| {
            world.faults.add(&route, &fault, times);
            json!({})
        }),
        "cut" => with(&shared, &body, |world, Nothing {}| {
            world.order(&Order::Cut);
            json!({})
        }),
        "reconnect" => with(&shared, &body, |world, Nothing {}| {
            world.order(&Order::Reconnect);
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

async fn messages(State(shared): State<Arc<Shared>>, Path(channel): Path<u64>) -> Response {
    let messages = shared.world().messages(channel);
    answer(&json!(messages))
}

async fn shown(State(shared): State<Arc<Shared>>, Path(interaction): Path<u64>) -> Response {
    let shown = shared.world().shown_to(interaction);
    answer(&json!(shown))
}

async fn calls(State(shared): State<Arc<Shared>>) -> Response {
    let calls = shared.world().calls.clone();
    answer(&json!(calls))
}

fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}
