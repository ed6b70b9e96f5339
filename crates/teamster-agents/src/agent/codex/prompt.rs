//! A prompt with its attachments, for both interfaces.

use std::collections::BTreeSet;

use super::error::unsupported;
use super::mentions;
use teamster_types::request::{
    Attachment, AttachmentKind, Conversation, ProjectTrust, PromptMode, RequestError, RunRequest,
};

/// The maximum characters of a prompt (`prompt_stdin_1m_dash`). The CLI rejects a longer one with `input_too_large`.
const LONGEST: usize = 1 << 20;

/// The input of a turn.
#[derive(Debug)]
pub(super) struct Content<'a> {
    /// The prompt, after the texts that are attached.
    pub(super) text: String,
    pub(super) images: Vec<Image<'a>>,
}

#[derive(Debug)]
pub(super) struct Image<'a> {
    pub(super) name: &'a str,
    pub(super) media_type: &'static str,
    pub(super) data: &'a [u8],
}

/// Joins a prompt and its attachments.
pub(super) fn content<'a>(prompt: &str, attachments: &'a [Attachment]) -> Result<Content<'a>, RequestError> {
    let (mut text, mut images) = (String::new(), Vec::new());
    for attachment in attachments {
        let (name, data) = match attachment {
            Attachment::Data { name, data } => (name.as_str(), data.as_slice()),
            Attachment::Path(path) => {
                return Err(invalid_attachment(
                    &path.display().to_string(),
                    "it has not been read: the caller that starts the run must read it first",
                ));
            }
        };
        match AttachmentKind::of(data) {
            Some(AttachmentKind::Image(media_type)) => images.push(Image { name, media_type, data }),
            Some(AttachmentKind::Text) => {
                text.extend(["Attached file ", name, ":\n", &String::from_utf8_lossy(data), "\n\n"]);
            }
            Some(AttachmentKind::Pdf) | None => {
                return Err(invalid_attachment(name, "its type is not text, PNG, JPEG, GIF or WebP"));
            }
        }
    }
    text.push_str(prompt);
    if text.chars().count() > LONGEST {
        let why = format!("the limit is {LONGEST} characters, which includes attached texts");
        return Err(unsupported("a prompt of this length", why));
    }
    Ok(Content { text, images })
}

/// Joins a system prompt and an addition to it.
pub(super) fn system_prompt(system: &str, more: Option<&str>) -> String {
    more.map_or_else(|| system.to_owned(), |more| format!("{system}\n\n{more}"))
}
/// Returns the instructions that must be prepended to the first prompt.
///
/// `developerInstructions` belong to a thread's history from its start. 0.169.0 ignores new ones when a thread is resumed or forked
/// (conformance test `a_resumed_session_takes_another_system_prompt_and_gets_an_addition_with_the_prompt`).
pub(super) fn instructions(request: &RunRequest) -> Option<&str> {
    let is_ignored = request.system_prompt.is_none() && request.conversation != Conversation::New;
    request.append_system_prompt.as_deref().filter(|_| is_ignored)
}

pub(super) fn invalid_attachment(name: &str, problem: &str) -> RequestError {
    RequestError::Attachment { name: name.to_owned(), problem: problem.to_owned() }
}

/// Returns whether prompts must not load skills. Skills of an untrusted directory are untrusted too.
pub(super) fn is_literal(request: &RunRequest) -> bool {
    request.prompt_mode == PromptMode::Literal || request.project_trust == ProjectTrust::Untrusted
}

/// Returns the names of the skills that a literal prompt would load.
pub(super) fn skills(text: &str) -> Result<BTreeSet<&str>, RequestError> {
    if mentions::links_an_extension(text) {
        let why = "the prompt contains a link to a plugin, an app or a skill, which the agent would follow";
        return Err(unsupported("prompt_mode=literal", why));
    }
    Ok(mentions::skills(text))
}
