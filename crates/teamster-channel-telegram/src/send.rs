//! What is sent for a content, and what the answer means.

use std::time::{Duration, Instant};

use reqwest::multipart::{Form, Part};
use serde::Serialize;
use serde_json::Value;
use teamster_channel::{
    Address, Content, Delivered, File, Formatted, Operation, Outgoing, RateScope, SendError, SendOutcome,
};

use crate::api::CallError;
use crate::service::TelegramChannel;
use crate::text::{MAX_CAPTION, MAX_TEXT, WireEntity, format, without_mentions};
use crate::types::{InlineButton, InlineKeyboard, SentMessage};

/// The time limit of a send. It is shorter than [`Capabilities::send_timeout`](teamster_channel::Capabilities), so that the
/// outcome is known.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(55);

/// The largest image that the service accepts as a photo.
const MAX_PHOTO: usize = 10 << 20;

/// The most characters of a button that are shown.
const MAX_LABEL: usize = 64;

/// The beginning of the data of a button that needs a text of its author.
pub(crate) const TEXT_BUTTON: &str = "t:";

/// The beginning of the data of another button.
pub(crate) const BUTTON: &str = "b:";

/// A chat, or a topic in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Target {
    pub(crate) chat_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message_thread_id: Option<i64>,
}

#[derive(Serialize)]
struct SendMessage<'a> {
    #[serde(flatten)]
    target: Target,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [WireEntity],
    link_preview_options: NoPreview,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_parameters: Option<ReplyTo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<InlineKeyboard>,
}

#[derive(Serialize)]
struct EditMessage<'a> {
    chat_id: i64,
    message_id: i64,
    text: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    entities: &'a [WireEntity],
    link_preview_options: NoPreview,
    /// Without it, the service removes the buttons.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_markup: Option<InlineKeyboard>,
}

#[derive(Serialize)]
struct OfMessage {
    chat_id: i64,
    message_id: i64,
}

/// A preview would make the service fetch a URL of an agent's text.
#[derive(Clone, Copy, Serialize)]
struct NoPreview {
    is_disabled: bool,
}

const NO_PREVIEW: NoPreview = NoPreview { is_disabled: true };

#[derive(Clone, Copy, Serialize)]
struct ReplyTo {
    message_id: i64,
    allow_sending_without_reply: bool,
}

impl TelegramChannel {
    /// Sends one part.
    pub(crate) async fn send_part(&self, outgoing: &Outgoing) -> SendOutcome {
        let never = |reason: &str| SendOutcome::NotSent(SendError::Never(reason.to_owned()));
        let Some(target) = self.target(&outgoing.address) else {
            return never("the address is not one of Telegram");
        };
        let result = self.try_send(outgoing, target).await;
        let result = match &result {
            Err(CallError::Refused { migrate_to: Some(to), .. }) => {
                self.aliases().migrated(target.chat_id, *to);
                self.try_send(outgoing, Target { chat_id: *to, ..target }).await
            }
            _ => result,
        };
        match result {
            Ok(message_id) => SendOutcome::Sent(Delivered { message_id }),
            Err(error) => self.outcome(&error, &outgoing.operation, target.chat_id),
        }
    }

    /// Returns where to send.
    pub(crate) fn target(&self, address: &Address) -> Option<Target> {
        let chat = address.chat.parse().ok()?;
        let thread = match address.thread.as_str() {
            // The general topic has the id 1, which the service does not accept.
            "" | "1" => None,
            thread => Some(thread.parse().ok()?),
        };
        Some(Target { chat_id: self.aliases().present(chat), message_thread_id: thread })
    }

    async fn try_send(&self, outgoing: &Outgoing, target: Target) -> Result<Option<String>, CallError> {
        let id = |text: &str| text.parse::<i64>();
        let gone = || CallError::Refused {
            code: 400,
            description: "message to edit not found".to_owned(),
            retry_after: None,
            migrate_to: None,
        };
        match (&outgoing.operation, &outgoing.content) {
            (Operation::New, Content::File(file)) => self.send_file(target, file, outgoing).await,
            (Operation::New, content) => {
                let shown = format(&outgoing.shown_text(), MAX_TEXT);
                self.send_text(target, &shown, None, keyboard(content)).await.map(Some)
            }
            // A message with a text cannot become a file.
            (Operation::Edit(_), Content::File(_)) => Err(gone()),
            (Operation::Edit(message), content) => {
                let Ok(message_id) = id(message) else { return Err(gone()) };
                let shown = format(&outgoing.shown_text(), MAX_TEXT);
                self.edit_text(target.chat_id, message_id, &shown, keyboard(content)).await?;
                Ok(Some(message.clone()))
            }
            (Operation::Delete(message), _) => {
                let Ok(message_id) = id(message) else { return Ok(None) };
                let parameters = OfMessage { chat_id: target.chat_id, message_id };
                match self.api().call::<Value>("deleteMessage", &parameters, SEND_TIMEOUT).await {
                    Err(error) if !error.mentions("message to delete not found") => Err(error),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Sends a text, and returns the id of its message. The service may refuse entities; then the text has none.
    pub(crate) async fn send_text(
        &self,
        target: Target,
        shown: &Formatted,
        reply_to: Option<i64>,
        reply_markup: Option<InlineKeyboard>,
    ) -> Result<String, CallError> {
        let reply_to = reply_to.map(|message_id| ReplyTo { message_id, allow_sending_without_reply: true });
        let entities = WireEntity::all(&shown.entities);
        let mut parameters = SendMessage {
            target,
            text: &shown.text,
            entities: &entities,
            link_preview_options: NO_PREVIEW,
            reply_parameters: reply_to,
            reply_markup,
        };
        let mut sent = self.api().call::<SentMessage>("sendMessage", &parameters, SEND_TIMEOUT).await;
        let plain;
        if sent.as_ref().is_err_and(refuses_entities) {
            plain = without_mentions(&shown.text);
            (parameters.text, parameters.entities) = (&plain, &[]);
            sent = self.api().call("sendMessage", &parameters, SEND_TIMEOUT).await;
        }
        sent.map(|message| message.message_id.to_string())
    }

    async fn edit_text(
        &self,
        chat_id: i64,
        message_id: i64,
        shown: &Formatted,
        reply_markup: Option<InlineKeyboard>,
    ) -> Result<(), CallError> {
        let entities = WireEntity::all(&shown.entities);
        let mut parameters = EditMessage {
            chat_id,
            message_id,
            text: &shown.text,
            entities: &entities,
            link_preview_options: NO_PREVIEW,
            reply_markup,
        };
        let mut edited = self.api().call::<Value>("editMessageText", &parameters, SEND_TIMEOUT).await;
        let plain;
        if edited.as_ref().is_err_and(refuses_entities) {
            plain = without_mentions(&shown.text);
            (parameters.text, parameters.entities) = (&plain, &[]);
            edited = self.api().call("editMessageText", &parameters, SEND_TIMEOUT).await;
        }
        match edited {
            Err(error) if !error.mentions("message is not modified") => Err(error),
            _ => Ok(()),
        }
    }

    async fn send_file(&self, target: Target, file: &File, outgoing: &Outgoing) -> Result<Option<String>, CallError> {
        let caption = Some(outgoing.shown_text()).filter(|caption| !caption.trim().is_empty());
        let caption = caption.map(|caption| format(&caption, MAX_CAPTION));
        let is_photo = matches!(file.media_type.as_str(), "image/png" | "image/jpeg" | "image/webp")
            && outgoing.bytes.len() <= MAX_PHOTO;
        if is_photo {
            let form = form(target, "photo", file, outgoing, caption.as_ref())?;
            match self.api().upload::<SentMessage>("sendPhoto", form, SEND_TIMEOUT).await {
                Ok(sent) => return Ok(Some(sent.message_id.to_string())),
                // For example, the image is too long and narrow. As a document it has no limits.
                Err(error) if error.mentions("photo") || error.mentions("image") => {}
                Err(error) => return Err(error),
            }
        }
        let form = form(target, "document", file, outgoing, caption.as_ref())?;
        let sent: SentMessage = self.api().upload("sendDocument", form, SEND_TIMEOUT).await?;
        Ok(Some(sent.message_id.to_string()))
    }

    /// Returns the outcome of a call that has failed.
    fn outcome(&self, error: &CallError, operation: &Operation, chat: i64) -> SendOutcome {
        let reason = error.to_string();
        let later = |after: Option<Duration>, scope| {
            SendOutcome::NotSent(SendError::Later { reason: reason.clone(), after, scope })
        };
        match error {
            CallError::NotSent(_) => SendOutcome::NotSent(SendError::Unavailable { reason, after: None }),
            CallError::Unknown(_) => SendOutcome::Unknown(reason),
            CallError::TooLarge(_) => SendOutcome::NotSent(SendError::Never(reason)),
            CallError::Refused { code: 429, retry_after, .. } => {
                let wait = retry_after.unwrap_or(Duration::from_secs(1));
                let scope = self.limits().limited(chat, wait, Instant::now());
                later(Some(wait), scope)
            }
            CallError::Foreign { code: 429 } => later(Some(Duration::from_secs(5)), RateScope::Channel),
            CallError::Foreign { code } if let Some(error) = SendError::of_foreign_status(*code, reason.as_str()) => {
                SendOutcome::NotSent(error)
            }
            // The service may have stored the message before it failed. A repeated edit is harmless.
            _ if error.code().is_some_and(|code| !(400..500).contains(&code)) => match operation {
                Operation::New => SendOutcome::Unknown(reason),
                Operation::Edit(_) | Operation::Delete(_) => later(None, RateScope::Chat),
            },
            // The token is wrong. The messages wait until it is corrected.
            _ if matches!(error.code(), Some(401 | 404)) => SendOutcome::NotSent(SendError::rejected(reason)),
            _ if is_gone(error) => SendOutcome::NotSent(SendError::Gone(reason)),
            _ => SendOutcome::NotSent(SendError::Never(reason)),
        }
    }
}

/// Returns whether the message of an edit does not exist, or cannot be edited. The texts are those of Bot API 9.
fn is_gone(error: &CallError) -> bool {
    let texts =
        ["message to edit not found", "message can't be edited", "message_id_invalid", "no text in the message"];
    texts.iter().any(|text| error.mentions(text))
}

fn refuses_entities(error: &CallError) -> bool {
    error.code() == Some(400) && (error.mentions("entit") || error.mentions("url_invalid"))
}

/// Returns the buttons of a prompt, one below the other. The token of a button has at most 62 bytes of the 64 that are permitted.
fn keyboard(content: &Content) -> Option<InlineKeyboard> {
    let Content::Prompt(prompt) = content else { return None };
    let button = |button: &teamster_channel::Button| InlineButton {
        text: button.label.chars().take(MAX_LABEL).collect(),
        callback_data: Some(format!("{}{}", if button.takes_text { TEXT_BUTTON } else { BUTTON }, button.token)),
    };
    let inline_keyboard: Vec<_> = prompt.buttons.iter().map(|one| vec![button(one)]).collect();
    (!inline_keyboard.is_empty()).then_some(InlineKeyboard { inline_keyboard })
}

/// Returns the parameters of a file.
fn form(
    target: Target,
    field: &'static str,
    file: &File,
    outgoing: &Outgoing,
    caption: Option<&Formatted>,
) -> Result<Form, CallError> {
    let invalid = |error: &dyn std::error::Error| CallError::NotSent(error.to_string());
    let mut form = Form::new().text("chat_id", target.chat_id.to_string());
    if let Some(thread) = target.message_thread_id {
        form = form.text("message_thread_id", thread.to_string());
    }
    if let Some(Formatted { text, entities }) = caption {
        form = form.text("caption", text.clone());
        if !entities.is_empty() {
            let entities = serde_json::to_string(&WireEntity::all(entities)).map_err(|error| invalid(&error))?;
            form = form.text("caption_entities", entities);
        }
    }
    let part = Part::bytes(outgoing.bytes.to_vec()).file_name(file.name.clone());
    let part = match part.mime_str(&file.media_type) {
        Ok(part) => part,
        // The service checks the content itself.
        Err(_) => Part::bytes(outgoing.bytes.to_vec()).file_name(file.name.clone()),
    };
    Ok(form.part(field, part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{TelegramConfig, Token};

    #[test]
    fn a_refusal_by_a_proxy_is_tried_again_later_except_for_the_size() {
        let channel = TelegramChannel::new(TelegramConfig::new(Token::new("1:secret").unwrap())).unwrap();
        let outcome = |code| channel.outcome(&CallError::Foreign { code }, &Operation::New, 1);
        for code in [400, 403, 404, 408] {
            let SendOutcome::NotSent(SendError::Later { after, scope, .. }) = outcome(code) else { panic!("{code}") };
            assert_eq!((after, scope), (None, RateScope::Chat), "another message may pass");
        }
        for code in [401, 407, 511] {
            assert!(matches!(outcome(code), SendOutcome::NotSent(SendError::Unavailable { .. })), "{code}");
        }
        assert!(matches!(outcome(413), SendOutcome::NotSent(SendError::Never(_))));
        assert!(matches!(outcome(502), SendOutcome::Unknown(_)));
    }
}
