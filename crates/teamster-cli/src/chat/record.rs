//! What happened in the conversation: for `/copy`, `/tools` and `/export`.

use std::collections::HashMap;
use std::path::Path;

use teamster::event::{
    AnswerView, Event, PermissionAnswered, PermissionDecision, RequestId, ToolId, ToolResult, ToolUse,
};

use crate::printable::Printable;
use crate::render::pretty::{call, whole_call};

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
    /// The permission requests, with the calls that they are about.
    requests: HashMap<RequestId, Option<ToolId>>,
    /// The messages so far. Empty at the end of the turn.
    messages: AnswerView,
    answer: String,
    /// The reason of a failure.
    failure: Option<String>,
}

#[derive(Debug)]
struct Call {
    id: ToolId,
    /// The tool with its arguments, on one line.
    summary: String,
    is_error: bool,
    is_denied: bool,
    /// The whole call and its result. Only the last turn has them.
    details: Option<Details>,
}

#[derive(Debug)]
struct Details {
    tool: ToolUse,
    result: Option<ToolResult>,
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
        turn.messages.apply(event);
        match event {
            Event::ToolUse(tool) => turn.calls.push(Call::of(tool, directory)),
            Event::ToolResult(result) => turn.result(result),
            Event::PermissionRequest(request) => {
                turn.requests.insert(request.request_id.clone(), request.tool_id.clone());
            }
            Event::PermissionAnswered(answered) => turn.answered(answered),
            Event::Error(failure) => turn.failure = Some(failure.message.as_str().to_owned()),
            Event::Done(done) => {
                let messages = std::mem::take(&mut turn.messages);
                turn.answer = paragraphs(&messages);
                let texts = [&done.result.text, &done.result.final_text];
                if let Some(text) = texts.into_iter().find(|text| !text.is_empty()).filter(|_| turn.answer.is_empty()) {
                    text.as_str().clone_into(&mut turn.answer);
                }
            }
            _ => {}
        }
    }

    /// Returns the last answer.
    pub(super) fn last_answer(&self) -> Option<&str> {
        self.turns.iter().rev().map(|turn| turn.answer.as_str()).find(|answer| !answer.is_empty())
    }

    /// Formats the calls of the last turn, each with its whole change or output.
    pub(super) fn calls_of_last_turn(&self, directory: &Path, width: usize) -> Option<Printable> {
        let calls = &self.turns.last()?.calls;
        if calls.is_empty() {
            return None;
        }
        let details = |call: &Call| {
            let Details { tool, result } = call.details.as_ref()?;
            Some(whole_call::lines(tool, result.as_ref(), call.is_denied, directory, width))
        };
        Some(Printable::join(calls.iter().filter_map(details).flatten(), "\n"))
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
        let details = Details { tool: tool.clone(), result: None };
        let summary = format!("{label} {arguments}");
        Self { id: tool.tool_id.clone(), summary, is_error: false, is_denied: false, details: Some(details) }
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
            let outcome = match call.is_error {
                _ if call.is_denied => " (denied)",
                true => " (failed)",
                false => "",
            };
            format!("- {}{outcome}", code(&call.summary))
        }));
        if !self.answer.trim().is_empty() {
            lines.extend([String::new(), self.answer.trim_end().to_owned()]);
        }
        if let Some(failure) = &self.failure {
            lines.extend([String::new(), format!("Failed: {}", code(failure))]);
        }
    }

    /// Notes whether a call was denied.
    fn answered(&mut self, answered: &PermissionAnswered) {
        let of_answer = answered.request.as_ref().and_then(|request| request.tool_id.clone());
        let tool = self.requests.remove(&answered.request_id).flatten().or(of_answer);
        let call = tool.and_then(|tool| self.calls.iter_mut().rev().find(|call| call.id == tool));
        if let Some(call) = call {
            call.is_denied = !matches!(answered.decision, PermissionDecision::Allow | PermissionDecision::AllowAlways);
        }
    }

    fn result(&mut self, result: &ToolResult) {
        if let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == result.tool_id) {
            call.is_error = result.is_error == Some(true);
            call.is_denied &= result.is_error != Some(false);
            if let Some(details) = &mut call.details {
                details.result = Some(result.clone());
            }
        }
    }
}

/// Returns the messages of an answer with a blank line between them.
fn paragraphs(messages: &AnswerView) -> String {
    let texts = messages.messages().map(|(_, text)| text.trim_matches('\n')).filter(|text| !text.trim().is_empty());
    texts.collect::<Vec<_>>().join("\n\n")
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
    use teamster::event::{AnsweredBy, Delta, Done, PermissionRequest, ToolKind};

    use super::*;

    fn record() -> Record {
        let mut record = Record::default();
        let directory = Path::new("/home/dev");
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
        insta::assert_snapshot!(record().markdown("claude", Some("id"), Path::new("/home/dev"), true), @r"
        # Conversation with claude

        - Session: `id`
        - Directory: `/home/dev`
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

    /// Adds a call that edits a file, which the user denied.
    fn deny_edit(record: &mut Record) {
        let directory = Path::new("/home/dev");
        let input = json!({"file_path": "/home/dev/a.txt", "old_string": "one\n", "new_string": "two\n"});
        let tool = ToolUse::new("e", "Edit", input.clone().into(), ToolKind::Edit);
        record.event(&Event::ToolUse(Box::new(tool)), directory);
        let mut request = PermissionRequest::new("r".into(), "Edit", input.into());
        request.tool_id = Some("e".into());
        record.event(&Event::PermissionRequest(Box::new(request)), directory);
        let answered = PermissionAnswered::new("r".into(), PermissionDecision::Deny, AnsweredBy::Caller);
        record.event(&Event::PermissionAnswered(Box::new(answered)), directory);
        let result = ToolResult::new("e", "The user doesn't want to proceed", Some(true));
        record.event(&Event::ToolResult(Box::new(result)), directory);
    }

    #[test]
    fn calls_of_the_last_turn_are_shown_as_a_run_shows_them() {
        let mut record = record();
        assert_eq!(record.last_answer(), Some("answer *2*"));
        deny_edit(&mut record);
        let directory = Path::new("/home/dev");
        let input = json!({"file_path": "/home/dev/b.txt", "old_string": "one\n", "new_string": "two\n"});
        let tool = ToolUse::new("f", "Edit", input.into(), ToolKind::Edit);
        record.event(&Event::ToolUse(Box::new(tool)), directory);
        record.event(&Event::ToolResult(Box::new(ToolResult::new("f", "done", Some(false)))), directory);
        let tool = ToolUse::new("m", "add", json!({"a": 1, "b": 2}).into(), ToolKind::Mcp);
        record.event(&Event::ToolUse(Box::new(tool.with_server(Some("calc".into())))), directory);
        let shown = record.calls_of_last_turn(directory, 80).unwrap();
        insta::assert_snapshot!(shown.without_styles().as_str(), @r"
        ● Run echo `x`  ✗ out⟦ESC⟧[1m
          put
        ● Edit a.txt  ✗ denied
        ● Edit b.txt  ✓
            - one
            + two
        ● calc: add a=1 b=2  no result
        ");
    }

    #[test]
    fn a_blank_line_separates_the_messages_of_an_answer() {
        let mut record = Record::default();
        record.begin(Some("hello".to_owned()));
        for (message, text) in [("m1", "First I "), ("m1", "look.\n"), ("m2", "\n\n"), ("m3", "Done.")] {
            record.event(&Event::Text(Delta::new(message, text)), Path::new("/home/dev"));
        }
        record.event(&Event::Done(Box::new(Done::new(RunResult::default()))), Path::new("/home/dev"));
        assert_eq!(record.last_answer(), Some("First I look.\n\nDone."));
    }

    #[test]
    fn an_exported_call_that_was_denied_is_not_a_failed_one() {
        let mut record = record();
        deny_edit(&mut record);
        let text = record.markdown("claude", None, Path::new("/home/dev"), false);
        assert!(text.contains("(failed)\n- `Edit a.txt` (denied)\n"), "{text}");
    }
}
