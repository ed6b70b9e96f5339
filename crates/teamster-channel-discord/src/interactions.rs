//! Interactions: the first answer in time, and what the person sees then.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use teamster_channel::{Address, ChatCommand, InboxError, PromptAnswer, PromptDecision, split};
use tokio_util::task::AbortOnDropHandle;

use crate::api::{Api, Body, Call, CallError};
use crate::mapping::{Ack, Pressed, ack, address, author_of_interaction, pressed};
use crate::receive::Receiver;
use crate::send::{TEXT_BUTTON, message_body};
use crate::text::LIMIT;
use crate::types::Interaction;

/// The texts that a person sees after a press.
const APPLIED: &str = "Done.";
const CLOSED: &str = "This request is closed.";
const NOT_ALLOWED: &str = "You must not answer this request.";

/// The time for the first answer. The service gives 3 seconds.
const ACK_TIME: Duration = Duration::from_millis(2_800);

/// The delay before the first answer is sent again.
const ACK_DELAY: Duration = Duration::from_millis(100);

/// The code of an error: the interaction was acknowledged.
const ACKNOWLEDGED: u64 = 40_060;

/// A message that only the person sees.
const ONLY_YOU: u64 = 1 << 6;

/// The longest text of a form.
const MAX_FORM_TEXT: u32 = 4_000;

/// Whether an interaction can be answered.
#[derive(Clone, Debug)]
enum Acked {
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

    async fn result(&mut self) -> Acked {
        if let Some(task) = self.task.take() {
            self.acked = Some(task.await.unwrap_or_else(|error| Acked::No(error.to_string())));
        }
        self.acked.clone().unwrap_or(Acked::Yes)
    }
}

async fn acknowledge(api: &Api, id: &str, token: &str, ack: &Ack) -> Acked {
    let body = match ack {
        Ack::Reply => json!({"type": 5, "data": {"flags": ONLY_YOU}}),
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
            // The connection broke after the first attempt had its effect.
            Err(error) if is_repeat && error.code() == Some(ACKNOWLEDGED) => return Acked::Yes,
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

impl Receiver<'_> {
    /// Handles an interaction that is acknowledged.
    pub(crate) async fn interaction(
        &self,
        interaction: &Interaction,
        acknowledging: &mut Acknowledging,
    ) -> Result<bool, InboxError> {
        if let Acked::No(reason) = acknowledging.result().await {
            // Its effect would surprise the person, who has seen an error.
            tracing::warn!(interaction = interaction.id, reason, "an interaction of Discord is not handled");
            return Ok(true);
        }
        let author = author_of_interaction(interaction);
        let address = self.address_of(interaction).await?;
        match pressed(interaction) {
            Pressed::Command(name, argument) => {
                let reply =
                    self.inbox.command(ChatCommand { name: name.to_owned(), argument, author, address }).await?;
                self.reply(interaction, &reply.text).await;
            }
            Pressed::Decides(token) => {
                match self.inbox.answer(PromptAnswer { token, message: None, author, address }).await? {
                    // The engine changes the message.
                    PromptDecision::Applied => {}
                    PromptDecision::NotAllowed => self.notice(interaction, NOT_ALLOWED).await,
                    PromptDecision::Closed => self.closed(interaction).await,
                }
            }
            Pressed::Text(token, text) => {
                let answer = PromptAnswer { token, message: Some(text), author, address };
                let text = match self.inbox.answer(answer).await? {
                    PromptDecision::Applied => APPLIED,
                    PromptDecision::NotAllowed => NOT_ALLOWED,
                    PromptDecision::Closed => CLOSED,
                };
                self.reply(interaction, text).await;
            }
            Pressed::Opened => {}
            Pressed::Unknown if interaction.data.name.is_empty() => self.closed(interaction).await,
            Pressed::Unknown => self.reply(interaction, "This command is unknown.").await,
        }
        Ok(true)
    }

    async fn address_of(&self, interaction: &Interaction) -> Result<Address, InboxError> {
        let id = interaction.channel_id.clone().unwrap_or_default();
        match (&interaction.channel, &interaction.guild_id) {
            (_, None) => Ok(address(&id, None)),
            (Some(channel), _) => Ok(address(&id, Some(channel))),
            (None, _) => Ok(address(&id, Some(&self.channel_of(&id).await?))),
        }
    }

    /// Shows the answer to a command or a form, which only the person sees. It is not sent again.
    async fn reply(&self, interaction: &Interaction, markdown: &str) {
        let path = ["webhooks", &self.application, &interaction.token, "messages", "@original"];
        for (index, part) in split(markdown, LIMIT).iter().enumerate() {
            let sent = if index == 0 {
                let call = Call::new(Method::PATCH, "editReply", &interaction.id, path.to_vec());
                self.channel.api().call::<Value>(&call, Body::Json(&message_body(part, &[], false))).await
            } else {
                self.follow(interaction, part).await
            };
            if let Err(error) = sent {
                tracing::warn!(%error, "a reply in Discord was not sent");
                return;
            }
        }
    }

    /// Shows a further text, which only the person sees.
    async fn notice(&self, interaction: &Interaction, text: &str) {
        if let Err(error) = self.follow(interaction, text).await {
            tracing::warn!(%error, "a notice in Discord was not sent");
        }
    }

    async fn follow(&self, interaction: &Interaction, text: &str) -> Result<Value, CallError> {
        let mut body = message_body(text, &[], false);
        if let Some(flags) = body.get_mut("flags") {
            *flags = json!(flags.as_u64().unwrap_or_default() | ONLY_YOU);
        }
        let path = vec!["webhooks", self.application.as_str(), &interaction.token];
        let call = Call::new(Method::POST, "followUp", &interaction.id, path);
        self.channel.api().call(&call, Body::Json(&body)).await
    }

    /// Removes the buttons of a closed prompt, and shows that it is closed.
    async fn closed(&self, interaction: &Interaction) {
        let path = vec!["webhooks", self.application.as_str(), &interaction.token, "messages", "@original"];
        let call = Call::new(Method::PATCH, "editReply", &interaction.id, path);
        // The next press has the same result.
        _ = self.channel.api().call::<Value>(&call, Body::Json(&json!({"components": []}))).await;
        self.notice(interaction, CLOSED).await;
    }
}
