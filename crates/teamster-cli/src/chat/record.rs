//! What happened in the conversation: for `/copy`, `/tools` and `/export`.

use std::path::Path;

use teamster::event::{Event, ToolId, ToolResult, ToolUse};

use crate::printable::{Printable, folded, printable};
use crate::render::pretty::call;

/// The turns of a conversation, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Record {
    turns: Vec<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    /// The prompts: the first one, and those that were sent into the turn. A turn that the agent started has none.
    prompts: Vec<String>,
    calls: Vec<Call>,
    answer: String,
    /// The reason of a failure.
    failure: Option<String>,
}

#[derive(Debug)]
struct Call {
    id: ToolId,
    /// The tool with its arguments, on one line.
    summary: String,
    tool: Printable,
    is_error: bool,
    /// The whole input and output. Only the last turn has them.
    details: Option<Details>,
}

#[derive(Debug)]
struct Details {
    input: String,
    output: Option<String>,
}

impl Record {
    /// Adds a turn with this prompt.
    pub(super) fn begin(&mut self, prompt: Option<String>) {
        // Outputs can be large.
        for call in self.turns.iter_mut().flat_map(|turn| &mut turn.calls) {
            call.details = None;
        }
        self.turns.push(Turn { prompts: prompt.into_iter().collect(), ..Turn::default() });
    }

    /// Adds a prompt that was sent into the turn.
    pub(super) fn steer(&mut self, prompt: String) {
        if let Some(turn) = self.turns.last_mut() {
            turn.prompts.push(prompt);
        }
    }

    /// Notes an event of the turn.
    pub(super) fn event(&mut self, event: &Event, directory: &Path) {
        let Some(turn) = self.turns.last_mut() else { return };
        match event {
            Event::ToolUse(tool) => turn.calls.push(Call::of(tool, directory)),
            Event::ToolResult(result) => turn.result(result),
            Event::Error(failure) => turn.failure = Some(failure.message.as_str().to_owned()),
            Event::Done(done) => {
                done.result.text.as_str().clone_into(&mut turn.answer);
                if turn.answer.is_empty() {
                    done.result.final_text.as_str().clone_into(&mut turn.answer);
                }
            }
            _ => {}
        }
    }

    /// Returns the last answer.
    pub(super) fn last_answer(&self) -> Option<&str> {
        self.turns.iter().rev().map(|turn| turn.answer.as_str()).find(|answer| !answer.is_empty())
    }

    /// Formats the calls of the last turn with their whole input and output.
    pub(super) fn calls_of_last_turn(&self, width: usize) -> Option<Printable> {
        let calls = &self.turns.last()?.calls;
        if calls.is_empty() {
            return None;
        }
        let lines = (1_usize..).zip(calls).flat_map(|(number, call)| {
            let state = match (&call.details, call.is_error) {
                (_, true) => " (failed)",
                (Some(Details { output: None, .. }), _) => " (no result)",
                _ => "",
            };
            let mut lines = vec![printable!("{}. {}{}", number, &call.tool, state)];
            if let Some(details) = &call.details {
                lines.extend(folded("    input: ".into(), &details.input, width));
                let output = details.output.as_deref().filter(|output| !output.is_empty());
                lines.extend(output.map(|output| folded("    output: ".into(), output, width)).unwrap_or_default());
            }
            lines
        });
        Some(Printable::join(lines, "\n"))
    }

    /// Formats the conversation as Markdown.
    pub(super) fn markdown(&self, agent: &str, session: Option<&str>, directory: &Path, is_resumed: bool) -> String {
        let mut lines = vec![format!("# Conversation with {agent}"), String::new()];
        lines.extend(session.map(|session| format!("- Session: `{session}`")));
        lines.push(format!("- Directory: `{}`", directory.to_string_lossy()));
        if is_resumed {
            lines.push("- Earlier turns of the resumed conversation are not included.".to_owned());
        }
        for turn in &self.turns {
            turn.markdown(agent, &mut lines);
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// Whether there is no turn.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

impl Call {
    fn of(tool: &ToolUse, directory: &Path) -> Self {
        let (label, arguments) = (call::label(tool), call::summary(tool, Some(directory)));
        let details = Details { input: tool.input.as_str().to_owned(), output: None };
        let summary = format!("{label} {arguments}");
        Self { id: tool.tool_id.clone(), summary, tool: label, is_error: false, details: Some(details) }
    }
}

impl Turn {
    /// Adds the lines of the turn.
    fn markdown(&self, agent: &str, lines: &mut Vec<String>) {
        for prompt in &self.prompts {
            lines.extend([String::new(), "## You".to_owned(), String::new()]);
            lines.extend(prompt.trim_end().lines().map(|line| format!("> {line}")));
        }
        lines.extend([String::new(), format!("## {agent}")]);
        if !self.calls.is_empty() {
            lines.push(String::new());
        }
        lines.extend(self.calls.iter().map(|call| {
            let failed = if call.is_error { " (failed)" } else { "" };
            format!("- {}{failed}", code(&call.summary))
        }));
        if !self.answer.trim().is_empty() {
            lines.extend([String::new(), self.answer.trim_end().to_owned()]);
        }
        if let Some(failure) = &self.failure {
            lines.extend([String::new(), format!("Failed: {}", code(failure))]);
        }
    }

    fn result(&mut self, result: &ToolResult) {
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == result.tool_id) {
            call.is_error = result.is_error == Some(true);
            if let Some(details) = &mut call.details {
                details.output = Some(result.output.as_str().to_owned());
            }
        }
    }
}

/// Returns a text as Markdown code on one line.
fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let marks = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::RunResult;
    use teamster::event::{Done, ToolKind};

    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        let directory = Path::new("/work");
        for number in 1..=2 {
            record.begin(Some(format!("prompt {number}\nsecond line")));
            let tool = ToolUse::new("t", "Bash", json!({"command": "echo `x`"}).into(), ToolKind::Execute);
            record.event(&Event::ToolUse(Box::new(tool)), directory);
            let result = ToolResult::new("t", "out\u{1b}[1m\nput", Some(number == 2));
            record.event(&Event::ToolResult(Box::new(result)), directory);
            let mut result = RunResult::default();
            result.text = format!("answer *{number}*").into();
            record.event(&Event::Done(Box::new(Done::new(result))), directory);
        }
        record.steer("and this".to_owned());
        record
    }

    #[test]
    fn the_conversation_is_written_as_markdown() {
        insta::assert_snapshot!(record().markdown("claude", Some("id"), Path::new("/work"), true), @r"
        # Conversation with claude

        - Session: `id`
        - Directory: `/work`
        - Earlier turns of the resumed conversation are not included.

        ## You

        > prompt 1
        > second line

        ## claude

        - `` Run echo `x` ``

        answer *1*

        ## You

        > prompt 2
        > second line

        ## You

        > and this

        ## claude

        - `` Run echo `x` `` (failed)

        answer *2*
        ");
    }

    #[test]
    fn calls_of_the_last_turn_are_shown_whole_and_escaped() {
        let record = record();
        assert_eq!(record.last_answer(), Some("answer *2*"));
        insta::assert_snapshot!(record.calls_of_last_turn(80).unwrap().as_str(), @r#"
        1. Run (failed)
            input: {"command":"echo `x`"}
            output: out⟦ESC⟧[1m⟦LF⟧
              │ put
        "#);
    }
}
