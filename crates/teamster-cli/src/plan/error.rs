//! Errors in the arguments, and in the files that they name.

use teamster::UnknownAgent;
use teamster::request::RequestError;
use teamster::text::without_bom;

use super::stdin::StdinError;
use crate::config::ConfigError;
use crate::printable::{Printable, printable};
use crate::sessions::ResumeError;
use crate::settings::nearest;

/// An error in the arguments or in a file that they name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("there is no prompt")]
    NoPrompt,
    #[error("there is no prompt: {word:?} is taken as the session id of --resume")]
    WordOfResume { word: String },
    #[error("the prompt - is standard input, which --stdin ignore excludes")]
    DashWithoutStdin,
    #[error("--fork needs --resume or --continue")]
    NothingToFork,
    #[error(transparent)]
    Stdin(#[from] StdinError),
    #[error("cannot read {what}: {source}")]
    Unreadable { what: String, source: std::io::Error },
    #[error("{what} is not UTF-8 text: byte {at} is wrong")]
    NotText { what: String, at: usize },
    #[error("{what}: {message}")]
    McpConfig { what: String, message: String },
    #[error("{second}: server \"{name}\" is already defined in {first}")]
    DuplicateServer { name: String, first: String, second: String },
    #[error("{what} is not JSON: {source}")]
    SchemaSyntax { what: String, source: serde_json::Error },
    #[error(transparent)]
    Resume(#[from] ResumeError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Agent(#[from] UnknownAgent),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl UsageError {
    /// Returns how to correct the error, if the message does not contain that.
    pub(crate) fn hint(&self) -> Option<Printable> {
        let hint = match self {
            Self::Resume(error) => return error.hint(),
            Self::WordOfResume { word } => {
                let word = Printable::shell_word(word);
                return Some(printable!(
                    "with an id: teamster run --resume ID {}; to choose from a list: teamster run {} --resume",
                    &word,
                    &word
                ));
            }
            Self::NoPrompt => Some("teamster run 'What does this project do?', or pipe a prompt into it"),
            Self::Stdin(StdinError::TooLong) => Some("pipe less, or let the agent read the file itself"),
            Self::Stdin(StdinError::Silent(_)) => {
                Some("close it (< /dev/null) or ignore it (--stdin ignore); for a slow command: --stdin read")
            }
            Self::DuplicateServer { .. } => Some("rename or remove one of them"),
            Self::McpConfig { .. } => Some("the format is {\"mcpServers\": {\"name\": {\"command\": \"...\"}}}"),
            Self::Agent(error) => {
                let similar = nearest(&error.name, error.known.iter().map(String::as_str));
                return Some(match similar {
                    Some(name) => printable!("did you mean {}?", Printable::exact(name)),
                    None => "further agents are defined in the file of --config: docs/acp.md".into(),
                });
            }
            _ => None,
        };
        hint.map(Printable::from)
    }
}

/// Converts bytes to text, without a byte order mark at its start.
pub(super) fn as_text(what: &str, bytes: Vec<u8>) -> Result<String, UsageError> {
    let mut text = String::from_utf8(bytes)
        .map_err(|error| UsageError::NotText { what: what.to_owned(), at: error.utf8_error().valid_up_to() })?;
    let mark = text.len() - without_bom(&text).len();
    text.drain(..mark);
    Ok(text)
}

/// Returns the error of a source that cannot be read.
pub(super) fn unreadable(what: &str, source: std::io::Error) -> UsageError {
    UsageError::Unreadable { what: what.to_owned(), source }
}
