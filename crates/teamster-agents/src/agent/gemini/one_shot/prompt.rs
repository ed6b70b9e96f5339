//! The prompt of a run of Gemini CLI 0.61.0.
//!
//! The prompt is standard input, in which the CLI runs a leading `/command` and replaces `@path` by the file. It does neither in the
//! text of a custom command. Therefore a literal prompt that contains one of them becomes the text of a custom command.

use crate::launch::ShadowEntry;
use teamster_types::request::{PromptMode, RequestError, RunRequest};

use super::super::error::unsupported;
use super::super::policy::quoted;

/// The maximum bytes of a prompt. The CLI silently truncates a longer one (`prompt_9mb_stdin_truncated`).
const LONGEST: usize = 8 << 20;

/// The path of the custom command in the CLI's folder.
const COMMAND_FILE: &str = "commands/teamster-literal-prompt.toml";
const COMMAND: &str = "/teamster-literal-prompt";

/// Texts that the CLI replaces in a custom command: by files, output of shell commands and arguments.
const REPLACED: &[&str] = &["@{", "!{", "{{args}}"];

/// The standard input of a run, and the custom command that it needs.
pub(super) struct Prompt {
    pub(super) stdin: String,
    pub(super) command: Option<(&'static str, ShadowEntry)>,
}

/// Returns the prompt of a request.
pub(super) fn of(request: &RunRequest) -> Result<Prompt, RequestError> {
    let text = &request.prompt;
    if text.len() > LONGEST {
        return Err(unsupported("a prompt of more than 8 MiB", "the CLI would cut it off"));
    }
    if request.prompt_mode == PromptMode::Agent || !is_interpreted(text) {
        return Ok(Prompt { stdin: text.clone(), command: None });
    }
    if let Some(replaced) = REPLACED.iter().find(|pattern| text.contains(**pattern)) {
        let why = format!("the CLI cannot keep {replaced} unchanged in a prompt with a leading / or an @");
        return Err(unsupported("this prompt literally", why));
    }
    let document = format!("prompt = {}\n", quoted(text));
    Ok(Prompt { stdin: COMMAND.to_owned(), command: Some((COMMAND_FILE, ShadowEntry::Text(document))) })
}

/// Returns whether the CLI would interpret the text. It trims the prompt before it checks for a command.
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
    fn a_literal_prompt_that_the_cli_would_interpret_becomes_a_custom_command() {
        let prompt = literal("/quit\n\"@a\\\u{7f}").unwrap();
        assert_eq!(prompt.stdin, COMMAND);
        let expected = ShadowEntry::Text("prompt = \"/quit\\n\\\"@a\\\\\\u007f\"\n".to_owned());
        assert!(prompt.command.is_some_and(|(_, entry)| entry == expected));
        assert!(literal("say !{this} to {{args}}").unwrap().command.is_none());
    }

    #[test]
    fn a_prompt_that_the_cli_would_change_is_rejected() {
        assert!(literal("/x !{ls}").is_err());
        assert!(of(&RunRequest::new("x".repeat(LONGEST + 1))).is_err());
    }
}
