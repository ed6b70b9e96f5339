//! The first answer to an interaction, in time.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, Body, Call};
use crate::mapping::{Ack, ack};
use crate::send::TEXT_BUTTON;
use crate::types::Interaction;

/// The time for the first answer. The service gives 3 seconds.
const ACK_TIME: Duration = Duration::from_millis(2_800);

/// The delay before the first answer is sent again.
const ACK_DELAY: Duration = Duration::from_millis(100);

/// The code of an error: the interaction was acknowledged.
const ACKNOWLEDGED: u64 = 40_060;

/// The longest text of a form.
const MAX_FORM_TEXT: u32 = 4_000;

/// A message that only the person sees.
pub(crate) const ONLY_YOU: u64 = 1 << 6;

/// Whether an interaction can be answered.
#[derive(Clone, Debug)]
pub(crate) enum Acked {
    Yes,
    /// It is too late, or another program has answered. The person sees an error, or the answer of that program.
    No(String),
}

/// The first answer to an interaction, which is sent at once, whatever the inbox does.
pub(crate) struct Acknowledging {
    task: Option<AbortOnDropHandle<Acked>>,
    acked: Option<Acked>,
}

impl Acknowledging {
    pub(crate) fn start(api: &Api, interaction: &Interaction) -> Self {
        let Some(ack) = ack(interaction) else {
            return Self { task: None, acked: Some(Acked::No("it is of an unknown kind".to_owned())) };
        };
        let (api, id, token) = (api.clone(), interaction.id.clone(), interaction.token.clone());
        let task = tokio::spawn(async move { acknowledge(&api, &id, &token, &ack).await });
        Self { task: Some(AbortOnDropHandle::new(task)), acked: None }
    }

    /// Returns whether the service has the first answer.
    pub(crate) async fn result(&mut self) -> Acked {
        if let Some(task) = self.task.take() {
            self.acked = Some(task.await.unwrap_or_else(|error| Acked::No(error.to_string())));
        }
        self.acked.clone().unwrap_or(Acked::Yes)
    }
}

async fn acknowledge(api: &Api, id: &str, token: &str, ack: &Ack) -> Acked {
    let body = match ack {
        Ack::Reply { .. } => json!({"type": 5, "data": {"flags": ONLY_YOU}}),
        Ack::Update => json!({"type": 6}),
        Ack::Form(token) => form(token),
    };
    let deadline = Instant::now() + ACK_TIME;
    let mut call = Call::new(Method::POST, "acknowledge", id, vec!["interactions", id, token, "callback"]);
    let mut is_repeat = false;
    loop {
        call.timeout = deadline.saturating_duration_since(Instant::now());
        match api.call::<Value>(&call, Body::Json(&body)).await {
            Ok(_) => return Acked::Yes,
            // The connection broke after the first attempt had its effect, or the process ended before the effect of the press and
            // has received it again. A decision and a form can be repeated; a command cannot.
            Err(error) if error.code() == Some(ACKNOWLEDGED) && (is_repeat || ack.is_repeatable()) => {
                return Acked::Yes;
            }
            Err(error) if error.is_final() || Instant::now() + ACK_DELAY >= deadline => {
                return Acked::No(error.to_string());
            }
            Err(_) => {
                is_repeat = true;
                tokio::time::sleep(ACK_DELAY).await;
            }
        }
    }
}

/// Returns a form with one field.
fn form(token: &str) -> Value {
    let field = json!({"type": 4, "custom_id": "text", "label": "Your answer", "style": 2, "required": true,
        "min_length": 1, "max_length": MAX_FORM_TEXT});
    json!({"type": 9, "data": {"custom_id": format!("{TEXT_BUTTON}{token}"), "title": "Answer",
        "components": [{"type": 1, "components": [field]}]}})
}
