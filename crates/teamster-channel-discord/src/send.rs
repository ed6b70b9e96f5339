//! What is sent for a content, and what the answer means.

use std::time::{Duration, Instant};

use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::{Value, json};
use teamster_channel::{
    Address, Button, ButtonStyle, Content, Delivered, File, Operation, Outgoing, RateScope, SendError, SendOutcome,
};

use crate::api::{Body, Call, CallError};
use crate::service::DiscordChannel;
use crate::text::{label, shown};
use crate::types::SentMessage;

/// The time limit of a send. It is shorter than [`Capabilities::send_timeout`](teamster_channel::Capabilities), so that the
/// outcome is known.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(50);

/// The delays before further attempts at a message whose outcome is unknown. The service recognizes the nonce.
const REPEATS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The longest label of a button in characters, <https://discord.com/developers/docs/components/reference#button>.
const MAX_LABEL: usize = 80;

/// The largest number of buttons in a row.
const MAX_IN_ROW: usize = 5;

/// The largest number of buttons of a message: it has at most 5 rows.
const MAX_BUTTONS: usize = 25;

/// The beginning of the id of a button that needs a text of its author.
pub(crate) const TEXT_BUTTON: &str = "t:";

/// The beginning of the id of another button.
pub(crate) const BUTTON: &str = "b:";

/// A message without previews of links: a preview would make the service fetch a URL of an agent's text.
const NO_PREVIEWS: u64 = 1 << 2;

/// Codes of errors.
const UNKNOWN_CHANNEL: u64 = 10_003;
const UNKNOWN_MESSAGE: u64 = 10_008;
const OLD_MESSAGE: u64 = 30_046;
const OF_ANOTHER_AUTHOR: u64 = 50_005;
const ARCHIVED_THREAD: u64 = 50_083;

impl DiscordChannel {
    /// Sends one part.
    pub(crate) async fn send_part(&self, outgoing: &Outgoing) -> SendOutcome {
        let Some(channel) = target(&outgoing.address) else {
            return SendOutcome::NotSent(SendError::Never("the address is not one of Discord".to_owned()));
        };
        let mut result = self.try_send(outgoing, channel).await;
        if let (Err(error), Operation::New) = (&result, &outgoing.operation)
            && error.code() == Some(UNKNOWN_CHANNEL)
            && !outgoing.address.thread.is_empty()
        {
            // The thread of a message is opened after the message was accepted. A crash in between is repaired here.
            let Address { chat, thread } = &outgoing.address;
            result = match self.open_thread(chat, thread, None).await {
                Ok(()) => self.try_send(outgoing, channel).await,
                Err(error) => Err(error),
            };
        }
        match result {
            Ok(message_id) => SendOutcome::Sent(Delivered { message_id }),
            Err(error) => outcome(&error, &outgoing.operation),
        }
    }

    async fn try_send(&self, outgoing: &Outgoing, channel: &str) -> Result<Option<String>, CallError> {
        match (&outgoing.operation, &outgoing.content) {
            (Operation::New, content) => {
                let mut body =
                    message_body(&outgoing.shown_text(), &rows(content), matches!(content, Content::File(_)));
                set_nonce(&mut body, &outgoing.nonce());
                let file = match content {
                    Content::File(file) => Some((file, outgoing)),
                    _ => None,
                };
                self.create(channel, &body, file).await.map(Some)
            }
            // A message with a text cannot become a file.
            (Operation::Edit(_), Content::File(_)) => Err(gone()),
            (Operation::Edit(message), content) => {
                if !is_id(message) {
                    return Err(gone());
                }
                let body = message_body(&outgoing.shown_text(), &rows(content), false);
                let path = vec!["channels", channel, "messages", message];
                let mut call = Call::new(Method::PATCH, "editMessage", channel, path);
                call.timeout = SEND_TIMEOUT;
                self.api().call::<Value>(&call, Body::Json(&body)).await?;
                Ok(Some(message.clone()))
            }
            (Operation::Delete(message), _) => {
                if !is_id(message) {
                    return Ok(None);
                }
                let path = vec!["channels", channel, "messages", message];
                let call = Call::new(Method::DELETE, "deleteMessage", channel, path);
                match self.api().call::<Value>(&call, Body::None).await {
                    Err(error) if error.code() != Some(UNKNOWN_MESSAGE) => Err(error),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Creates a message, and returns its id. The nonce in the body makes a repeat harmless, so it is repeated at once after an
    /// unknown outcome.
    pub(crate) async fn create(
        &self,
        channel: &str,
        body: &Value,
        file: Option<(&File, &Outgoing)>,
    ) -> Result<String, CallError> {
        let deadline = Instant::now() + SEND_TIMEOUT;
        let mut call = Call::new(Method::POST, "createMessage", channel, vec!["channels", channel, "messages"]);
        let form = || form(body, file);
        let mut repeats = REPEATS.into_iter();
        // An earlier call may have had an effect, whatever the failure of a later one.
        let mut unknown = None;
        loop {
            call.timeout = deadline.saturating_duration_since(Instant::now());
            let body = if file.is_some() { Body::Form(&form) } else { Body::Json(body) };
            let error = match self.api().call::<SentMessage>(&call, body).await {
                Ok(sent) => return Ok(sent.id),
                Err(error) => error,
            };
            match repeats.next() {
                Some(delay) if error.is_unknown() && Instant::now() + delay < deadline => {
                    tracing::debug!(%error, "a message is sent to Discord again with the same nonce");
                    unknown.get_or_insert(error);
                    tokio::time::sleep(delay).await;
                }
                _ => return Err(unknown.unwrap_or(error)),
            }
        }
    }
}

/// Returns the channel of an address: a thread is a channel too.
pub(crate) fn target(address: &Address) -> Option<&str> {
    let id = if address.thread.is_empty() { &address.chat } else { &address.thread };
    (is_id(id) && is_id(&address.chat)).then_some(id)
}

fn is_id(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

/// Returns a message. It notifies no person. Without a text, a file has no caption.
pub(crate) fn message_body(text: &str, rows: &[Value], has_file: bool) -> Value {
    let text = if has_file && text.trim().is_empty() { "" } else { &shown(text) };
    json!({"content": text, "components": rows, "allowed_mentions": {"parse": []}, "flags": NO_PREVIEWS})
}

/// Makes the service recognize a repeat.
pub(crate) fn set_nonce(body: &mut Value, nonce: &str) {
    if let Some(body) = body.as_object_mut() {
        body.insert("nonce".to_owned(), nonce.into());
        body.insert("enforce_nonce".to_owned(), true.into());
    }
}

/// Returns the buttons of a prompt in rows.
fn rows(content: &Content) -> Vec<Value> {
    let Content::Prompt(prompt) = content else { return Vec::new() };
    let button = |button: &Button| {
        let style = match button.style {
            ButtonStyle::Plain => 2,
            ButtonStyle::Positive => 3,
            ButtonStyle::Negative => 4,
        };
        let id = format!("{}{}", if button.takes_text { TEXT_BUTTON } else { BUTTON }, button.token);
        json!({"type": 2, "style": style, "label": label(&button.label, MAX_LABEL), "custom_id": id})
    };
    let buttons: Vec<_> = prompt.buttons.iter().take(MAX_BUTTONS).map(button).collect();
    buttons.chunks(MAX_IN_ROW).map(|row| json!({"type": 1, "components": row})).collect()
}

/// Returns a message with a file.
fn form(body: &Value, file: Option<(&File, &Outgoing)>) -> Form {
    let form = Form::new().text("payload_json", body.to_string());
    let Some((file, outgoing)) = file else { return form };
    let part = || Part::bytes(outgoing.bytes.to_vec()).file_name(file.name.clone());
    let part = part().mime_str(&file.media_type).unwrap_or_else(|_| part());
    form.part("files[0]", part)
}

fn gone() -> CallError {
    CallError::Refused { status: 404, code: UNKNOWN_MESSAGE, message: "Unknown Message".to_owned() }
}

/// Returns the outcome of a call that has failed.
fn outcome(error: &CallError, operation: &Operation) -> SendOutcome {
    let reason = error.to_string();
    let later = |after: Option<Duration>, scope| {
        SendOutcome::NotSent(SendError::Later { reason: reason.clone(), after, scope })
    };
    match error {
        CallError::NotSent(_) => SendOutcome::NotSent(SendError::Unavailable { reason, after: None }),
        CallError::Limited { after, is_global } => {
            later(Some(*after), if *is_global { RateScope::Channel } else { RateScope::Chat })
        }
        CallError::TooLarge(_) => SendOutcome::NotSent(SendError::Never(reason)),
        CallError::Foreign { status } if let Some(error) = SendError::of_foreign_status(*status, reason.as_str()) => {
            SendOutcome::NotSent(error)
        }
        // The service may have stored the message before it failed. A repeated edit is harmless.
        _ if error.is_unknown() => match operation {
            Operation::New => SendOutcome::Unknown(reason),
            Operation::Edit(_) | Operation::Delete(_) => later(None, RateScope::Chat),
        },
        // The token is wrong. The messages wait until it is corrected.
        _ if error.status() == Some(401) => SendOutcome::NotSent(SendError::rejected(reason)),
        // An edit does not open an archived thread again; a new message does.
        _ if matches!(error.code(), Some(UNKNOWN_MESSAGE | OLD_MESSAGE | OF_ANOTHER_AUTHOR | ARCHIVED_THREAD))
            && matches!(operation, Operation::Edit(_)) =>
        {
            SendOutcome::NotSent(SendError::Gone(reason))
        }
        _ => SendOutcome::NotSent(SendError::Never(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_a_proxy_is_tried_again_later_except_for_the_size() {
        for status in [400, 403, 404] {
            let outcome = outcome(&CallError::Foreign { status }, &Operation::New);
            let SendOutcome::NotSent(SendError::Later { after, scope, .. }) = outcome else { panic!("{status}") };
            assert_eq!((after, scope), (None, RateScope::Chat), "another message may pass");
        }
        let proxy = outcome(&CallError::Foreign { status: 407 }, &Operation::New);
        assert!(matches!(proxy, SendOutcome::NotSent(SendError::Unavailable { .. })));
        let too_large = outcome(&CallError::Foreign { status: 413 }, &Operation::New);
        assert!(matches!(too_large, SendOutcome::NotSent(SendError::Never(_))));
    }
}
