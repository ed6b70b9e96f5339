//! What is sent for a content.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_channel::{Address, Content, Delivered, File, Formatted, Operation, Outgoing, SendError, SendOutcome};

use crate::api::Parameters;
use crate::blocks::{buttons, rich_text, shown};
use crate::error::CallError;
use crate::outcome::outcome;
use crate::service::SlackChannel;
use crate::types::{Posted, UploadUrl};

/// The longest text of a message, in characters of Markdown. A section has at most 3,000. Slack refuses a message with about
/// 13,200 characters in all (`msg_blocks_too_long`).
pub(crate) const MAX_TEXT: usize = 3_000;

/// The time limit of a call that sends. All calls of a part take less time than
/// [`Capabilities::send_timeout`](teamster_channel::Capabilities), so that the outcome is known.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(50);

/// The time limit of the bytes of a file. There is a call before and one after it.
const UPLOAD_TIMEOUT: Duration = Duration::from_mins(3);

/// The type of the metadata of a message. Metadata are not shown, and are in the history.
pub(crate) const METADATA: &str = "teamster_delivery";

/// The errors of blocks. They are documented at `chat.postMessage`.
const OF_BLOCKS: [&str; 4] = ["invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_arguments"];

impl SlackChannel {
    /// Sends one part.
    pub(crate) async fn send_part(&self, outgoing: &Outgoing) -> SendOutcome {
        let chat = &outgoing.address.chat;
        let is_address = chat.starts_with(['C', 'D', 'G']) && chat.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_address {
            return SendOutcome::NotSent(SendError::Never("the address is not one of Slack".to_owned()));
        }
        match self.try_send(outgoing).await {
            Ok(message_id) => SendOutcome::Sent(Delivered { message_id }),
            Err(error) => outcome(&error, &outgoing.operation),
        }
    }

    async fn try_send(&self, outgoing: &Outgoing) -> Result<Option<String>, CallError> {
        let channel = &outgoing.address.chat;
        match (&outgoing.operation, &outgoing.content) {
            (Operation::New, Content::File(file)) => self.send_file(file, outgoing).await.map(|()| None),
            (Operation::New, content) => {
                let nonce = outgoing.nonce();
                self.post(&outgoing.address, &outgoing.shown_text(), buttons(content), Some(&nonce)).await.map(Some)
            }
            // A message with a text cannot become a file.
            (Operation::Edit(_), Content::File(_)) => Err(gone()),
            (Operation::Edit(ts), content) => {
                let shown = shown(&outgoing.shown_text());
                let parameters = vec![
                    ("channel", Cow::Borrowed(channel.as_str())),
                    ("ts", Cow::Borrowed(ts.as_str())),
                    // The default of this method is another one than that of a new message, and makes mentions of names.
                    ("parse", Cow::Borrowed("none")),
                ];
                self.call_with_text::<Value>("chat.update", parameters, &shown, buttons(content)).await?;
                Ok(Some(ts.clone()))
            }
            (Operation::Delete(ts), _) => {
                let parameters = vec![("channel", Cow::Borrowed(channel.as_str())), ("ts", Cow::Borrowed(ts.as_str()))];
                match self.api().call::<Value>("chat.delete", &parameters, SEND_TIMEOUT).await {
                    Err(error) if !error.is_refusal("message_not_found") => Err(error),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Writes a message, and returns its time, which is its id.
    pub(crate) async fn post(
        &self,
        address: &Address,
        markdown: &str,
        buttons: Option<Value>,
        nonce: Option<&str>,
    ) -> Result<String, CallError> {
        let mut parameters = vec![
            ("channel", Cow::Borrowed(address.chat.as_str())),
            // A preview would make the service fetch a URL of an agent's text.
            ("unfurl_links", Cow::Borrowed("false")),
            ("unfurl_media", Cow::Borrowed("false")),
        ];
        if !address.thread.is_empty() {
            parameters.push(("thread_ts", Cow::Borrowed(&address.thread)));
        }
        if let Some(nonce) = nonce {
            let metadata = json!({"event_type": METADATA, "event_payload": {"key": nonce}});
            parameters.push(("metadata", metadata.to_string().into()));
        }
        let posted: Posted = self.call_with_text("chat.postMessage", parameters, &shown(markdown), buttons).await?;
        Ok(posted.ts)
    }

    /// Calls a method with a text. The service may refuse blocks; then the text has no formatting, unless it needs its buttons.
    async fn call_with_text<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        parameters: Parameters<'_>,
        shown: &Formatted,
        buttons: Option<Value>,
    ) -> Result<T, CallError> {
        let has_buttons = buttons.is_some();
        let (text, block) = rich_text(shown);
        let blocks: Vec<_> = std::iter::once(block).chain(buttons).collect();
        let mut with_blocks = parameters.clone();
        with_blocks.push(("text", Cow::Borrowed(&text)));
        with_blocks.push(("blocks", json!(blocks).to_string().into()));
        match self.api().call(method, &with_blocks, SEND_TIMEOUT).await {
            Err(error) if !has_buttons && error.refusal().is_some_and(|code| OF_BLOCKS.contains(&code)) => {
                tracing::warn!(%error, "the formatting of a message in Slack is refused; it is sent without");
                let mut plain = parameters;
                plain.push(("text", text.into()));
                // Without them, an edit keeps the old ones.
                plain.push(("blocks", "[]".into()));
                plain.push(("mrkdwn", "false".into()));
                self.api().call(method, &plain, SEND_TIMEOUT).await
            }
            result => result,
        }
    }

    /// Sends a file: the first two calls have no visible effect, the third one shows it.
    async fn send_file(&self, file: &File, outgoing: &Outgoing) -> Result<(), CallError> {
        let parameters = vec![
            ("filename", Cow::Borrowed(if file.name.is_empty() { "file" } else { file.name.as_str() })),
            ("length", outgoing.bytes.len().to_string().into()),
        ];
        // Messages do not depend on the methods for files.
        let unshown =
            |error: CallError| if error.is_uncertain() { CallError::NotUploaded(error.to_string()) } else { error };
        let target: UploadUrl =
            self.api().call("files.getUploadURLExternal", &parameters, SEND_TIMEOUT).await.map_err(unshown)?;
        let uploaded = self.api().upload(&target.upload_url, outgoing.bytes.to_vec(), UPLOAD_TIMEOUT).await;
        // The files have a host of their own. Messages do not depend on it.
        uploaded.map_err(|error| match error {
            CallError::Limited { .. } => error,
            _ if error.is_final() => error,
            _ => CallError::NotUploaded(error.to_string()),
        })?;
        let files = json!([{"id": target.file_id, "title": file.name}]);
        let Address { chat, thread } = &outgoing.address;
        let mut parameters: Parameters<'_> =
            vec![("files", files.to_string().into()), ("channel_id", Cow::Borrowed(chat.as_str()))];
        if !thread.is_empty() {
            parameters.push(("thread_ts", Cow::Borrowed(thread)));
        }
        let caption = outgoing.shown_text();
        if !caption.trim().is_empty() {
            parameters.push(("initial_comment", rich_text(&shown(&caption)).0.into()));
        }
        self.api().call::<Value>("files.completeUploadExternal", &parameters, SEND_TIMEOUT).await.map(|_| ())
    }
}

fn gone() -> CallError {
    let (method, error) = ("chat.update", "message_not_found".to_owned());
    CallError::Refused { method, error, detail: String::new(), needed: None }
}
