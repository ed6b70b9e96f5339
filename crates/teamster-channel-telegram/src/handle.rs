//! What follows an update.

use serde::Serialize;
use serde_json::{Value, json};
use teamster_channel::{
    Author, COMMANDS, ChatCommand, Edit, InboxError, Message, PromptAnswer, PromptDecision, Receipt, TextLimit,
    TextUnit, render, split,
};

use crate::api::CALL_TIMEOUT;
use crate::download::Files;
use crate::mapping::{Context, Incoming, Origin, Received, Token, incoming};
use crate::receive::{Handled, Receiver};
use crate::text::{MAX_TEXT, format};
use crate::types::Update;

/// The texts that a person sees after a press.
const APPLIED: &str = "Done.";
const CLOSED: &str = "This request is closed.";
const NOT_ALLOWED: &str = "You must not answer this request.";
const REPLY: &str = "Reply to this message with your answer.";

#[derive(Serialize)]
struct AnswerPress<'a> {
    callback_query_id: &'a str,
    text: &'a str,
    show_alert: bool,
}

impl Receiver<'_> {
    /// Handles updates that are one message. An error means that they must be received again.
    pub(crate) async fn handle(&mut self, updates: &[Update]) -> Result<Handled, InboxError> {
        let mapped = {
            let aliases = self.channel.aliases();
            let context = Context { bot: &self.bot, groups: self.channel.config().groups, aliases: &aliases };
            incoming(updates, context)
        };
        match mapped {
            Incoming::Reply { token, message } => return self.reply(token, message, updates).await,
            Incoming::Message(received) => self.message(received, updates).await?,
            Incoming::Command { author, origin, .. } | Incoming::Help { author, origin }
                if !self.may_get_reply(&author, &origin) => {}
            Incoming::Command { name, argument, author, origin } => {
                let command = ChatCommand { name: name.to_owned(), argument, author, address: origin.address.clone() };
                let reply = self.inbox.command(command).await?;
                self.reply_with(&origin, &reply.text).await;
            }
            Incoming::Help { author, origin } => self.reply_with(&origin, &help(&author, &origin)).await,
            Incoming::Edit { id, .. } if self.joined.contains(&id) => {}
            Incoming::Edit { id, text } => _ = self.inbox.edit(Edit { id, text }).await?,
            Incoming::Press { callback, token, author, origin } => {
                self.press(&callback, token, author, origin).await?;
            }
            Incoming::Migrated { from, to } => self.channel.aliases().migrated(from, to),
            Incoming::Unreadable { author, origin } => {
                if self.inbox.is_admitted(&origin.address, &author) {
                    let text = "This kind of message cannot be read. Send a text or a file.";
                    self.refuse(&author, &origin, text).await;
                }
            }
            Incoming::Nothing => {}
        }
        Ok(Handled::Other)
    }

    /// Returns whether the bot replies when the author sends a command, asks for help or is refused. It replies to a person that the
    /// rules admit, and to every person in a private chat.
    fn may_get_reply(&self, author: &Author, origin: &Origin) -> bool {
        // Two programs could answer each other without end. The inbox counts the messages of programs, and not these replies.
        !author.is_bot && (origin.is_private || self.inbox.is_admitted(&origin.address, author))
    }

    /// Replies that a message is refused.
    async fn refuse(&self, author: &Author, origin: &Origin, reason: &str) {
        if self.may_get_reply(author, origin) {
            self.reply_with(origin, reason).await;
        }
    }

    async fn message(&mut self, received: Received, updates: &[Update]) -> Result<(), InboxError> {
        let Received { ids, author, origin, text, files, is_addressed } = received;
        if !files.is_empty() && !self.inbox.is_admitted(&origin.address, &author) {
            return Ok(());
        }
        let attachments = match self.files(&files, is_addressed, updates).await? {
            Files::Loaded(attachments) => attachments,
            Files::Refused(reason) => {
                self.refuse(&author, &origin, &reason).await;
                return Ok(());
            }
        };
        if ids.len() > 1 && files.is_empty() {
            self.remember_joined(&ids);
        }
        let (address, sender) = (origin.address.clone(), author.clone());
        let receipt = self.inbox.message(Message { ids, address, author, text, attachments, is_addressed }).await?;
        match receipt {
            Receipt::Refused(reason) => self.refuse(&sender, &origin, &render::escape(&reason)).await,
            Receipt::Busy(reason) => {
                let text = format!("{} Send the message again later.", render::escape(&reason));
                self.refuse(&sender, &origin, &text).await;
            }
            Receipt::Accepted { .. } | Receipt::Duplicate | Receipt::Ignored => {}
        }
        Ok(())
    }

    /// Answers a question. If it is closed, the reply is a message.
    async fn reply(&mut self, token: String, received: Received, updates: &[Update]) -> Result<Handled, InboxError> {
        let answer = PromptAnswer {
            token,
            message: Some(received.text.clone()),
            author: received.author.clone(),
            address: received.origin.address.clone(),
        };
        match self.inbox.answer(answer).await? {
            PromptDecision::Applied => Ok(Handled::Answer),
            PromptDecision::NotAllowed => {
                self.refuse(&received.author, &received.origin, NOT_ALLOWED).await;
                Ok(Handled::Other)
            }
            PromptDecision::Closed => self.message(received, updates).await.map(|()| Handled::Other),
        }
    }

    /// Answers a press. Without an answer, the client of the person shows for a while that it waits.
    async fn press(
        &self,
        callback: &str,
        token: Option<Token>,
        author: Author,
        origin: Option<Origin>,
    ) -> Result<(), InboxError> {
        let (text, decision) = match (token, &origin) {
            (Some(Token::TakesText), _) => (REPLY, None),
            (Some(Token::Decides(token)), Some(origin)) => {
                let answer = PromptAnswer { token, message: None, author, address: origin.address.clone() };
                let decision = self.inbox.answer(answer).await?;
                let text = match decision {
                    PromptDecision::Applied => APPLIED,
                    PromptDecision::Closed => CLOSED,
                    PromptDecision::NotAllowed => NOT_ALLOWED,
                };
                (text, Some(decision))
            }
            _ => (CLOSED, Some(PromptDecision::Closed)),
        };
        let parameters = AnswerPress { callback_query_id: callback, text, show_alert: text != APPLIED };
        let answered = self.channel.api().call::<Value>("answerCallbackQuery", &parameters, CALL_TIMEOUT).await;
        if let Err(error) = answered {
            // For example, the press is older than this start.
            tracing::debug!(%error, "a press of a button in Telegram got no answer");
        }
        if let (Some(PromptDecision::Closed), Some(origin)) = (decision, origin) {
            self.remove_buttons(&origin).await;
        }
        Ok(())
    }

    async fn remove_buttons(&self, origin: &Origin) {
        let Some(target) = self.channel.target(&origin.address) else { return };
        let parameters = json!({"chat_id": target.chat_id, "message_id": origin.message_id});
        // The next press has the same result.
        _ = self.channel.api().call::<Value>("editMessageReplyMarkup", &parameters, CALL_TIMEOUT).await;
    }

    /// Writes a reply in Markdown, directly: it is not stored, and it is not sent again.
    async fn reply_with(&self, origin: &Origin, markdown: &str) {
        let Some(target) = self.channel.target(&origin.address) else { return };
        for part in split(markdown, TextLimit { max: MAX_TEXT, unit: TextUnit::Utf16 }) {
            let shown = format(&part, MAX_TEXT);
            if let Err(error) = self.channel.send_text(target, &shown, Some(origin.message_id), None).await {
                tracing::warn!(%error, "a reply in Telegram was not sent");
                return;
            }
        }
    }
}

/// Returns the first text of a bot. It has what an operator needs for a rule.
fn help(author: &Author, origin: &Origin) -> String {
    let commands: Vec<_> =
        COMMANDS.iter().map(|command| format!("- /{}: {}", command.name, command.description)).collect();
    format!(
        "Write a message, and an agent answers it, if the operator of this gateway lets you.\n\n{}\n\nFor the operator: your \
         author id is `{}`, the id of this chat is `{}`.",
        commands.join("\n"),
        author.id,
        origin.address.chat
    )
}
