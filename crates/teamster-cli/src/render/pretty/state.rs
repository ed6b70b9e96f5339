//! The state of the format `pretty`: the open line, the source of the text, and the open calls.

use std::time::{Duration, Instant};

use teamster::event::{MessageId, ToolId};
use teamster::text::UntrustedText;

use super::running::RunningOutput;
use super::thinking::Thought;
use crate::printable::Printable;

/// The last line, if it can be continued.
#[derive(Debug, PartialEq)]
pub(super) enum OpenLine {
    None,
    Text,
    Thought(Thought),
    Call { tool: ToolId, columns: usize },
}

/// The source of a delta. Deltas of the same source continue the same line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ContentSource {
    pub(super) kind: ContentKind,
    pub(super) message: MessageId,
    pub(super) parent: Option<ToolId>,
}

/// The kind of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentKind {
    Text,
    Thinking,
}

/// A permission request without an answer.
#[derive(Debug)]
pub(super) struct OpenRequest {
    pub(super) tool_name: UntrustedText,
    pub(super) tool: Option<ToolId>,
}

/// A call without a result.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) label: Printable,
    pub(super) summary: Printable,
    pub(super) since: Instant,
    /// For how long the turn had waited for a person before the call.
    pub(super) waited_before: Duration,
    pub(super) depth: usize,
    pub(super) parent: Option<ToolId>,
    /// Whether permission was denied.
    pub(super) is_denied: bool,
    /// Whether only a failure is shown.
    pub(super) is_hidden: bool,
    /// The changes that it makes, for a call that edits files. Empty if a permission prompt has shown them.
    pub(super) changes: Option<Vec<Printable>>,
    /// Its output while it runs.
    pub(super) running: RunningOutput,
}
