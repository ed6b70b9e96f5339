//! The prompt of a run: the typed words, standard input, or both.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::error::{UsageError, as_text};
use super::inputs::Inputs;
use crate::args::StdinMode;

/// The source of a run's prompt.
#[derive(Debug)]
pub(super) enum PromptSource {
    /// Typed words.
    Typed(String),
    /// `-`: standard input.
    Dash,
    /// None: standard input, unless it is a terminal.
    Absent,
}

impl PromptSource {
    /// Returns the source for an argument, or for the words after `--`.
    pub(super) fn new(typed: Option<String>, words: &[String]) -> Self {
        match typed {
            _ if !words.is_empty() => Self::Typed(words.join(" ")),
            Some(text) if text == "-" => Self::Dash,
            Some(text) => Self::Typed(text),
            None => Self::Absent,
        }
    }
}

/// Returns the error of an empty prompt, if `--resume` took a word that may be the prompt.
pub(super) fn word_of_resume(source: &PromptSource, resume: Option<&str>) -> Option<UsageError> {
    match (source, resume) {
        (PromptSource::Absent, Some(word)) if !word.is_empty() => {
            Some(UsageError::WordOfResume { word: word.to_owned() })
        }
        _ => None,
    }
}

/// Checks that there is a prompt, without reading it.
pub(super) fn check(source: &PromptSource, mode: StdinMode, inputs: &impl Inputs) -> Result<(), UsageError> {
    let is_ignored = mode == StdinMode::Ignore;
    match source {
        PromptSource::Dash if is_ignored => Err(UsageError::DashWithoutStdin),
        PromptSource::Absent if is_ignored || inputs.stdin_is_terminal() => Err(UsageError::NoPrompt),
        _ => Ok(()),
    }
}

/// Returns the prompt. Piped standard input is appended to typed words.
pub(super) fn read(source: PromptSource, mode: StdinMode, inputs: &mut impl Inputs) -> Result<String, UsageError> {
    let max_silence = (mode == StdinMode::Auto).then_some(super::stdin::MAX_SILENCE);
    let is_ignored = mode == StdinMode::Ignore;
    check(&source, mode, inputs)?;
    match source {
        PromptSource::Dash | PromptSource::Absent => {
            let mut text = as_text("the prompt on standard input", inputs.stdin(max_silence)?)?;
            // `echo` and editors add a line end, which is not part of the prompt.
            if text.ends_with('\n') {
                text.pop();
            }
            Ok(text)
        }
        PromptSource::Typed(typed) if is_ignored || inputs.stdin_is_terminal() => Ok(typed),
        PromptSource::Typed(typed) => {
            let piped = as_text("standard input", inputs.stdin(max_silence)?)?;
            Ok(with_stdin(typed, &piped))
        }
    }
}

/// Appends piped text to a prompt, between a start and an end tag. The tag's name contains a hash that the text does not
/// contain, so the text cannot close the tag. The same input always gives the same prompt.
fn with_stdin(prompt: String, piped: &str) -> String {
    if piped.trim().is_empty() {
        return prompt;
    }
    let hash = |attempt: u64| {
        let mut hasher = DefaultHasher::new();
        (attempt, piped).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    let mut attempts = (0..u64::MAX).map(hash);
    let hash = attempts.find(|hash| !piped.contains(hash.as_str())).unwrap_or_default();
    let line_end = if piped.ends_with('\n') { "" } else { "\n" };
    format!("{prompt}\n\n<stdin-{hash}>\n{piped}{line_end}</stdin-{hash}>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn piped_text_cannot_close_its_tag() {
        let mut text = "</stdin>\n".to_owned();
        for _ in 0..3 {
            let prompt = with_stdin("Review".to_owned(), &text);
            let (opening, rest) = prompt.strip_prefix("Review\n\n<").unwrap().split_once(">\n").unwrap();
            let closing = format!("</{opening}>");
            assert_eq!(rest.strip_suffix(&closing), Some(&*text));
            assert_eq!(prompt.matches(&closing).count(), 1);
            // The next text contains the tags of this one.
            text = format!("{prompt}\n");
        }
    }

    #[test]
    fn blank_input_adds_nothing() {
        for blank in ["", "\n", " \n\t"] {
            assert_eq!(with_stdin("Review".to_owned(), blank), "Review");
        }
    }
}
