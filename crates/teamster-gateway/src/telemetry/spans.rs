//! The spans of a message, a turn, an attempt and a tool call.
//!
//! | span | starts | ends | attributes |
//! |---|---|---|---|
//! | `message` | a message arrives | it is durable, or refused | channel, conversation, turn |
//! | `turn` | a worker claims a turn | the worker's work on it ends | conversation, turn, channel, agent, state, `error_code` |
//! | `attempt` | an attempt starts | its end is recorded | attempt, agent, `error_code` |
//! | `tool_call` | the agent calls a tool | it has the result | tool |
//!
//! Each is a child of the one before, even after a restart: the store keeps the trace of a message. A turn that is retried
//! has several spans `turn`, one for each claim.

use std::collections::HashMap;

use teamster::event::{Event, ToolId};
use teamster_store::{Claim, EndState};
use tracing::Span;
use tracing::field::Empty;

/// The largest number of open tool calls of an attempt that have a span.
const MAX_OPEN_CALLS: usize = 256;

/// The longest name of a tool in a span.
const MAX_TOOL_NAME: usize = 64;

/// Returns the span of a claimed turn. `trace` is the trace of its message.
pub(crate) fn turn(claim: &Claim, trace: Option<&str>) -> Span {
    let span = tracing::info_span!(
        "turn",
        conversation = %claim.conversation.id,
        turn = %claim.turn.id,
        channel = claim.conversation.address.channel,
        agent = claim.conversation.agent,
        state = Empty,
        error_code = Empty,
        otel.status_code = Empty,
    );
    continue_trace(&span, trace);
    span
}

/// Records the end of a turn in its span.
pub(crate) fn turn_ended(span: &Span, state: EndState, error_code: Option<&str>) {
    let name = match state {
        EndState::Done => "done",
        EndState::Failed => "failed",
        EndState::Aborted => "aborted",
    };
    span.record("state", name);
    record_error(span, error_code);
}

/// Returns the span of an attempt.
pub(crate) fn attempt(agent: &str, number: u32) -> Span {
    tracing::info_span!("attempt", attempt = number, agent, error_code = Empty, otel.status_code = Empty)
}

/// Records the failure of an attempt in the current span.
pub(crate) fn attempt_ended(error_code: Option<&str>) {
    record_error(&Span::current(), error_code);
}

fn record_error(span: &Span, error_code: Option<&str>) {
    if let Some(code) = error_code {
        span.record("error_code", super::labels::error_code(Some(code)));
        span.record("otel.status_code", "ERROR");
    }
}

/// The spans of the tool calls of an attempt. Dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct ToolSpans {
    open: HashMap<ToolId, Span>,
}

impl ToolSpans {
    /// Starts or ends the span of a tool call. The span of a call of a subagent is in that of the call that has started it.
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::ToolUse(tool) if self.open.len() < MAX_OPEN_CALLS => {
                let parent = tool.parent_tool_id.as_ref().and_then(|parent| self.open.get(parent));
                let parent = parent.cloned().unwrap_or_else(Span::current);
                let name = tool_name(tool.tool_name.as_str());
                let span = tracing::info_span!(parent: &parent, "tool_call", tool = name, otel.status_code = Empty);
                self.open.insert(tool.tool_id.clone(), span);
            }
            Event::ToolResult(result) => {
                if let Some(span) = self.open.remove(&result.tool_id)
                    && result.is_error == Some(true)
                {
                    span.record("otel.status_code", "ERROR");
                }
            }
            _ => {}
        }
    }
}

/// The model writes the name of a tool. A text that is not a valid name could be a part of the conversation.
fn tool_name(name: &str) -> &str {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.:/".contains(letter);
    if name.len() <= MAX_TOOL_NAME && name.chars().all(is_name) { name } else { super::labels::OTHER }
}

/// Returns the trace of the current span, for the store.
pub(crate) fn current_trace() -> Option<String> {
    #[cfg(feature = "otel")]
    return super::otel::trace_of(&Span::current());
    #[cfg(not(feature = "otel"))]
    None
}

#[cfg(feature = "otel")]
fn continue_trace(span: &Span, trace: Option<&str>) {
    if let Some(trace) = trace {
        super::otel::continue_trace(span, trace);
    }
}

#[cfg(not(feature = "otel"))]
const fn continue_trace(_: &Span, _: Option<&str>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_that_is_a_text_is_not_exported() {
        assert_eq!(tool_name("mcp__github.create-issue"), "mcp__github.create-issue");
        for text in ["the password is 7", "a\nb", &"x".repeat(65)] {
            assert_eq!(tool_name(text), "other");
        }
    }
}
