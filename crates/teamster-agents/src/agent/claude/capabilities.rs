//! What Claude Code 2.1.197 can do, and by which means.

use crate::agent::{Capabilities, EffortLevels, Feature, OwnKeys, Support};
use Support::{Refused, Yes};

const AWS_KEYS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_*",
];

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    program: "claude",
    tested_version: "2.1.197",
    package: "@anthropic-ai/claude-code",
    credential_variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ],
    own_keys: &[
        OwnKeys::Always(&[
            "ANTHROPIC_*API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_CUSTOM_HEADERS",
            "ANTHROPIC_IDENTITY_TOKEN",
            "CLAUDE_API_KEY",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
        ]),
        OwnKeys::Switched("CLAUDE_CODE_USE_BEDROCK", AWS_KEYS),
        OwnKeys::Switched("CLAUDE_CODE_USE_MANTLE", AWS_KEYS),
        OwnKeys::Switched("CLAUDE_CODE_USE_ANTHROPIC_AWS", AWS_KEYS),
        OwnKeys::Switched("CLAUDE_CODE_USE_VERTEX", &["GOOGLE_APPLICATION_CREDENTIALS"]),
        OwnKeys::Switched(
            "CLAUDE_CODE_USE_FOUNDRY",
            &["AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_*", "AZURE_FEDERATED_TOKEN_FILE"],
        ),
    ],
    home_variables: &["CLAUDE_CONFIG_DIR"],
    effort_levels: EffortLevels::Only(&["low", "medium", "high", "xhigh", "max"]),
    credential_files: &[".claude/.credentials.json"],
    configured_keys: None,
    features: &[
        (Feature::Model, Yes("`--model`; only the vendor validates names")),
        (Feature::Effort, Yes("`--effort`: low, medium, high, xhigh or max; other levels are refused")),
        (
            Feature::SystemPrompt,
            Yes(
                "`--system-prompt-file`, a private file; in a resumed session it replaces the earlier one (batch, `exec`: 2.1.276 and newer keep the earlier one, with a warning)",
            ),
        ),
        (
            Feature::AppendSystemPrompt,
            Yes("`--append-system-prompt-file`, a private file; in a resumed session as with the system prompt"),
        ),
        (Feature::Attachments, Yes("content blocks of the user message: images, PDF, text")),
        (
            Feature::Schema,
            Yes("`initialize` request (batch: `--json-schema`); a run without the structured output is an error"),
        ),
        (
            Feature::Resume,
            Yes("`--resume`, in the session's own directory, ids only; an answer from another session is an error"),
        ),
        (Feature::Fork, Yes("`--resume` with `--fork-session`, in the session's own directory")),
        (
            Feature::Continue,
            Yes("the newest session of exactly this directory, found in the store and passed by its id"),
        ),
        (
            Feature::ReadOnly,
            Yes("mode `default` without the edit tools, and without the shell unless a rule allows it"),
        ),
        (Feature::Ask, Yes("mode `default`; in a run, calls that need permission are denied")),
        (
            Feature::Edit,
            Yes(
                "mode `default`: the CLI asks for every edit, and edits in the project and in `add_dirs` are permitted; in one-shot interfaces rules permit them, without the shell unless a rule allows it",
            ),
        ),
        (Feature::Full, Yes("`--dangerously-skip-permissions`; as root only with IS_SANDBOX=1")),
        (Feature::AllowTools, Yes("`--allowedTools`, one rule per flag")),
        (Feature::DenyTools, Yes("`--disallowedTools`, one rule per flag")),
        (Feature::MaxTurns, Yes("`--max-turns`")),
        (
            Feature::MaxBudget,
            Yes("`--max-budget-usd`; exceeded by at most one call; in a session, each turn then has its own process"),
        ),
        (Feature::MaxSessionBudget, Yes("`--max-budget-usd`, and no further turns; exceeded by at most one call")),
        (
            Feature::MaxTokens,
            Yes(
                "an interrupt after the message that exceeds it, without subagents; streaming output only, otherwise refused",
            ),
        ),
        (Feature::MaxSessionTokens, Yes("an interrupt (with streaming output), and no further turns")),
        (Feature::AddDirs, Yes("`--add-dir`")),
        (Feature::McpServers, Yes("`--mcp-config`, a private file; the user's own servers stay available")),
        (Feature::McpSse, Yes("type `sse`")),
        (Feature::McpRequired, Yes("`mcp_servers` of `system/init`, before the model is called (batch: at the end)")),
        (Feature::McpEnabledTools, Refused("it can only exclude tools: use `disabledTools`")),
        (Feature::McpDisabledTools, Yes("`--disallowedTools`, one rule per tool")),
        (Feature::McpTimeouts, Yes("`timeout` of each server for its calls; MCP_TIMEOUT for the start of all servers")),
        (Feature::McpStrict, Yes("`--strict-mcp-config`")),
        (Feature::McpMergeRestore, Refused("not needed: `auto` changes no file")),
        (Feature::Messages, Yes("stream-json without partial messages")),
        (Feature::Batch, Yes("`--output-format json`")),
        (
            Feature::UntrustedProject,
            Yes("`--setting-sources=user` and `--strict-mcp-config`; CLAUDE.md is not read either"),
        ),
        (
            Feature::LiteralPrompt,
            Yes("an empty text block follows: the CLI interprets only the last block, and drops an empty one"),
        ),
        (
            Feature::BackgroundTasks,
            Yes("commands and subagents; otherwise CLAUDE_CODE_DISABLE_BACKGROUND_TASKS is set"),
        ),
    ],
    events: &[
        ("init", "`system/init`, at the start of the turn"),
        ("text", "deltas; whole blocks without partial messages; the result's text if there are no messages"),
        ("thinking", "deltas, if the model provides them"),
        ("retract", "when the CLI requests a broken answer again"),
        ("tool_use", "when the call is complete, before it runs"),
        ("tool_result", "in order of completion"),
        (
            "usage",
            "after each message of the main loop; the result includes every call, also of subagents; if a session is resumed by 2.1.277 to about 2.1.317, or by newer versions in batch, the first result has only the main loop, and no cost",
        ),
        ("plan", "after each change by `TaskCreate`, `TaskUpdate`, `TaskList` or `TodoWrite`"),
        ("rate_limit", "`rate_limit_event`, for subscriptions; with the failure, if its text names the end"),
        ("warning", "retries, failed MCP servers, compaction, a change of the model, background tasks that end, hooks"),
    ],
    failures: super::failure::FAILURES,
};
