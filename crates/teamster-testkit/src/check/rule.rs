//! The rules by name, and the text of a violation.

use std::fmt;

use teamster_types::event::Event;

/// A rule of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A stream has exactly one `done`.
    OneDone,
    /// Nothing follows `done`.
    DoneIsLast,
    /// There is at most one `init`.
    OneInit,
    /// `init` precedes all output of the model and all its tool calls.
    InitFirst,
    /// Each `tool_use` has a unique id.
    ToolUseOnce,
    /// A `tool_output` names a call that has no result yet.
    OutputOfRunningCall,
    /// A `tool_result` follows its `tool_use`.
    UseBeforeResult,
    /// Each `tool_use` has exactly one `tool_result`.
    OneResultForEachUse,
    /// The id of a `permission_request` differs from that of every pending one.
    RequestOnce,
    /// A `permission_answered` follows its `permission_request`, or contains the request.
    RequestBeforeAnswer,
    /// Each `permission_request` has exactly one `permission_answered`.
    OneAnswerForEachRequest,
    /// `result.text` consists of all deltas of the main thread that were not retracted.
    ResultText,
    /// `result.finalText` is the last message of the main thread.
    FinalText,
    /// A `retract` names a message that has text or thinking and is not retracted.
    RetractNamesKnownMessage,
    /// No delta is empty.
    NoEmptyDelta,
    /// There is at most one `error`.
    OneError,
    /// `error` directly precedes `done`.
    ErrorJustBeforeDone,
    /// `result.errorCode` is the code of the `error` event.
    ErrorCodeOfResult,
    /// `result.isError` is true if and only if there is an `error` event.
    IsErrorMeansError,
    /// An aborted run is an error with the code `ABORTED`.
    AbortedIsAnError,
    /// Each line is one JSON object.
    OneObjectALine,
    /// Every event has a type that this version knows.
    KnownType,
    /// The stream's own fields are omitted rather than null.
    NoNull,
    /// The names of the stream's own fields are in `camelCase`.
    CamelCase,
    /// A line is equal to what this version would write: no field is unknown, missing or in another
    /// format.
    RoundTrip,
}

impl Rule {
    /// Returns the rule as a sentence.
    pub fn promise(self) -> &'static str {
        match self {
            Self::OneDone => "there is exactly one done",
            Self::DoneIsLast => "done is the last event",
            Self::OneInit => "there is at most one init",
            Self::InitFirst => "init precedes all output of the model and all its tool calls",
            Self::ToolUseOnce => "each tool_use has a unique id",
            Self::OutputOfRunningCall => "a tool_output names a call that has no result yet",
            Self::UseBeforeResult => "a tool_result follows its tool_use",
            Self::OneResultForEachUse => "each tool_use has exactly one tool_result",
            Self::RequestOnce => "the id of a permission_request differs from that of every pending one",
            Self::RequestBeforeAnswer => "a permission_answered follows its permission_request, or contains it",
            Self::OneAnswerForEachRequest => "each permission_request has exactly one permission_answered",
            Self::ResultText => {
                "result.text consists of all messages of the main thread that were not retracted, with blank lines between"
            }
            Self::FinalText => "result.finalText is the last message of the main thread",
            Self::RetractNamesKnownMessage => "a retract names a message that has content and is not retracted",
            Self::NoEmptyDelta => "no delta is empty",
            Self::OneError => "there is at most one error",
            Self::ErrorJustBeforeDone => "error directly precedes done",
            Self::ErrorCodeOfResult => "result.errorCode is the code of the error event",
            Self::IsErrorMeansError => "result.isError is true if and only if there is an error event",
            Self::AbortedIsAnError => "an aborted run is an error with the code ABORTED",
            Self::OneObjectALine => "each line is one JSON object",
            Self::KnownType => "the type of an event is known",
            Self::NoNull => "an unknown field is omitted, never null",
            Self::CamelCase => "fields are in camelCase",
            Self::RoundTrip => "an event is equal to what this version would write",
        }
    }
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The index of the event that broke it; `None` for the end of the stream.
    pub at: Option<usize>,
    /// The type of that event. Empty if there is none.
    pub kind: &'static str,
    /// A description of the violation. May be empty.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) if self.kind.is_empty() => write!(formatter, "event {at}: ")?,
            Some(at) => write!(formatter, "event {at} ({}): ", self.kind)?,
            None => formatter.write_str("the end: ")?,
        }
        formatter.write_str(self.rule.promise())?;
        if self.detail.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.detail) }
    }
}

impl std::error::Error for Violation {}

/// Returns the `type` of an event.
pub(super) fn kind(event: &Event) -> &'static str {
    match event {
        Event::Init(_) => "init",
        Event::Text(_) => "text",
        Event::Thinking(_) => "thinking",
        Event::Retract(_) => "retract",
        Event::ToolUse(_) => "tool_use",
        Event::ToolOutput(_) => "tool_output",
        Event::ToolResult(_) => "tool_result",
        Event::PermissionRequest(_) => "permission_request",
        Event::PermissionAnswered(_) => "permission_answered",
        Event::Question(_) => "question",
        Event::Plan(_) => "plan",
        Event::Queued(_) => "queued",
        Event::Usage(_) => "usage",
        Event::RateLimit(_) => "rate_limit",
        Event::Warning(_) => "warning",
        Event::Error(_) => "error",
        Event::Done(_) => "done",
        _ => "",
    }
}

/// Describes the first difference between two texts.
pub(super) fn describe_difference(found: &str, expected: &str) -> String {
    let same = found.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(20);
    let part = |text: &str| text.chars().skip(from).take(80).collect::<String>();
    format!(
        "it has {} characters instead of {}; from character {from} it is {:?} instead of {:?}",
        found.chars().count(),
        expected.chars().count(),
        part(found),
        part(expected)
    )
}
