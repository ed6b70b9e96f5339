//! Creates events. The structs can get further fields, so other crates create them here: with their required fields first, and
//! with optional fields by `with_...`.

use super::{
    Delta, Done, ErrorCode, Failure, LeftProcess, McpServerState, MessageId, PermissionDenial, PermissionOption,
    PermissionOptionKind, Plan, PlanEntry, PlanStatus, Question, QuestionItem, QuestionOption, Queued, RateLimit,
    RateLimitStatus, RequestId, Retract, RunResult, ToolId, Usage, UsageScope, UsageSoFar,
};
use crate::json::RawJson;
use crate::text::UntrustedText;

impl Queued {
    /// Creates the event. Position 1 is the next to start.
    pub fn new(position: u64) -> Self {
        Self { position }
    }
}

impl McpServerState {
    /// Creates the state of a server.
    pub fn new(name: impl Into<UntrustedText>, status: impl Into<UntrustedText>) -> Self {
        Self { name: name.into(), status: status.into() }
    }
}

impl Delta {
    /// Creates a delta of a message on the main thread. The text must not be empty.
    pub fn new(message_id: impl Into<MessageId>, text: impl Into<UntrustedText>) -> Self {
        Self { text: text.into(), message_id: message_id.into(), parent_tool_id: None }
    }

    /// Sets the tool call that started the subagent; `None` on the main thread.
    #[must_use]
    pub fn with_parent(self, parent_tool_id: Option<ToolId>) -> Self {
        Self { parent_tool_id, ..self }
    }
}

impl Retract {
    /// Creates the retraction of a message.
    pub fn new(message_id: impl Into<MessageId>) -> Self {
        Self { message_id: message_id.into() }
    }
}

impl Question {
    /// Creates a question of the agent.
    pub fn new(request_id: impl Into<RequestId>, questions: Vec<QuestionItem>) -> Self {
        Self { request_id: request_id.into(), questions }
    }
}

impl QuestionItem {
    /// Creates a question. Without options, any text is an answer.
    pub fn new(id: impl Into<UntrustedText>, text: impl Into<UntrustedText>, options: Vec<QuestionOption>) -> Self {
        Self { id: id.into(), text: text.into(), options, multiple: None, header: None }
    }

    /// Sets whether several options can be chosen; `None` if that is unknown.
    #[must_use]
    pub fn with_multiple(self, multiple: Option<bool>) -> Self {
        Self { multiple, ..self }
    }

    /// Sets the topic; `None` if the agent names none.
    #[must_use]
    pub fn with_header(self, header: Option<UntrustedText>) -> Self {
        Self { header, ..self }
    }
}

impl QuestionOption {
    /// Creates an option without a description.
    pub fn new(label: impl Into<UntrustedText>) -> Self {
        Self { label: label.into(), description: None }
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(self, description: Option<UntrustedText>) -> Self {
        Self { description, ..self }
    }
}

impl Plan {
    /// Creates a plan with these entries.
    pub fn new(entries: Vec<PlanEntry>) -> Self {
        Self { entries }
    }
}

impl PlanEntry {
    /// Creates an entry of a plan.
    pub fn new(content: impl Into<UntrustedText>, status: PlanStatus) -> Self {
        Self { content: content.into(), status }
    }
}

impl UsageSoFar {
    /// Creates the usage up to now.
    pub fn new(usage: Usage, scope: UsageScope) -> Self {
        Self { usage, scope }
    }
}

impl RateLimit {
    /// Creates the state of a limit of the vendor.
    pub fn new(status: RateLimitStatus) -> Self {
        Self { status, resets_at: None, kind: None }
    }

    /// Sets the time at which the limit is reset, in RFC 3339.
    #[must_use]
    pub fn with_reset(self, resets_at: Option<UntrustedText>) -> Self {
        Self { resets_at, ..self }
    }

    /// Sets the vendor's name of the limit.
    #[must_use]
    pub fn with_kind(self, kind: Option<UntrustedText>) -> Self {
        Self { kind, ..self }
    }
}

impl Failure {
    /// Creates a failure that is retryable if its code is transient.
    pub fn new(code: ErrorCode, message: impl Into<UntrustedText>) -> Self {
        Self { message: message.into(), retryable: Some(code.is_transient()), code }
    }

    /// Sets whether the same request may succeed later.
    #[must_use]
    pub fn with_retryable(self, retryable: bool) -> Self {
        Self { retryable: Some(retryable), ..self }
    }
}

impl Done {
    /// Creates the end of a run.
    pub fn new(result: RunResult) -> Self {
        Self { result }
    }
}

impl PermissionOption {
    /// Creates an answer that the caller may choose.
    pub fn new(
        option_id: impl Into<UntrustedText>,
        name: impl Into<UntrustedText>,
        kind: PermissionOptionKind,
    ) -> Self {
        Self { option_id: option_id.into(), name: name.into(), kind }
    }
}

impl PermissionDenial {
    /// Creates the record of a denied call.
    pub fn new(tool_name: impl Into<UntrustedText>) -> Self {
        Self { tool_name: tool_name.into(), tool_id: None, input: None }
    }

    /// Sets the id of the call.
    #[must_use]
    pub fn with_tool_id(self, tool_id: Option<ToolId>) -> Self {
        Self { tool_id, ..self }
    }

    /// Sets the arguments of the call.
    #[must_use]
    pub fn with_input(self, input: Option<RawJson>) -> Self {
        Self { input, ..self }
    }
}

impl LeftProcess {
    /// Creates the description of a process that remains after the run.
    pub fn new(pid: u32, name: impl Into<UntrustedText>) -> Self {
        Self { pid, name: name.into() }
    }
}
