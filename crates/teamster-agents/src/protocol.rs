//! The seam between what differs by agent and what is the same for all.
//!
//! A [`Protocol`] is told what happened and says what should be done. It is a pure state machine: no clock, no files, no
//! sockets, no tasks; it never fails and never waits. Whatever the agent writes, it makes the best of it: what it cannot
//! read becomes a warning.

use crate::agent::FailureRow;
use crate::rules::PathResolver;
use teamster_types::event::{
    Event, Failure, PermissionDecision, PermissionDenial, RequestId, SessionId, SteerId, StopReason, Usage, UsageScope,
};
use teamster_types::json::RawJson;
use teamster_types::request::{Answer, PermissionMode, Prompt};
use teamster_types::text::UntrustedText;

/// What happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// The process runs and its standard input takes bytes.
    Started,
    /// A line came on the protocol stream, without its line end. Bytes, since a CLI may write anything.
    Line(&'a [u8]),
    /// A line came beside the protocol stream: what the CLI says of itself. It may be cut, and come before or after the line of
    /// the protocol stream that it belongs to.
    Diagnostic(&'a [u8]),
    /// The CLI's server said something, or cannot be reached; only where the launch has [one](crate::launch::Launch::server).
    Server(ServerInput<'a>),
    /// The caller wants the turn to end soon, politely.
    Interrupt,
    /// In a session, and only there: what the caller wants.
    Command(Command<'a>),
    /// The process is gone and everything it wrote has been read. The last input.
    Exited(ExitReport<'a>),
}

/// What is heard of a server that the CLI started.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum ServerInput<'a> {
    /// The CLI's server answered a [call](ServerAction::Call). What it said in its diagnostics before has been told.
    Reply {
        /// The call.
        call: CallId,
        /// The status of HTTP.
        status: u16,
        /// The whole body.
        body: &'a [u8],
    },
    /// The data of one event of the stream that was [asked for](ServerAction::Subscribe).
    Event(&'a [u8]),
    /// A call of the CLI's server broke, or the stream of its events did, though the process lives on.
    Unreachable {
        /// The call; `None` if it is the stream or the server itself.
        call: Option<CallId>,
        /// What happened.
        why: &'a str,
    },
}

/// What the caller of a session wants.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Command<'a> {
    /// The model is told something, and a turn begins. The last one has had its outcome.
    Send {
        /// Which words; new each time.
        id: &'a SteerId,
        /// The words.
        prompt: &'a Prompt,
    },
    /// The model is to be told this within the running turn, at the next moment when it listens. Only where the protocol
    /// [supports steering](Protocol::supports_steering). Before the turn's outcome [`SessionAction::Steered`] tells what became of it; or
    /// [`SessionAction::SteerTurnStarted`] follows the outcome.
    Steer {
        /// Which words.
        id: &'a SteerId,
        /// The words.
        prompt: &'a Prompt,
    },
    /// The answer to a request that the protocol has emitted, and not withdrawn.
    Answer {
        /// The request.
        request: &'a RequestId,
        /// What the caller says to it.
        answer: &'a Answer,
    },
    /// Another model, from the next turn on at the latest.
    SetModel(&'a str),
    /// Another permission mode.
    SetPermissionMode(PermissionMode),
    /// There are no more turns. The process is to exit by itself.
    Close,
}

/// How the process ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExitReport<'a> {
    /// Its exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, by its name (`SIGKILL`).
    pub signal: Option<&'a str>,
    /// The last of its diagnostics.
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
    Answered(Box<Taken>),
    /// The model received the prompt of a [`Command::Steer`] in the running turn, or it was too late and the model receives
    /// nothing.
    Steered {
        /// The id of the prompt.
        id: SteerId,
        /// Whether the model received it.
        heard: bool,
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

/// The answer to a permission request, as the agent takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The request.
    pub request: RequestId,
    /// What it is answered.
    pub decision: PermissionDecision,
    /// The option of the agent's that is chosen.
    pub option_id: Option<UntrustedText>,
    /// Why that is not what the answer says.
    pub message: Option<UntrustedText>,
}

/// Which call of the CLI's server, by a number of the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A call of the CLI's server. A reply comes, or word that there is none: at most 64 calls may be under way.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerCall {
    /// By which its reply is known.
    pub id: CallId,
    /// The method of HTTP.
    pub method: Method,
    /// The path, with a query if there is one.
    pub path: String,
    /// A JSON document.
    pub body: Option<Vec<u8>>,
}

impl std::fmt::Debug for ServerCall {
    /// Shows no body: prompts stand there.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = self.body.as_ref().map_or(0, Vec::len);
        write!(formatter, "ServerCall({:?} {} {}, {body} bytes)", self.id, self.method.as_str(), self.path)
    }
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Asks.
    Get,
    /// Tells.
    Post,
}

impl Method {
    /// As it stands in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// How the run ended, as far as the agent tells. What the driver knows better (durations, exit code) is added there.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// Why the run failed; `None` is a success.
    pub failure: Option<Failure>,
    /// The row of the agent's table that says what the failure means, where one does.
    pub classified_by: Option<&'static FailureRow>,
    /// Whether the agent stopped because it was asked to.
    pub interrupted: bool,
    /// The session that holds the conversation.
    pub session_id: Option<SessionId>,
    /// Tokens, with what they add up.
    pub usage: Option<(Usage, UsageScope)>,
    /// US dollars.
    pub total_cost_usd: Option<f64>,
    /// Milliseconds of waiting for the vendor.
    pub api_duration_ms: Option<u64>,
    /// Turns as the agent counts them.
    pub num_turns: Option<u64>,
    /// Why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// Tool calls that were refused.
    pub permission_denials: Vec<PermissionDenial>,
    /// The document that the schema asked for.
    pub structured_output: Option<RawJson>,
    /// The model that answered.
    pub model: Option<String>,
}

/// One run of one agent, as a pure state machine.
pub trait Protocol: Send {
    /// Takes what happened and adds what should be done, in order.
    ///
    /// Must be total: any bytes in any order give actions, never a panic. (The driver survives one all the same.)
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>);

    /// Whether the agent, whose process has died, may have worked on the last prompt that was sent: it is sent again only if not.
    /// `has_spoken` tells whether it has said anything since. Most say something at once; of one that says nothing before its model
    /// does nobody knows.
    fn may_have_consumed_prompt(&self, has_spoken: bool) -> bool {
        has_spoken
    }

    /// Whether the agent can be told more within a turn of a session ([`Command::Steer`]).
    fn supports_steering(&self) -> bool {
        false
    }

    /// Whether another process can resume the conversation, as far as that is known by now.
    fn is_resumable(&self) -> bool {
        true
    }

    /// Gives the protocol a resolver for paths in rules for tools, where it applies such rules itself. Called before the first input.
    fn set_path_resolver(&mut self, files: Box<dyn PathResolver + Send>) {
        let _ = files;
    }

    /// What of the diagnostics callers get to see, and [`Input::Exited`] has; all if `None`. A CLI may be made to say things
    /// there that are meant for the protocol alone.
    fn visible_stderr(&self, stderr: &str) -> Option<String> {
        let _ = stderr;
        None
    }
}
