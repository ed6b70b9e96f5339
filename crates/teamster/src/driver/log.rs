//! The log of a run: what happens and what the driver waits for. It never contains the texts of the conversation.

use std::time::Duration;

use teamster_types::event::Event;
use tracing::{Span, debug, info, trace, warn};

/// Logs an event: names and codes only, no texts and no arguments.
pub(super) fn event(event: &Event) {
    match event {
        Event::Init(init) => {
            Span::current().record("session_id", tracing::field::display(init.session_id.escaped()));
            debug!(session_id = %init.session_id.escaped(), "the agent has named its session");
        }
        Event::ToolUse(call) => {
            debug!(tool = %call.tool_name.escaped(), tool_id = %call.tool_id.escaped(), "a tool is called");
        }
        Event::ToolResult(result) => {
            debug!(tool_id = %result.tool_id.escaped(), is_error = result.is_error, "a tool has returned");
        }
        Event::PermissionRequest(request) => {
            let (id, tool) = (request.request_id.escaped(), request.tool_name.escaped());
            info!(request_id = %id, tool = %tool, "the agent asks for permission");
        }
        Event::PermissionAnswered(answered) => {
            let (id, decision) = (answered.request_id.escaped(), answered.decision.as_str().escape_debug());
            info!(request_id = %id, %decision, by = answered.by.as_str(), "a permission request is answered");
        }
        Event::Question(question) => info!(request_id = %question.request_id.escaped(), "the agent asks a question"),
        Event::RateLimit(limit) => debug!(status = ?limit.status, "the vendor limits the agent"),
        Event::Warning(warning) => debug!(code = warning.code.as_str(), "a warning"),
        Event::Error(failure) => warn!(code = failure.code.as_str(), "the run has failed"),
        Event::Done(done) => {
            let result = &done.result;
            info!(is_error = result.is_error, duration_ms = result.duration_ms, "the run has ended");
        }
        _ => {}
    }
}

/// Logs a step of the start or the end of a run. `cargo xtask bench start` takes the times of these lines.
pub(super) fn step(step: &'static str) {
    trace!(target: "teamster::steps", step);
}

/// The target of the lines about waits and their limits.
const LIMITS: &str = "teamster::limits";

/// What the driver waits for, and the limit on the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Waits for output of the agent.
    Agent { limit: &'static str, after: Duration },
    /// Waits for an answer to a request of the agent.
    Answer,
    /// Waits for the consumer, which has not read the events.
    Consumer,
}

impl Wait {
    pub(super) fn log(self, tool: Option<&str>) {
        match self {
            Self::Agent { limit, after } => {
                debug!(target: LIMITS, limit, after_s = after.as_secs_f64(), tool, "waits for the agent's output");
            }
            Self::Answer => {
                debug!(target: LIMITS, "waits for an answer to the agent's request; its silence does not count");
            }
            Self::Consumer => {
                debug!(target: LIMITS, "waits for the consumer of the events; the agent's silence does not count");
            }
        }
    }
}
