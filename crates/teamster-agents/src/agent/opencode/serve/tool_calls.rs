//! Tool calls that have not finished.

use crate::bounded::EmittedText;
use teamster_types::event::{ToolId, ToolKind};
use teamster_types::json::RawJson;
use teamster_types::text::UntrustedText;

/// A tool call, as far as the server has reported it.
#[derive(Debug)]
pub(super) struct ToolCall {
    /// The provider's id of the call. It is not unique in a session.
    pub(super) provider_id: Option<String>,
    pub(super) name: String,
    pub(super) server: Option<UntrustedText>,
    pub(super) kind: ToolKind,
    /// The id in our events.
    pub(super) id: ToolId,
    /// The arguments, once they are complete.
    pub(super) input: Option<RawJson>,
    /// The part of its output that was emitted while it runs.
    pub(super) output: EmittedText,
}
