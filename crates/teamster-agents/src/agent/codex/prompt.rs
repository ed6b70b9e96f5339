//! A prompt with its attachments, as both forms take it.

use std::collections::BTreeSet;

use super::{mentions, unsupported};
use teamster_types::request::{
    Attachment, AttachmentKind, Conversation, ProjectTrust, PromptMode, RequestError, RunRequest,
};

/// Characters of a prompt (`prompt_stdin_1m_dash`); one more is `input_too_large`.
const LONGEST: usize = 1 << 20;

/// What the model is told.
#[derive(Debug)]
pub(super) struct Content<'a> {
    /// The words, with texts that are attached before them.
    pub(super) text: String,
    pub(super) images: Vec<Image<'a>>,
}

#[derive(Debug)]
pub(super) struct Image<'a> {
    pub(super) name: &'a str,
    pub(super) media_type: &'static str,
    pub(super) data: &'a [u8],
}

/// Puts a prompt and its attachments together.
pub(super) fn content<'a>(prompt: &str, attachments: &'a [Attachment]) -> Result<Content<'a>, RequestError> {
    let (mut text, mut images) = (String::new(), Vec::new());
    for attachment in attachments {
        let (name, data) = match attachment {
            Attachment::Data { name, data } => (name.as_str(), data.as_slice()),
            Attachment::Path(path) => {
                return Err(wrong(
                    &path.display().to_string(),
                    "it has not been read: whoever starts the run must read it first",
                ));
            }
        };
        match AttachmentKind::of(data) {
            Some(AttachmentKind::Image(media_type)) => images.push(Image { name, media_type, data }),
            Some(AttachmentKind::Text) => {
                text.extend(["Attached file ", name, ":\n", &String::from_utf8_lossy(data), "\n\n"]);
            }
            Some(AttachmentKind::Pdf) | None => return Err(wrong(name, "it is no text, PNG, JPEG, GIF or WebP")),
        }
    }
    text.push_str(prompt);
    if text.chars().count() > LONGEST {
        let why = format!("it takes {LONGEST} characters at most, texts that are attached included");
        return Err(unsupported("a prompt of this length", why));
    }
    Ok(Content { text, images })
}

/// Returns the instructions that must be prepended to the first prompt.
///
/// `developerInstructions` belong to a thread's history from its start. 0.169.0 ignores other ones when a thread is resumed or
/// forked (conformance test `a_resumed_session_takes_another_system_prompt_and_gets_an_addition_with_the_prompt`).
pub(super) fn instructions(request: &RunRequest) -> Option<&str> {
    let is_ignored = request.system_prompt.is_none() && request.conversation != Conversation::New;
    request.append_system_prompt.as_deref().filter(|_| is_ignored)
}

pub(super) fn wrong(name: &str, problem: &str) -> RequestError {
    RequestError::Attachment { name: name.to_owned(), problem: problem.to_owned() }
}

/// Whether prompts must not bring in skills: the directory's own are no better than the directory.
pub(super) fn is_literal(request: &RunRequest) -> bool {
    request.prompt_mode == PromptMode::Literal || request.project_trust == ProjectTrust::Untrusted
}

/// The names that a literal prompt would bring skills in by.
pub(super) fn skills(text: &str) -> Result<BTreeSet<&str>, RequestError> {
    if mentions::links_an_extension(text) {
        let why = "the prompt holds a link to a plugin, an app or a skill, which it would follow";
        return Err(unsupported("--prompt-mode literal", why));
    }
    Ok(mentions::skills(text))
}
