//! The interface between an agent's state machine and the driver.
//!
//! A [`Protocol`] receives an [`Input`] and returns [`Action`]s. It is a pure state machine: it has no clock, files,
//! sockets or tasks, and it never fails or waits. Output of the agent that it cannot read becomes a warning.

use std::time::Duration;

use crate::agent::{FailureRow, LimitEnd};
use crate::rules::PathResolver;
use teamster_types::event::{
    ContextUse, Event, Failure, PermissionDecision, PermissionDenial, RequestId, SessionId, SteerId, StopReason, Usage,
    UsageScope,
};
use teamster_types::json::RawJson;
use teamster_types::request::{Answer, PermissionMode, Prompt};
use teamster_types::text::UntrustedText;

/// An input of a protocol.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// The process runs and accepts bytes on standard input.
    Started,
    /// A line of the protocol stream, without its line end. Its bytes may not be UTF-8.
    Line(&'a [u8]),
    /// A line of the other stream, which carries diagnostics. It may be truncated. Its order relative to the lines of the
    /// protocol stream is not defined.
    Diagnostic(&'a [u8]),
    /// A message or a failure of the CLI's server. Only if the launch has [one](crate::launch::Launch::server).
    Server(ServerInput<'a>),
    /// The caller requests that the turn ends soon and gracefully.
    Interrupt,
    /// A command of the caller. Only in sessions.
    Command(Command<'a>),
    /// The [timer](Action::SetTimer) has elapsed and is no longer set. What the agent wrote before was passed before. The timer
    /// runs only while the driver reads the agent's output.
    TimerElapsed,
    /// The process has exited and all of its output has been read. This is the last input.
    Exited(ExitReport<'a>),
}

/// A message or a failure of the server that the CLI started.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ServerInput<'a> {
    /// The server's response to a [call](ServerAction::Call). Diagnostics that precede the response have been passed before.
    Reply {
        /// The call.
        call: CallId,
        /// The HTTP status.
        status: u16,
        /// The whole body.
        body: &'a [u8],
    },
    /// The data of one event of the [event stream](ServerAction::Subscribe).
    Event(&'a [u8]),
    /// A call or the event stream failed while the process still runs.
    Unreachable {
        /// The call; `None` if the stream or the server itself failed.
        call: Option<CallId>,
        /// The error.
        why: &'a str,
    },
}

/// A command of the caller of a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Command<'a> {
    /// Send a prompt to the model, which starts a turn. The previous turn has had its outcome.
    Send {
        /// The id of the prompt, unique in the session.
        id: &'a SteerId,
        /// The prompt.
        prompt: &'a Prompt,
    },
    /// Send a prompt to the model within the running turn. Only if the protocol
    /// [supports steering](Protocol::supports_steering). Before the turn's outcome, [`SessionAction::Steered`] reports whether
    /// the model received it; otherwise [`SessionAction::SteerTurnStarted`] follows the outcome.
    Steer {
        /// The id of the prompt.
        id: &'a SteerId,
        /// The prompt.
        prompt: &'a Prompt,
    },
    /// Answer a request that the protocol has emitted and not withdrawn.
    Answer {
        /// The request.
        request: &'a RequestId,
        /// The caller's answer.
        answer: &'a Answer,
    },
    /// Use another model, at the latest from the next turn on.
    SetModel(&'a str),
    /// Use another permission mode.
    SetPermissionMode(PermissionMode),
    /// There are no more turns: let the process exit by itself.
    Close,
}

/// The exit status of the process.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitReport<'a> {
    /// The exit code; `None` if a signal killed the process.
    pub code: Option<i32>,
    /// The name of the signal that killed the process, such as `SIGKILL`.
    pub signal: Option<&'a str>,
    /// The end of the diagnostics.
    pub stderr: &'a str,
}

/// An output of a protocol. The driver carries out the actions in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Emits an event to the caller. `error` and `done` are not emitted this way; the driver creates both from the [`Outcome`].
    Emit(Event),
    /// Reports that the agent works, without an event.
    Alive,
    /// Reports the result of the run, or of the session's turn, which ends with it. A later outcome replaces an earlier one.
    Outcome(Box<Outcome>),
    /// An action on the process.
    Process(ProcessAction),
    /// An action on the server that the CLI runs.
    Server(ServerAction),
    /// A report to the session's queue of prompts and answers.
    Session(SessionAction),
    /// Sets the protocol's timer: [`Input::TimerElapsed`] follows after this time. A protocol has one timer; this replaces its
    /// time. The timer also runs between the turns of a session. It never elapses after the exit of the process.
    SetTimer(Duration),
    /// Clears the timer.
    ClearTimer,
}

/// An action on the process of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// Write these bytes to standard input.
    Write(Vec<u8>),
    /// Close standard input when everything is written.
    CloseStdin,
    /// Send SIGINT. Used by agents without another way to interrupt them.
    Interrupt,
    /// Kill the process, because it would do harm if it continued.
    Stop,
    /// Terminate the process, because its work is done and it cannot exit by itself. Its exit status is not reported.
    Shutdown,
}

/// An action on the server that the CLI runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAction {
    /// Send calls to this address from now on (`http://127.0.0.1:4096`). An address of another machine is rejected.
    Connect {
        /// Scheme, host and port.
        address: String,
    },
    /// Call the server.
    Call(ServerCall),
    /// Read the server's event stream (server-sent events) from now on.
    Subscribe {
        /// The path of the stream.
        path: String,
    },
}

/// A report of a protocol to the session that it serves. A run has no session and ignores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAction {
    /// The agent no longer waits for an answer to this request.
    Withdraw(RequestId),
    /// The answer to a permission request as the agent applies it, if that differs from the answer that was given. Follows a
    /// [`Command::Answer`] or precedes a [`Withdraw`](Self::Withdraw).
    Answered(Box<AppliedAnswer>),
    /// The model received the prompt of a [`Command::Steer`] in the running turn, or it was too late and the model receives
    /// nothing.
    Steered {
        /// The id of the prompt.
        id: SteerId,
        /// Whether the model received it.
        accepted: bool,
    },
    /// After a turn's outcome: the agent starts the next turn by itself, with the prompts that came too late to steer.
    SteerTurnStarted,
    /// Between turns or after an outcome: the agent starts a turn without a prompt. The actions that follow belong to that turn.
    AgentTurnStarted,
    /// In a turn without events so far: the agent has not accepted the prompt. The driver sends it again after the turn that
    /// the agent may have [started](Self::AgentTurnStarted). The actions that follow do not belong to the prompt's turn.
    PromptNotAccepted,
    /// A command needs another process, which resumes the conversation.
    RestartProcess,
}

/// The answer to a permission request, as the agent applies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedAnswer {
    /// The request.
    pub request: RequestId,
    /// The decision that the agent received.
    pub decision: PermissionDecision,
    /// The chosen option of the agent.
    pub option_id: Option<UntrustedText>,
    /// The reason for the difference from the given answer.
    pub message: Option<UntrustedText>,
}

/// The id of a call to the CLI's server. The protocol chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call to the CLI's server. It is followed by [`ServerInput::Reply`] or [`ServerInput::Unreachable`]. At most 64 calls may
/// be in progress.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerCall {
    /// The id of the call and of its reply.
    pub id: CallId,
    /// The HTTP method.
    pub method: Method,
    /// The path, with an optional query.
    pub path: String,
    /// The body, a JSON document.
    pub body: Option<Vec<u8>>,
}

impl std::fmt::Debug for ServerCall {
    /// Shows no body, because it may contain a prompt.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = self.body.as_ref().map_or(0, Vec::len);
        write!(formatter, "ServerCall({:?} {} {}, {body} bytes)", self.id, self.method.as_str(), self.path)
    }
}

/// An HTTP method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
}

impl Method {
    /// Returns the name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// The result of a run or turn, as far as the agent reports it. The driver adds what it measures itself, such as durations.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The failure; `None` for a success.
    pub failure: Option<Failure>,
    /// The row of the agent's failure table that matches the failure, if any.
    pub classified_by: Option<&'static FailureRow>,
    /// When the vendor's limit ends, if the failure names it.
    pub limit_end: Option<LimitEnd>,
    /// Whether the agent stopped because of an interrupt.
    pub interrupted: bool,
    /// The session that holds the conversation.
    pub session_id: Option<SessionId>,
    /// The token usage and what it covers.
    pub usage: Option<(Usage, UsageScope)>,
    /// How much of the model's context window is used.
    pub context: Option<ContextUse>,
    /// The cost in US dollars.
    pub total_cost_usd: Option<f64>,
    /// The time spent waiting for the vendor, in milliseconds.
    pub api_duration_ms: Option<u64>,
    /// The number of turns, as the agent counts them.
    pub num_turns: Option<u64>,
    /// The reason why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// The tool calls that were denied.
    pub permission_denials: Vec<PermissionDenial>,
    /// The document that matches the requested schema.
    pub structured_output: Option<RawJson>,
    /// The model that answered.
    pub model: Option<String>,
}

/// One run or session of an agent, as a pure state machine.
pub trait Protocol: Send {
    /// Handles an input, and appends the resulting actions in order.
    ///
    /// It must accept any bytes in any order without a panic. (The driver reports a panic as a failure of the run.)
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>);

    /// Whether an agent whose process died may have worked on the last prompt. If not, the prompt is sent again.
    ///
    /// `has_spoken` is whether the agent has printed anything since the prompt was sent. Most agents print something at once.
    /// If an agent prints nothing before the model responds, its protocol must return `true`.
    fn may_have_consumed_prompt(&self, has_spoken: bool) -> bool {
        has_spoken
    }

    /// Whether the agent accepts prompts within a running turn of a session ([`Command::Steer`]).
    fn supports_steering(&self) -> bool {
        false
    }

    /// Whether another process can resume the conversation, as far as is known at this time.
    fn is_resumable(&self) -> bool {
        true
    }

    /// Sets the resolver for paths in rules for tools, for protocols that apply such rules. Called before the first input.
    fn set_path_resolver(&mut self, files: Box<dyn PathResolver + Send>) {
        let _ = files;
    }

    /// Returns the part of the diagnostics that is passed to callers and to [`Input::Exited`]; `None` for all of it. Some CLIs
    /// are configured to print diagnostics that only the protocol needs.
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        let _ = stderr;
        None
    }
}
