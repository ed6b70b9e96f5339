//! The stable names inside events: what went wrong, what is worth knowing, why a turn stopped.

use crate::names::open_enum;

open_enum! {
    /// Why a run failed. The names are stable: programs match on them. Each says what to do about it.
    ErrorCode {
        /// The caller ended the run. There is nothing to mend: it was asked for.
        Aborted = "ABORTED",
        /// The agent was silent for longer than the limit of its phase. Look at its last tool call; where such a
        /// silence belongs to the work, raise the limit (start, silence, tool in flight).
        WatchdogTimeout = "WATCHDOG_TIMEOUT",
        /// The whole run took longer than its deadline. Give it more time, or less to do.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// As many turns waited for a place as the host lets wait, and this one was refused before anything started. Send
        /// it again in a moment.
        QueueFull = "QUEUE_FULL",
        /// No such CLI on this machine. Install it (`teamster doctor` says how), or give its path.
        CliNotFound = "CLI_NOT_FOUND",
        /// The CLI is there, but could not be started. Check that it is a program for this machine, that it may be
        /// executed, and that what it is interpreted by is in `PATH`.
        SpawnFailed = "SPAWN_FAILED",
        /// The CLI exited with an error before it gave a result. The message and the tail of standard error have
        /// its last words; where these do not say enough, start the CLI by hand.
        CliExit = "CLI_EXIT",
        /// A signal ended the CLI before it gave a result. Find out who sent it: SIGKILL comes from the kernel
        /// where memory is short.
        CliSignaled = "CLI_SIGNALED",
        /// The vendor refused the credentials, or there are none. Log in with the agent's own CLI, or set its key;
        /// `teamster doctor` shows what it has.
        Auth = "AUTH",
        /// The vendor limits us: too many requests, or the plan's quota is used up. Try again in a moment where it
        /// is retryable; a quota comes back when a `rate_limit` event or the message says.
        RateLimit = "RATE_LIMIT",
        /// The vendor has too much to do. Try again in a moment, or take another model.
        Overloaded = "OVERLOADED",
        /// The vendor failed in another way, or its model refused. Try again where it is retryable; else the
        /// message has the vendor's words.
        Provider = "PROVIDER",
        /// The vendor could not be reached, or the connection broke. Try again; where it lasts, check the network,
        /// the proxy, and the vendor's URL and certificate.
        Connection = "CONNECTION",
        /// The conversation is longer than the model takes. Begin a new session, send less, or take a model that
        /// takes more.
        ContextWindow = "CONTEXT_WINDOW",
        /// The session to resume does not exist here. Begin a new one; the same id is never found later. Most
        /// agents keep a session for the user and the directory that it began in.
        SessionNotFound = "SESSION_NOT_FOUND",
        /// The limit of turns was reached. Resume the session to go on, or raise the limit.
        MaxTurns = "MAX_TURNS",
        /// The limit of cost was reached: the run's, or that of the vendor's account. Raise the one, or pay for the
        /// other.
        Budget = "BUDGET",
        /// The model did not give the structured output that was asked for. Say in the prompt what is wanted, or
        /// make the schema simpler.
        StructuredOutput = "STRUCTURED_OUTPUT",
        /// The agent or its vendor refused the request as wrong. The message names what: a model, an argument, a
        /// file. The same request fails again.
        InvalidRequest = "INVALID_REQUEST",
        /// The agent's configuration is broken or forbids the run. Mend the file or the setting that the message
        /// names.
        Config = "CONFIG",
        /// The agent did not keep to its protocol: it ended without a result, or answered from another session.
        /// Compare its version with the tested one (`teamster doctor`).
        Protocol = "PROTOCOL",
    }
}

impl ErrorCode {
    /// Whether the same request may well work in a moment. An event may know better and says so itself.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Provider | Self::Connection)
    }
}

open_enum! {
    /// What a warning is about.
    WarningCode {
        /// A line of the protocol stream was not valid; it was skipped.
        MalformedLine = "MALFORMED_LINE",
        /// A line was longer than the limit; it was skipped.
        LineTooLong = "LINE_TOO_LONG",
        /// The agent cannot honour an option; the run goes on without it.
        OptionIgnored = "OPTION_IGNORED",
        /// An MCP server is not available in this run.
        McpServerFailed = "MCP_SERVER_FAILED",
        /// The agent calls its vendor again (`data`: attempt, max, delayMs). With errorCode in `data`, the whole run failed
        /// for that reason and is started again.
        Retrying = "RETRYING",
        /// The run failed in a way that may pass, and retries were asked for, but it is not started again (`data`: errorCode).
        NotRetried = "NOT_RETRIED",
        /// The agent works in another session than the one asked for.
        SessionMismatch = "SESSION_MISMATCH",
        /// The run goes on in another session than `init` said (`data`: sessionId): it was started again, or the agent
        /// began a new one.
        SessionChanged = "SESSION_CHANGED",
        /// The process of a session was gone, and another one goes on with the conversation (data: `sessionId`).
        SessionReopened = "SESSION_REOPENED",
        /// A request of the agent was denied, since nobody answered it in time (data: `requestId`).
        Unanswered = "UNANSWERED",
        /// The agent shortened its conversation.
        Compacted = "COMPACTED",
        /// Events wait on disk, since the consumer is slow.
        Spilled = "SPILLED",
        /// The agent went on with another model than the one asked for.
        ModelFallback = "MODEL_FALLBACK",
        /// The agent did not exit after its final result and was ended.
        ExitForced = "EXIT_FORCED",
        /// The run is not known on disk: if this program is killed with all its helpers, nobody will clear up after it.
        LedgerUnavailable = "LEDGER_UNAVAILABLE",
        /// The system refuses something that is needed to end every process of the run and to name those that are left: handles
        /// of processes, or a `/proc` that shows them. The message says what is not guaranteed.
        ProcessControlLimited = "PROCESS_CONTROL_LIMITED",
        /// A file of the user's configuration, into which entries were put for the run, is not what it was before (`data`:
        /// path; original, if its content before is kept; entries, if somebody has changed them and they were left).
        ConfigNotRestored = "CONFIG_NOT_RESTORED",
        /// Processes of the run could not be ended: another user's, or such as hang in the kernel (`data`: processes).
        ProcessesLeft = "PROCESSES_LEFT",
        /// What went in and out of the CLI could not be recorded whole.
        RecordingIncomplete = "RECORDING_INCOMPLETE",
        /// Something that the agent left in the background has ended (`data`: taskId, toolId, status, outputFile).
        BackgroundTask = "BACKGROUND_TASK",
        /// What the agent says of itself for people to read.
        Notice = "NOTICE",
    }
}

open_enum! {
    /// Why the model stopped speaking.
    StopReason {
        /// It had said all.
        EndTurn = "end_turn",
        /// It reached the limit of output tokens.
        MaxTokens = "max_tokens",
        /// It reached a stop sequence.
        StopSequence = "stop_sequence",
        /// It called a tool, and that ended the turn.
        ToolUse = "tool_use",
        /// It refused.
        Refusal = "refusal",
        /// The limit of turns was reached.
        MaxTurns = "max_turns",
        /// The caller interrupted it.
        Cancelled = "cancelled",
        /// The vendor paused a long turn.
        PauseTurn = "pause_turn",
    }
}

open_enum! {
    /// What sort of work a tool does.
    ToolKind {
        /// Runs a command.
        Execute = "execute",
        /// Changes files.
        Edit = "edit",
        /// Reads files.
        Read = "read",
        /// Searches files or the web.
        Search = "search",
        /// Fetches something from the network.
        Fetch = "fetch",
        /// A tool of an MCP server.
        Mcp = "mcp",
        /// Starts or steers another agent.
        Agent = "agent",
        /// Anything else.
        Unclassified = "other",
    }
}

open_enum! {
    /// How hard the vendor's limit is.
    RateLimitStatus {
        /// Within the limit.
        Allowed = "allowed",
        /// Near the limit.
        Warning = "warning",
        /// Over the limit: requests are refused until it resets.
        Rejected = "rejected",
    }
}

open_enum! {
    /// What a usage figure adds up.
    UsageScope {
        /// This run alone.
        Run = "run",
        /// The whole session so far: the agent does not tell the run's share.
        Session = "session",
    }
}

open_enum! {
    /// How far a step of the agent's plan is.
    PlanStatus {
        /// Not begun.
        Pending = "pending",
        /// Being worked on.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

open_enum! {
    /// What an answer to a permission request does (the kinds of ACP).
    PermissionOptionKind {
        /// Allows this call.
        AllowOnce = "allow_once",
        /// Allows this and later calls like it.
        AllowAlways = "allow_always",
        /// Denies this call.
        RejectOnce = "reject_once",
        /// Denies this and later calls like it.
        RejectAlways = "reject_always",
    }
}

open_enum! {
    /// What a permission request was answered. An option of a kind that is not known here has its kind as its name.
    PermissionDecision {
        /// The call is allowed, this once.
        Allow = "allow",
        /// The call is allowed, and those like it until the session's end.
        AllowAlways = "allow_always",
        /// The call is denied.
        Deny = "deny",
        /// The call is denied, and those like it.
        DenyAlways = "deny_always",
        /// The request was not answered: it was withdrawn, or the turn has ended.
        Cancelled = "cancelled",
    }
}

open_enum! {
    /// Who answered a permission request.
    AnsweredBy {
        /// The caller of the session (`Session::answer`, or the command `answer`).
        Caller = "caller",
        /// The handler that the session was opened with. One that panicked has denied.
        Handler = "handler",
        /// A rule for tools of the request.
        Rule = "rule",
        /// The permission mode.
        Mode = "mode",
        /// Nobody, before the time for an answer was over.
        Timeout = "timeout",
        /// Nobody: too many requests wait already.
        Limit = "limit",
        /// Nobody: in a run, and between the turns of a session, nobody can be asked.
        Unattended = "unattended",
        /// The agent, which does not wait for the answer any more.
        Agent = "agent",
        /// The end of the turn: it is over, or was interrupted or aborted.
        End = "end",
    }
}
