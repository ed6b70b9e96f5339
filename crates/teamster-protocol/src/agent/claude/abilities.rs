//! What Claude Code 2.1.197 can do, and by which means.

use crate::agent::{Abilities, Feature, OwnKeys, Support};
use Support::{Refused, Yes};

const AWS_KEYS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_*",
];

pub(super) const ABILITIES: Abilities = Abilities {
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
    credential_files: &[".claude/.credentials.json"],
    features: &[
        (Feature::Model, Yes("`--model`; names are not checked before the vendor sees them")),
        (Feature::Effort, Yes("`--effort`; an unknown level is a warning on stderr")),
        (Feature::SystemPrompt, Yes("`--system-prompt-file`, a private file")),
        (Feature::AppendSystemPrompt, Yes("`--append-system-prompt-file`, a private file")),
        (Feature::Attachments, Yes("content blocks of the user message: images, PDF, text")),
        (Feature::Schema, Yes("`initialize` request (batch: `--json-schema`); a run without the output is an error")),
        (Feature::Resume, Yes("`--resume`, from the session's own directory; another session's answer is an error")),
        (Feature::Fork, Yes("`--resume` with `--fork-session`")),
        (Feature::Continue, Yes("`--continue`")),
        (
            Feature::ReadOnly,
            Yes("mode `default` with the edit tools denied, and the shell too unless a rule allows it"),
        ),
        (Feature::Ask, Yes("mode `default`, which denies what it would ask for in a run")),
        (
            Feature::Edit,
            Yes(
                "mode `default`: the CLI asks for every edit, and is allowed those in the project and in `--add-dir`; in one-shot forms rules allow them, without the shell unless a rule allows it",
            ),
        ),
        (Feature::Full, Yes("`--dangerously-skip-permissions`; as root only with IS_SANDBOX=1")),
        (Feature::AllowTools, Yes("`--allowedTools`, one rule a flag")),
        (Feature::DenyTools, Yes("`--disallowedTools`, one rule a flag")),
        (Feature::MaxTurns, Yes("`--max-turns`")),
        (
            Feature::MaxBudget,
            Yes("`--max-budget-usd`; overshoots by one call. In a session each turn has a process of its own then"),
        ),
        (Feature::MaxSessionBudget, Yes("`--max-budget-usd`, and no further turns; overshoots by one call")),
        (
            Feature::MaxTokens,
            Yes(
                "an interrupt after the message that passes it, subagents' left out; refused but with streaming output",
            ),
        ),
        (Feature::MaxSessionTokens, Yes("an interrupt (with streaming output), and no further turns")),
        (Feature::AddDirs, Yes("`--add-dir`")),
        (Feature::McpServers, Yes("`--mcp-config`, a private file; the user's own servers stay")),
        (Feature::McpSse, Yes("type `sse`")),
        (Feature::McpRequired, Yes("`mcp_servers` of `system/init`, before the model is called (batch: at the end)")),
        (Feature::McpEnabledTools, Refused("it can only leave tools out: name those in `disabledTools`")),
        (Feature::McpDisabledTools, Yes("`--disallowedTools`, one rule a tool")),
        (Feature::McpTimeouts, Yes("`timeout` of each server for its calls; MCP_TIMEOUT, one for all, for the start")),
        (Feature::McpStrict, Yes("`--strict-mcp-config`")),
        (Feature::McpMergeRestore, Refused("`auto` touches no file; leave the option out")),
        (Feature::Messages, Yes("stream-json without partial messages")),
        (Feature::Batch, Yes("`--output-format json`")),
        (
            Feature::UntrustedProject,
            Yes("`--setting-sources=user` and `--strict-mcp-config`; CLAUDE.md goes with them"),
        ),
        (
            Feature::LiteralPrompt,
            Yes("an empty text block follows: only the last block is interpreted, and an empty one is dropped"),
        ),
        (
            Feature::BackgroundTasks,
            Yes("commands and subagents; otherwise CLAUDE_CODE_DISABLE_BACKGROUND_TASKS is set"),
        ),
    ],
    events: &[
        ("init", "`system/init`, at the start of the turn"),
        ("text", "deltas; whole blocks without partial messages; the result's text where there are no messages"),
        ("thinking", "deltas, where the model shows it"),
        ("retract", "when a cut stream is asked again as a whole"),
        ("tool_use", "when the call is complete, before it runs"),
        ("tool_result", "in order of completion"),
        ("usage", "after each message of the main loop; the result adds up every call, subagents' too"),
        ("rate_limit", "`rate_limit_event`, for subscriptions"),
        ("warning", "retries, MCP servers that failed, compaction, another model"),
    ],
    failures: super::failure::FAILURES,
};
