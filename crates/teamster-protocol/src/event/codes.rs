//! The stable names inside events: what went wrong, what is worth knowing, why a turn stopped.

use crate::names::open_enum;

open_enum! {
    /// Why a run failed, and what to do about it. The names are stable: programs match on them.
    ErrorCode {
        /// The caller ended the run. No action is needed.
        Aborted = "ABORTED",
        /// The agent was silent for longer than the limit of its phase. Check its last tool call. If such a silence
        /// is normal for the work, raise the limit (start, silence, tool in flight).
        WatchdogTimeout = "WATCHDOG_TIMEOUT",
        /// The whole run took longer than its deadline. Raise the deadline, or request less.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// The host's limit of waiting turns was reached, so this turn was rejected before anything started. Send it
        /// again in a moment.
        QueueFull = "QUEUE_FULL",
        /// The CLI was not found on this machine. Install it (`teamster doctor` shows the command), or set its path.
        CliNotFound = "CLI_NOT_FOUND",
        /// The CLI exists, but could not be started. Check that it is a program for this machine, that it is
        /// executable, and that its interpreter is in `PATH`.
        SpawnFailed = "SPAWN_FAILED",
        /// The CLI exited with an error before it returned a result. The message and the tail of standard error
        /// contain its last output. If that is not enough, start the CLI by hand.
        CliExit = "CLI_EXIT",
        /// A signal ended the CLI before it returned a result. Find the sender: the kernel sends SIGKILL when memory
        /// is short.
        CliSignaled = "CLI_SIGNALED",
        /// The vendor rejected the credentials, or there are none. Log in with the agent's own CLI, or set its key.
        /// `teamster doctor` shows which credentials it has.
        Auth = "AUTH",
        /// The vendor's limit was reached: too many requests, or the plan's quota is used up. If it is retryable, try
        /// again in a moment. A `rate_limit` event or the message shows when a quota resets.
        RateLimit = "RATE_LIMIT",
        /// The vendor is overloaded. Try again in a moment, or use another model.
        Overloaded = "OVERLOADED",
        /// The vendor failed in another way, or its model refused. If it is retryable, try again. Otherwise the
        /// message contains the vendor's text.
        Provider = "PROVIDER",
        /// The vendor could not be reached, or the connection broke. Try again. If it persists, check the network,
        /// the proxy, and the vendor's URL and certificate.
        Connection = "CONNECTION",
        /// The conversation is longer than the model's context window. Start a new session, send less, or use a model
        /// with a larger window.
        ContextWindow = "CONTEXT_WINDOW",
        /// The session to resume does not exist here. Start a new one; a retry with the same id fails again. Most
        /// agents store a session for one user and one directory.
        SessionNotFound = "SESSION_NOT_FOUND",
        /// The limit of turns was reached. Resume the session to continue, or raise the limit.
        MaxTurns = "MAX_TURNS",
        /// A limit of cost was reached: the run's, or that of the vendor's account. Raise the limit, or add credit to
        /// the account.
        Budget = "BUDGET",
        /// The model did not return the structured output that the schema requires. Describe it in the prompt, or
        /// simplify the schema.
        StructuredOutput = "STRUCTURED_OUTPUT",
        /// The agent or its vendor rejected the request as invalid. The message names the cause: a model, an
        /// argument, a file. The same request fails again.
        InvalidRequest = "INVALID_REQUEST",
        /// The agent's configuration is broken or forbids the run. Correct the file or the setting that the message
        /// names.
        Config = "CONFIG",
        /// The agent violated its protocol: it ended without a result, or answered from another session. Compare its
        /// version with the tested one (`teamster doctor`).
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
