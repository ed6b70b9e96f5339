//! The files of a message.

use std::time::Duration;

use teamster_channel::{Attachment, InboxError, render};

use crate::api::CallError;
use crate::mapping::IncomingFile;
use crate::receive::Receiver;

/// The time limit of one file.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(1);

/// The number of attempts at the files of a message. After the last one, the message is refused: it must not block all others.
const MAX_ATTEMPTS: u32 = 3;

/// The outcome of the download of a message's files.
pub(crate) enum Files {
    Loaded(Vec<Attachment>),
    /// The message is refused, with a text in Markdown for its author.
    Refused(String),
}

impl Receiver<'_> {
    /// Downloads files. Those of a message that is not for the bot are not.
    pub(crate) async fn files(
        &mut self,
        files: &[IncomingFile],
        is_addressed: bool,
        message: &str,
    ) -> Result<Files, InboxError> {
        if files.is_empty() || !is_addressed {
            return Ok(Files::Loaded(Vec::new()));
        }
        let max = self.channel.config().max_download_bytes;
        let total = files.iter().map(|file| file.size).fold(0_u64, u64::saturating_add);
        if total > max {
            return Ok(Files::Refused(too_large(Some(total), max)));
        }
        let (mut loaded, mut left) = (Vec::with_capacity(files.len()), max);
        for file in files {
            match self.channel.api().download(&file.url, left, DOWNLOAD_TIMEOUT).await {
                Ok(bytes) => {
                    left = left.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
                    let (name, media_type) = (file.name.clone(), file.media_type.clone());
                    loaded.push(Attachment { name, media_type, bytes });
                }
                Err(CallError::TooLarge(_)) => return Ok(Files::Refused(too_large(None, max))),
                Err(error) => return self.failed(&error, file, message),
            }
        }
        self.failed_download = None;
        Ok(Files::Loaded(loaded))
    }

    fn failed(&mut self, error: &CallError, file: &IncomingFile, message: &str) -> Result<Files, InboxError> {
        let attempts = match &self.failed_download {
            Some((known, attempts)) if known == message => attempts + 1,
            _ => 1,
        };
        self.failed_download = Some((message.to_owned(), attempts));
        if error.is_final() || attempts >= MAX_ATTEMPTS {
            let (name, reason) = (render::escape(&file.name), render::escape(&error.to_string()));
            return Ok(Files::Refused(format!(
                "The file {name} cannot be downloaded: {reason}. Send the message again."
            )));
        }
        Err(InboxError(format!("a file cannot be downloaded: {error}")))
    }
}

fn too_large(size: Option<u64>, max: u64) -> String {
    let size = size.map_or_else(|| " more bytes than allowed".to_owned(), |size| format!(" {size} bytes"));
    format!("The files of this message have{size}; the limit is {max}. The agent did not get the message.")
}
