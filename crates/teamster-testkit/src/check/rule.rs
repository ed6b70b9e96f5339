//! The rules by name, and how a break of one reads.

use std::fmt;

use teamster_protocol::event::Event;

/// A rule of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// A stream has a `done`.
    OneDone,
    /// Nothing follows `done`.
    DoneIsLast,
    /// There is at most one `init`.
    OneInit,
    /// `init` stands before everything that the model says or does.
    InitFirst,
    /// Each `tool_use` has an id of its own.
    ToolUseOnce,
    /// A `tool_result` stands after its `tool_use`.
    UseBeforeResult,
    /// Each `tool_use` has exactly one `tool_result`.
    OneResultForEachUse,
    /// A `permission_request` has an id that no other one has that waits.
    RequestOnce,
    /// A `permission_answered` stands after its `permission_request`, or contains the request.
    RequestBeforeAnswer,
    /// Each `permission_request` has exactly one `permission_answered`.
    OneAnswerForEachRequest,
    /// `result.text` is every delta of the main thread that was not retracted.
    ResultText,
    /// `result.finalText` is the last message of the main thread.
    FinalText,
    /// A `retract` names a message of which something was told since.
    RetractNamesWhatWasTold,
    /// No delta is empty.
    NoEmptyDelta,
    /// There is at most one `error`.
    OneError,
    /// `error` stands just before `done`.
    ErrorJustBeforeDone,
    /// `result.errorCode` is the code of the `error` event.
    ErrorCodeOfResult,
    /// `result.isError` is true where there is an `error` event, and only there.
    IsErrorMeansError,
    /// An aborted run is an error with the code `ABORTED`.
    AbortedIsAnError,
    /// Each line is one JSON object.
    OneObjectALine,
    /// No event has a type that this version does not know.
    KnownType,
    /// Our own fields are left out, never null.
    NoNull,
    /// Our own fields are in `camelCase`.
    CamelCase,
    /// A line is what this version would write of it: nothing is unknown, missing or of another form.
    RoundTrip,
}

impl Rule {
    /// The rule as a sentence.
    pub fn promise(self) -> &'static str {
        match self {
            Self::OneDone => "there is exactly one done",
            Self::DoneIsLast => "done is the last event",
            Self::OneInit => "there is at most one init",
            Self::InitFirst => "init stands before what the model says and does",
            Self::ToolUseOnce => "each tool_use has an id of its own",
            Self::UseBeforeResult => "a tool_result stands after its tool_use",
            Self::OneResultForEachUse => "each tool_use has exactly one tool_result",
            Self::RequestOnce => "a permission_request has an id that no other one has that waits",
            Self::RequestBeforeAnswer => "a permission_answered stands after its permission_request, or contains it",
            Self::OneAnswerForEachRequest => "each permission_request has exactly one permission_answered",
            Self::ResultText => "result.text is every delta of the main thread that was not retracted",
            Self::FinalText => "result.finalText is the last message of the main thread",
            Self::RetractNamesWhatWasTold => "a retract names a message of which something was told",
            Self::NoEmptyDelta => "no delta is empty",
            Self::OneError => "there is at most one error",
            Self::ErrorJustBeforeDone => "error stands just before done",
            Self::ErrorCodeOfResult => "result.errorCode is the code of the error event",
            Self::IsErrorMeansError => "result.isError is true exactly where there is an error event",
            Self::AbortedIsAnError => "an aborted run is an error with the code ABORTED",
            Self::OneObjectALine => "each line is one JSON object",
            Self::KnownType => "the type of an event is known",
            Self::NoNull => "a field that is unknown is left out, never null",
            Self::CamelCase => "fields are in camelCase",
            Self::RoundTrip => "an event is what this version would write of it",
        }
    }
}

/// A rule that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The event that broke it, counted from 0; `None` where the end of the stream did.
    pub at: Option<usize>,
    /// The type of that event; empty where there is none.
    pub kind: &'static str,
    /// What was wrong with it; may be empty.
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

/// The `type` of an event.
pub(super) fn kind(event: &Event) -> &'static str {
    match event {
        Event::Init(_) => "init",
        Event::Text(_) => "text",
        Event::Thinking(_) => "thinking",
        Event::Retract(_) => "retract",
        Event::ToolUse(_) => "tool_use",
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

/// Two texts that should be the same, cut to where they differ.
pub(super) fn differ(found: &str, expected: &str) -> String {
    let same = found.chars().zip(expected.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(20);
    let part = |text: &str| text.chars().skip(from).take(80).collect::<String>();
    format!(
        "it is {} characters long instead of {}, and from character {from} on {:?} instead of {:?}",
        found.chars().count(),
        expected.chars().count(),
        part(found),
        part(expected)
    )
}
