//! How a prompt reaches Gemini CLI 0.61.0.
//!
//! It goes by standard input, where the CLI runs a leading `/command` and puts files in the place of `@path`. The text of a
//! command of the user's is not looked through for either: a literal prompt that has one is such a command's text.

use crate::launch::ShadowEntry;
use teamster_types::request::{PromptMode, RequestError, RunRequest};

use super::policy::quoted;
use super::unsupported;

/// What the CLI reads: the rest is cut off without a word (`prompt_9mb_stdin_truncated`).
const LONGEST: usize = 8 << 20;

/// The command's file, in the CLI's folder.
const COMMAND_FILE: &str = "commands/teamster-literal-prompt.toml";
const COMMAND: &str = "/teamster-literal-prompt";

/// What a command's text may not hold: files, shell commands and arguments are put in their place.
const FILLED_IN: &[&str] = &["@{", "!{", "{{args}}"];

pub(super) struct Prompt {
    pub(super) stdin: String,
    pub(super) command: Option<(&'static str, ShadowEntry)>,
}

pub(super) fn of(request: &RunRequest) -> Result<Prompt, RequestError> {
    let text = &request.prompt;
    if text.len() > LONGEST {
        return Err(unsupported("a prompt of more than 8 MiB", "the CLI would cut it off"));
    }
    if request.prompt_mode == PromptMode::Agent || !is_interpreted(text) {
        return Ok(Prompt { stdin: text.clone(), command: None });
    }
    if let Some(filled_in) = FILLED_IN.iter().find(|word| text.contains(**word)) {
        let why = format!("the CLI has no way to leave {filled_in} beside a leading / or an @ as it is");
        return Err(unsupported("this prompt literally", why));
    }
    let document = format!("prompt = {}\n", quoted(text));
    Ok(Prompt { stdin: COMMAND.to_owned(), command: Some((COMMAND_FILE, ShadowEntry::Text(document))) })
}

/// Whether the CLI would do something with it but pass it on. It trims the prompt before it looks for a command.
fn is_interpreted(text: &str) -> bool {
    text.contains('@') || text.trim_start().starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Result<Prompt, RequestError> {
        let mut request = RunRequest::new(text);
        request.prompt_mode = PromptMode::Literal;
        of(&request)
    }

    #[test]
    fn a_literal_prompt_that_means_something_to_the_cli_is_a_commands_text() {
        let prompt = literal("/quit\n\"@a\\\u{7f}").unwrap();
        assert_eq!(prompt.stdin, COMMAND);
        let expected = ShadowEntry::Text("prompt = \"/quit\\n\\\"@a\\\\\\u007f\"\n".to_owned());
        assert!(prompt.command.is_some_and(|(_, entry)| entry == expected));
        assert!(literal("say !{this} to {{args}}").unwrap().command.is_none());
    }

    #[test]
    fn a_prompt_that_cannot_reach_the_model_whole_is_refused() {
        assert!(literal("/x !{ls}").is_err());
        assert!(of(&RunRequest::new("x".repeat(LONGEST + 1))).is_err());
    }
}
