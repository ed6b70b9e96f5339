//! The files of a message.

use std::borrow::Cow;
use std::time::Duration;

use teamster_channel::{Attachment, InboxError, render};

use crate::api::CALL_TIMEOUT;
use crate::error::CallError;
use crate::handler::Handler;
use crate::mapping::{self, IncomingFile};
use crate::types::FileInfo;

/// The time limit of one file.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of attempts at a file. After the last one, the message is refused: it must not block all others of its chat.
const MAX_ATTEMPTS: u32 = 3;

/// The delay after a failed attempt.
const DELAY: Duration = Duration::from_millis(300);

/// The longest delay if the service limits downloads: the later messages of the chat wait as well.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The outcome of the downloads for a message.
pub(crate) enum Files {
    Loaded(Vec<Attachment>),
    /// The message is refused, with a text in Markdown for its author.
    Refused(String),
}

impl Handler<'_> {
    /// Downloads files. Those of a message that is not for the bot are not.
    pub(crate) async fn files(&self, files: &[IncomingFile], is_addressed: bool) -> Result<Files, InboxError> {
        if files.is_empty() || !is_addressed {
            return Ok(Files::Loaded(Vec::new()));
        }
        let max = self.channel.config().max_download_bytes;
        let total = files.iter().filter_map(|file| file.size).fold(0_u64, u64::saturating_add);
        if total > max {
            return Ok(Files::Refused(too_large(Some(total), max)));
        }
        let (mut loaded, mut left) = (Vec::with_capacity(files.len()), max);
        for file in files {
            match self.file(file, left).await {
                Ok(attachment) => {
                    left = left.saturating_sub(u64::try_from(attachment.bytes.len()).unwrap_or(u64::MAX));
                    loaded.push(attachment);
                }
                Err(CallError::TooLarge(_)) => return Ok(Files::Refused(too_large(None, max))),
                Err(error) => return Ok(Files::Refused(not_downloaded(file, &error))),
            }
        }
        Ok(Files::Loaded(loaded))
    }

    async fn file(&self, file: &IncomingFile, max: u64) -> Result<Attachment, CallError> {
        let mut attempt = 1;
        loop {
            match self.try_file(file, max).await {
                Err(error) if !error.is_final() && attempt < MAX_ATTEMPTS && !self.stop.is_cancelled() => {
                    attempt += 1;
                    let delay = match error {
                        CallError::Limited { retry_after, .. } => retry_after.min(MAX_DELAY),
                        _ => DELAY,
                    };
                    self.pause(delay).await;
                }
                result => return result,
            }
        }
    }

    async fn try_file(&self, file: &IncomingFile, max: u64) -> Result<Attachment, CallError> {
        let mut file = file.clone();
        if file.url.is_none() && file.is_hosted {
            let parameters = vec![("file", Cow::Owned(file.id.clone()))];
            let info: FileInfo = self.channel.api().call("files.info", &parameters, CALL_TIMEOUT).await?;
            file = mapping::file(&info.file);
        }
        let Some(url) = file.url.filter(|_| file.is_hosted) else {
            return Err(no_content());
        };
        let (bytes, media_type) = self.channel.api().download(&url, max, DOWNLOAD_TIMEOUT).await?;
        // Without the scope, the service answers with the page of a login.
        if media_type.starts_with("text/html") && !file.media_type.starts_with("text/html") {
            let (method, error) = ("a download", "missing_scope".to_owned());
            let needed = Some("files:read".to_owned());
            return Err(CallError::Refused { method, error, detail: " (needs files:read)".to_owned(), needed });
        }
        Ok(Attachment { name: file.name, media_type: file.media_type, bytes })
    }
}

fn no_content() -> CallError {
    let detail = ": Slack has a link to it only".to_owned();
    CallError::Refused { method: "a download", error: "no content".to_owned(), detail, needed: None }
}

fn not_downloaded(file: &IncomingFile, error: &CallError) -> String {
    let (name, reason) = (render::escape(&file.name), render::escape(&error.to_string()));
    format!("The file {name} cannot be downloaded: {reason}. The agent did not get the message.")
}

fn too_large(size: Option<u64>, max: u64) -> String {
    let size = size.map_or_else(|| " more bytes than allowed".to_owned(), |size| format!(" {size} bytes"));
    format!("The files of this message have{size}; the limit is {max}. The agent did not get the message.")
}
