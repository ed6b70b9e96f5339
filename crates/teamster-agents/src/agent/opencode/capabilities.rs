//! The capabilities of OpenCode 1.18.33, and how each is implemented. If the interfaces differ, the server is first.

use crate::agent::{Capabilities, EffortLevels, Feature, OwnKeys, Support};
use Support::{Refused, Yes};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    program: "opencode",
    tested_version: "1.18.33",
    package: "opencode-ai",
    credential_variables: &[
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "OPENCODE_API_KEY",
        "OPENCODE_AUTH_CONTENT",
    ],
    own_keys: &[
        // The configuration often holds keys.
        OwnKeys::Always(&[
            "OPENCODE_API_KEY",
            "OPENCODE_AUTH_CONTENT",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_CONSOLE_TOKEN",
            "OPENCODE_SERVER_PASSWORD",
        ]),
        OwnKeys::OfProvider(&[
            ("alibaba", "DASHSCOPE_API_KEY"),
            ("amazon", "AWS_*"),
            ("google", "GEMINI_API_KEY"),
            ("huggingface", "HF_TOKEN"),
            ("moonshotai", "MOONSHOT_API_KEY"),
            ("sap", "AICORE_SERVICE_KEY"),
            ("togetherai", "TOGETHER_API_KEY"),
            ("vercel", "AI_GATEWAY_API_KEY"),
            ("volcengine", "ARK_*"),
            ("zai", "ZHIPU_API_KEY"),
            ("zhipuai", "ZHIPU_API_KEY"),
        ]),
    ],
    home_variables: &["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"],
    effort_levels: EffortLevels::OfModel(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    credential_files: &[".local/share/opencode/auth.json"],
    configured_keys: None,
    features: &[
        (Feature::Model, Yes("`model` of the prompt, as PROVIDER/MODEL; exec: `--model`")),
        (
            Feature::Effort,
            Yes(
                "`variant` of the prompt (exec: `--variant`); the agent ignores one that the model lacks; an unusual one is a warning",
            ),
        ),
        (Feature::SystemPrompt, Yes("`agent.teamster.prompt`, from a private file")),
        (Feature::AppendSystemPrompt, Yes("`instructions`, a private file")),
        (
            Feature::Attachments,
            Yes(
                "parts of the prompt: images, PDF, text (exec: `--file`, private files); the model gets a note about unsupported parts",
            ),
        ),
        (
            Feature::Schema,
            Yes(
                "`format` of the prompt; a run without the structured output is an error; exec: refused, because it could not be enforced",
            ),
        ),
        (
            Feature::Resume,
            Yes(
                "by its id, in the session's own directory; another directory is an error before the model is called (exec: `--session`)",
            ),
        ),
        (Feature::Fork, Yes("`POST /session/ID/fork`; exec: `--session` with `--fork`")),
        (
            Feature::Continue,
            Yes("the newest session of exactly this directory, found in the store and passed by its id"),
        ),
        (
            Feature::ReadOnly,
            Yes("permission rules: only tools that read; edits are denied even if a rule allows them by name"),
        ),
        (Feature::Ask, Yes("permission rules that ask; in a run, rules that deny")),
        (Feature::Edit, Yes("permission rules: `edit` is allowed in the project, everything else as in `ask`")),
        (Feature::Full, Yes("permission rule `*: allow`")),
        (Feature::AllowTools, Yes("permission rules: `NAME` or `NAME(PATTERN)`, as in `bash(git *)`; `mcp__SERVER`")),
        (Feature::DenyTools, Yes("permission rules in last position; subagents are then denied")),
        (Feature::MaxTurns, Yes("Teamster counts model calls; the agent's own limit is only a request to the model")),
        (
            Feature::MaxBudget,
            Yes(
                "Teamster adds up model calls, including subagents (exec: without them); a model without a known price counts as free",
            ),
        ),
        (Feature::MaxSessionBudget, Yes("the same over all turns, and no further turns")),
        (Feature::MaxTokens, Yes("an interrupt after the model call that exceeds it")),
        (Feature::MaxSessionTokens, Yes("an interrupt, and no further turns")),
        (Feature::AddDirs, Yes("permission rule `external_directory`")),
        (Feature::McpServers, Yes("`mcp`, with values from private files; the user's own servers stay available")),
        (Feature::McpSse, Yes("type `remote`, which tries streamable HTTP first")),
        (Feature::McpRequired, Yes("`GET /mcp`, and its log on standard error, before the model is called")),
        (Feature::McpEnabledTools, Yes("permission rules")),
        (Feature::McpDisabledTools, Yes("permission rules")),
        (Feature::McpTimeouts, Yes("`timeout`, one for a server's start and its calls")),
        (
            Feature::McpStrict,
            Refused("servers are disabled by name only; set `mcp.NAME.enabled` to false in OPENCODE_CONFIG_CONTENT"),
        ),
        (
            Feature::McpMergeRestore,
            Yes("`mcp` of `opencode.json` or `opencode.jsonc` in the working directory, with values in private files"),
        ),
        (Feature::Messages, Yes("parts are emitted when they are complete; exec: always")),
        (Feature::Batch, Yes("it has no such interface: parts are emitted when they are complete")),
        (
            Feature::UntrustedProject,
            Yes(
                "`OPENCODE_DISABLE_PROJECT_CONFIG` and `OPENCODE_PURE`; a start or turn fails with CONFIG if `.opencode`, `opencode.json` or `opencode.jsonc` is in the directory or above it (except the home), because the agent uses them anyway; AGENTS.md is not read either",
            ),
        ),
        (Feature::LiteralPrompt, Yes("it does not interpret a prompt from its server interface or standard input")),
        (Feature::BackgroundTasks, Refused("it starts no turn by itself")),
    ],
    events: &[
        ("init", "when the session exists, before the model is called (exec: after the model's first chunk)"),
        ("text", "deltas, including subagents (exec: complete parts, without subagents)"),
        ("thinking", "like `text`"),
        ("retract", "for a summary of the conversation, and for an answer that is requested again"),
        ("tool_use", "when its arguments are complete (exec: with its result)"),
        ("tool_result", "in order of completion"),
        ("permission_request", "in a session: from the agent and its subagents"),
        ("question", "in a session: from its tool `question`"),
        ("plan", "from `todowrite`"),
        ("usage", "after each model call, including subagents (exec: without them)"),
        ("rate_limit", "while the agent waits for the vendor (exec: with the failure), if the duration is known"),
        ("warning", "compaction; each retry of the agent; failed MCP servers"),
    ],
    failures: super::failure::FAILURES,
};
