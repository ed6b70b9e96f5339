//! What happened in the conversation: for `/copy`, `/tools` and `/export`.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::Path;

use teamster::event::{
    AnswerView, Event, MessageId, PermissionAnswered, PermissionDecision, RequestId, ToolId, ToolResult, ToolUse,
};

use crate::printable::Printable;
use crate::render::pretty::{call, whole_call};

/// The start of a call in an export.
const ITEM: &str = "- ";

/// The largest change or output of a call in an export.
const MAX_BLOCK_BYTES: usize = 32 << 10;

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
    /// The texts, calls and further prompts in their order.
    entries: Vec<Entry>,
    /// The permission requests, with the calls that they are about.
    requests: HashMap<RequestId, Option<ToolId>>,
    /// The messages so far. Empty at the end of the turn.
    messages: AnswerView,
    answer: String,
    /// The reason of a failure.
    failure: Option<String>,
}

/// A part of a turn.
#[derive(Debug)]
enum Entry {
    /// A prompt that was sent into the turn.
    Prompt(String),
    /// A text of a message, up to the next call.
    Text { message: Option<MessageId>, text: String },
    /// The call at this index.
    Call(usize),
}

#[derive(Debug)]
struct Call {
    id: ToolId,
    /// The tool with its arguments, on one line.
    summary: String,
    /// Why it failed.
    failure: Option<String>,
    is_denied: bool,
    /// The whole call and its result. Only the last turn has them.
    details: Option<Details>,
    /// What an export shows of a call of an earlier turn.
    exported: Option<String>,
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
            if let Some(details) = call.details.take() {
                call.exported = details.block(call.is_denied);
            }
        }
        self.turns.push(Turn { prompts: prompt.into_iter().collect(), ..Turn::default() });
    }

    /// Adds a prompt that was sent into the turn.
    pub(super) fn steer(&mut self, prompt: String) {
        if let Some(turn) = self.turns.last_mut() {
            turn.entries.push(Entry::Prompt(prompt));
        }
    }

    /// Notes an event of the turn.
    pub(super) fn event(&mut self, event: &Event, directory: &Path) {
        let Some(turn) = self.turns.last_mut() else { return };
        turn.messages.apply(event);
        match event {
            Event::Text(delta) if delta.parent_tool_id.is_none() => turn.text(&delta.message_id, delta.text.as_str()),
            Event::Retract(retract) => turn.entries.retain(|entry| !entry.is_of(&retract.message_id)),
            Event::ToolUse(tool) => {
                turn.entries.push(Entry::Call(turn.calls.len()));
                turn.calls.push(Call::of(tool, directory));
            }
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
                    turn.entries.push(Entry::Text { message: None, text: turn.answer.clone() });
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
        Self {
            id: tool.tool_id.clone(),
            summary,
            failure: None,
            is_denied: false,
            details: Some(details),
            exported: None,
        }
    }
}

impl Entry {
    /// Whether it is a text of this message.
    fn is_of(&self, id: &MessageId) -> bool {
        matches!(self, Self::Text { message: Some(message), .. } if message == id)
    }
}

impl Call {
    /// Adds the lines of the call: a list item, and its change or output in a block.
    fn markdown(&self, lines: &mut Vec<String>) {
        let outcome = match &self.failure {
            _ if self.is_denied => " (denied)".to_owned(),
            Some(failure) => format!(" (failed: {})", code(failure)),
            None => String::new(),
        };
        // Calls that follow each other are one list.
        if lines.last().is_none_or(|last| !last.starts_with(ITEM)) {
            lines.push(String::new());
        }
        lines.push(format!("{ITEM}{}{outcome}", code(&self.summary)));
        let block = self.details.as_ref().and_then(|details| details.block(self.is_denied));
        lines.extend(block.or_else(|| self.exported.clone()));
    }
}

impl Details {
    /// Returns the change or the output as a block of code in a list item, with a limit on its size.
    fn block(&self, is_denied: bool) -> Option<String> {
        let whole_call::Content { language, lines } = whole_call::content(&self.tool, self.result.as_ref(), is_denied)?;
        let mut bytes = 0;
        let fits = |line: &&String| {
            bytes += line.len() + 1;
            bytes <= MAX_BLOCK_BYTES
        };
        let shown: Vec<&String> = lines.iter().take_while(fits).collect();
        let marks = "`".repeat(shown.iter().map(|line| longest_marks(line)).max().unwrap_or(0).max(2) + 1);
        let mut block = format!("\n  {marks}{language}\n");
        for line in &shown {
            block.push_str(if line.is_empty() { "" } else { "  " });
            block.push_str(line);
            block.push('\n');
        }
        block.push_str("  ");
        block.push_str(&marks);
        let hidden = lines.len() - shown.len();
        if hidden > 0 {
            let noun = if hidden == 1 { "line" } else { "lines" };
            block.extend(["\n\n  … ", &hidden.to_string(), " more ", noun]);
        }
        Some(block)
    }
}

impl Turn {
    /// Adds the lines of the turn.
    fn markdown(&self, agent: &str, lines: &mut Vec<String>) {
        self.prompts.iter().for_each(|prompt| prompt_lines(prompt, lines));
        let mut needs_heading = true;
        for entry in &self.entries {
            if let Entry::Prompt(prompt) = entry {
                prompt_lines(prompt, lines);
                needs_heading = true;
                continue;
            }
            if std::mem::take(&mut needs_heading) {
                lines.extend([String::new(), format!("## {agent}")]);
            }
            match entry {
                Entry::Text { text, .. } if !text.trim().is_empty() => {
                    lines.extend([String::new(), text.trim_matches('\n').trim_end().to_owned()]);
                }
                Entry::Call(index) => self.calls.get(*index).iter().for_each(|call| call.markdown(lines)),
                _ => {}
            }
        }
        if let Some(failure) = &self.failure {
            lines.extend([String::new(), format!("Failed: {}", code(failure))]);
        }
    }

    /// Adds a text of a message.
    fn text(&mut self, id: &MessageId, part: &str) {
        if let Some(Entry::Text { message: Some(message), text }) = self.entries.last_mut()
            && message == id
        {
            return text.push_str(part);
        }
        self.entries.push(Entry::Text { message: Some(id.clone()), text: part.to_owned() });
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
            call.failure = whole_call::failure(result);
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

/// Adds the lines of a prompt.
fn prompt_lines(prompt: &str, lines: &mut Vec<String>) {
    lines.extend([String::new(), "## You".to_owned(), String::new()]);
    lines.extend(prompt.trim_end().lines().map(|line| format!("> {line}")));
}

/// Returns the length of the longest sequence of backticks.
fn longest_marks(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or(0)
}

/// Returns a text as Markdown code on one line.
fn code(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = "`".repeat(longest_marks(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{marks}{space}{text}{space}{marks}")
}
