//! Edits of messages that wait. An edited message is checked as a new one: by the rules, and by the hooks of accepted messages.

use teamster_store::{CancelScope, ChatAddress, Conversation, EditOutcome, MessageEdit, Turn, TurnState};
use uuid::Uuid;

use super::conversations::{not_found, rejected};
use super::gateway::Gateway;
use crate::channels::deliveries::{Recipient, notice};
use crate::config::{ConversationSettings, Origin, resolve};
use crate::error::GatewayError;
use crate::event::GatewayEvent;
use crate::hooks::HookEvent;

impl Gateway {
    /// Replaces the text of a message that waits.
    ///
    /// # Errors
    /// A rule or a hook rejects the new text. The message keeps its old one, and the chat gets a notice.
    pub async fn edit_message(&self, channel: &str, channel_id: &str, text: &str) -> Result<EditOutcome, GatewayError> {
        let shared = &self.shared;
        let found = shared.store.turn_of_message(channel.to_owned(), channel_id.to_owned()).await?;
        let Some(turn) = found else { return Ok(EditOutcome::Unknown) };
        if turn.state != TurnState::Queued {
            return Ok(EditOutcome::TooLate(turn.id));
        }
        let conversation = shared.store.conversation(turn.conversation, self.now()).await?;
        let conversation = conversation.ok_or_else(|| not_found(turn.conversation))?;
        let text = match self.judged_edit(&conversation, &turn, text).await {
            Ok(text) => text,
            Err(error) => {
                if let GatewayError::Rejected { reason } = &error {
                    self.show_rejected_edit(&conversation, &turn, reason).await?;
                }
                return Err(error);
            }
        };
        let event = shared.event(&GatewayEvent::TurnEdited { text: text.clone() }, None)?;
        let edit = MessageEdit {
            channel: channel.to_owned(),
            channel_id: channel_id.to_owned(),
            text,
            details: None,
            events: vec![event],
        };
        let outcome = shared.store.edit_message(edit, self.now()).await?;
        self.announce_growth(conversation.id);
        Ok(outcome)
    }

    /// Cancels the turn of a message that was removed, if it waits. The turn of a message that an agent works on continues.
    ///
    /// # Errors
    /// The store has failed.
    pub async fn delete_message(&self, channel: &str, channel_id: &str) -> Result<(), GatewayError> {
        let found = self.shared.store.turn_of_message(channel.to_owned(), channel_id.to_owned()).await?;
        if let Some(turn) = found {
            self.cancel(turn.id, CancelScope::Waiting).await?;
        }
        Ok(())
    }

    async fn judged_edit(&self, conversation: &Conversation, turn: &Turn, text: &str) -> Result<String, GatewayError> {
        let ChatAddress { channel, chat, .. } = &conversation.address;
        let settings: ConversationSettings = conversation.settings.to()?;
        let origin = Origin { channel, chat, author: &turn.message.author };
        resolve(&self.shared.config, Some(&conversation.agent), &settings, origin).ok_or_else(rejected)?;
        let event = HookEvent::MessageAccepted {
            conversation_id: Some(conversation.id.to_string()),
            channel: channel.clone(),
            chat: chat.clone(),
            author: turn.message.author.clone(),
            text: text.to_owned(),
        };
        self.shared.judged(&event).await
    }

    async fn show_rejected_edit(
        &self,
        conversation: &Conversation,
        turn: &Turn,
        reason: &str,
    ) -> Result<(), GatewayError> {
        let reason = teamster_channel::render::escape(reason);
        let text = format!("The change of your message was rejected: {reason}. The message keeps its earlier text.");
        let to = Recipient::of_conversation(conversation.id, &conversation.address, self.now());
        let deliveries = notice(&to, &format!("edit-{}-{}", turn.id, Uuid::now_v7()), &text)?;
        self.shared.store.enqueue(deliveries, self.now()).await?;
        self.announce_growth(conversation.id);
        Ok(())
    }
}
