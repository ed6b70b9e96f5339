//! The stable names in events: error codes, warning codes, stop reasons and other open enums.

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
        /// The host was stopped, or could not renew the lease under which it runs agents, so the agent was killed.
        /// Another process may continue the work. Check that before you send it again.
        LeaseExpired = "LEASE_EXPIRED",
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
        /// A hook of the user stopped the agent, put a call off, or refused the prompt. The message contains the hook's
        /// reason. Change the request or the hook.
        HookStopped = "HOOK_STOPPED",
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
    /// Returns whether the same request may succeed soon. The field `retryable` of an event takes precedence.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Provider | Self::Connection)
    }
}

open_enum! {
    /// The subject of a warning.
    WarningCode {
        /// A line of the protocol stream was not valid; it was skipped.
        MalformedLine = "MALFORMED_LINE",
        /// A line was longer than the limit; it was skipped.
        LineTooLong = "LINE_TOO_LONG",
        /// The agent does not support an option; the run continues without it.
        OptionIgnored = "OPTION_IGNORED",
        /// An MCP server is not available in this run.
        McpServerFailed = "MCP_SERVER_FAILED",
        /// The agent retries a call of its vendor (`data`: attempt, max, delayMs). With errorCode in `data`, the whole run
        /// failed for that reason and is retried.
        Retrying = "RETRYING",
        /// The run failed with a transient error and retries are configured, but it is not retried (`data`: errorCode).
        NotRetried = "NOT_RETRIED",
        /// The agent uses another session than the requested one.
        SessionMismatch = "SESSION_MISMATCH",
        /// The run continues in another session than the one of `init` (`data`: sessionId): it was retried, or the agent
        /// started a new one.
        SessionChanged = "SESSION_CHANGED",
        /// The process of a session was gone; another one resumes the conversation (`data`: sessionId).
        SessionReopened = "SESSION_REOPENED",
        /// A request of the agent was denied because it was not answered in time (`data`: requestId).
        Unanswered = "UNANSWERED",
        /// The agent compacted its conversation.
        Compacted = "COMPACTED",
        /// Events wait on disk because the consumer is slow.
        Spilled = "SPILLED",
        /// The agent uses another model than the requested one.
        ModelFallback = "MODEL_FALLBACK",
        /// A hook of the user ended the turn after the model's answer.
        HookStopped = "HOOK_STOPPED",
        /// The agent did not exit after its final result and was killed.
        ExitForced = "EXIT_FORCED",
        /// The agent exited with an error code, or a signal ended it, after its final result (`data`: exitCode, signal). The
        /// result is complete.
        ExitFailed = "EXIT_FAILED",
        /// The run is not in the ledger on disk. If this program is killed with all its helpers, nothing cleans up after it.
        LedgerUnavailable = "LEDGER_UNAVAILABLE",
        /// The system denies something that is needed to kill every process of the run and to name those that remain: process
        /// handles, or a `/proc` that shows them. The message names what is not guaranteed.
        ProcessControlLimited = "PROCESS_CONTROL_LIMITED",
        /// A configuration file of the user, to which the run added entries, was not restored (`data`: path; original, if its
        /// earlier content is kept; entries, if they were changed meanwhile and remain).
        ConfigNotRestored = "CONFIG_NOT_RESTORED",
        /// Processes of the run could not be killed: they belong to another user or hang in the kernel (`data`: processes).
        ProcessesLeft = "PROCESSES_LEFT",
        /// The CLI's input and output were not recorded completely.
        RecordingIncomplete = "RECORDING_INCOMPLETE",
        /// The agent did not report the end of its turn. Its own record of the conversation shows that the turn has ended.
        TurnEndMissing = "TURN_END_MISSING",
        /// A background task of the agent has ended (`data`: taskId, toolId, status, outputFile).
        BackgroundTask = "BACKGROUND_TASK",
        /// A message of the agent for people.
        Notice = "NOTICE",
    }
}

open_enum! {
    /// Why the model stopped.
    StopReason {
        /// The answer is complete.
        EndTurn = "end_turn",
        /// It reached the limit of output tokens.
        MaxTokens = "max_tokens",
        /// It reached a stop sequence.
        StopSequence = "stop_sequence",
        /// It called a tool, which ended the turn.
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
    /// The kind of work that a tool does.
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
        /// Starts or controls another agent.
        Agent = "agent",
        /// Anything else.
        Unclassified = "other",
    }
}

open_enum! {
    /// The state of a vendor's limit.
    RateLimitStatus {
        /// Within the limit.
        Allowed = "allowed",
        /// Near the limit.
        Warning = "warning",
        /// Over the limit: requests are rejected until it resets.
        Rejected = "rejected",
    }
}

open_enum! {
    /// The scope that usage numbers cover.
    UsageScope {
        /// This run alone.
        Run = "run",
        /// The whole session so far: the agent does not report the run's part.
        Session = "session",
    }
}

open_enum! {
    /// The state of a plan's step.
    PlanStatus {
        /// Not started.
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Done.
        Completed = "completed",
    }
}

open_enum! {
    /// The effect of an option of a permission request (the kinds of ACP).
    PermissionOptionKind {
        /// Allows this call.
        AllowOnce = "allow_once",
        /// Allows this call and later similar calls.
        AllowAlways = "allow_always",
        /// Denies this call.
        RejectOnce = "reject_once",
        /// Denies this call and later similar calls.
        RejectAlways = "reject_always",
    }
}

open_enum! {
    /// The decision on a permission request. A decision by an option of an unknown kind has the kind as its name.
    PermissionDecision {
        /// This call is allowed.
        Allow = "allow",
        /// This call and similar calls are allowed until the session ends.
        AllowAlways = "allow_always",
        /// The call is denied.
        Deny = "deny",
        /// This call and similar calls are denied.
        DenyAlways = "deny_always",
        /// The request was not answered: it was withdrawn, or the turn has ended.
        Cancelled = "cancelled",
    }
}

open_enum! {
    /// Who or what answered a permission request.
    AnsweredBy {
        /// The caller of the session (`Session::answer`, or the command `answer`).
        Caller = "caller",
        /// The session's handler. A handler that panicked counts as a denial.
        Handler = "handler",
        /// A tool rule of the request.
        Rule = "rule",
        /// The permission mode.
        Mode = "mode",
        /// The time limit for an answer.
        Timeout = "timeout",
        /// The limit on waiting requests.
        Limit = "limit",
        /// There was no caller to answer: the request arrived in a run, or between the turns of a session.
        Unattended = "unattended",
        /// The agent, which withdrew the request.
        Agent = "agent",
        /// The end of the turn: it ended, or was interrupted or aborted.
        End = "end",
    }
}
