//! What follows an interaction, and what the person sees then.

use reqwest::Method;
use serde_json::{Value, json};
use teamster_channel::{Address, ChatCommand, InboxError, PromptAnswer, PromptDecision, split};

use crate::acknowledge::{Acked, Acknowledging, ONLY_YOU};
use crate::api::{Body, Call, CallError};
use crate::mapping::{Pressed, address, author_of_interaction, pressed};
use crate::receive::Receiver;
use crate::send::message_body;
use crate::text::LIMIT;
use crate::types::Interaction;

/// The texts that a person sees after a press.
const APPLIED: &str = "Done.";
const CLOSED: &str = "This request is closed.";
const NOT_ALLOWED: &str = "You must not answer this request.";

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
