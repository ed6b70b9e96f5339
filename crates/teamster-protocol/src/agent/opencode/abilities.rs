//! What OpenCode 1.18.33 can do, and by which means. Where the two forms differ, the server is named first.

use crate::agent::{Abilities, Feature, OwnKeys, Support};
use Support::{Refused, Yes};

pub(super) const ABILITIES: Abilities = Abilities {
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
    credential_files: &[".local/share/opencode/auth.json"],
    features: &[
        (Feature::Model, Yes("`model` of the prompt, as PROVIDER/MODEL; exec: `--model`")),
        (
            Feature::Effort,
            Yes("`variant` of the prompt (exec: `--variant`); the agent ignores one that the model does not have"),
        ),
        (Feature::SystemPrompt, Yes("`agent.teamster.prompt`, from a private file")),
        (Feature::AppendSystemPrompt, Yes("`instructions`, a private file")),
        (
            Feature::Attachments,
            Yes(
                "parts of the prompt: images, PDF, text (exec: `--file`, private files); what a model cannot take it is told so",
            ),
        ),
        (
            Feature::Schema,
            Yes(
                "`format` of the prompt; a run without the output is an error. Exec: refused, since nothing would enforce it",
            ),
        ),
        (
            Feature::Resume,
            Yes(
                "by its id, in the session's own directory; another one is an error before the model is asked (exec: `--session`)",
            ),
        ),
        (Feature::Fork, Yes("`POST /session/ID/fork`; exec: `--session` with `--fork`")),
        (Feature::Continue, Yes("the newest session of exactly this directory, or a new one; exec: `--continue`")),
        (Feature::ReadOnly, Yes("permission rules: only tools that read; edits are denied even where allowed by name")),
        (Feature::Ask, Yes("permission rules that ask; in a run, where nobody can be asked, rules that deny")),
        (Feature::Edit, Yes("permission rules: `edit` is allowed in the project, the rest as in `ask`")),
        (Feature::Full, Yes("permission rule `*: allow`")),
        (Feature::AllowTools, Yes("permission rules: `NAME` or `NAME(PATTERN)`, as in `bash(git *)`; `mcp__SERVER`")),
        (Feature::DenyTools, Yes("permission rules, the last ones; subagents are denied with them")),
        (
            Feature::MaxTurns,
            Yes("counted here by calls of the model; the agent's own limit is only a request to the model"),
        ),
        (
            Feature::MaxBudget,
            Yes(
                "counted here by calls of the model, subagents' too (exec: not theirs); a model without a known price costs nothing",
            ),
        ),
        (Feature::MaxSessionBudget, Yes("the same over all turns, and no further turns")),
        (Feature::MaxTokens, Yes("an interrupt after the call of the model that passes it")),
        (Feature::MaxSessionTokens, Yes("an interrupt, and no further turns")),
        (Feature::AddDirs, Yes("permission rule `external_directory`")),
        (Feature::McpServers, Yes("`mcp`, with values from private files; the user's own servers stay")),
        (Feature::McpSse, Yes("type `remote`, which tries streamable HTTP first")),
        (Feature::McpRequired, Yes("`GET /mcp`, and its log on standard error, before the model is called")),
        (Feature::McpEnabledTools, Yes("permission rules")),
        (Feature::McpDisabledTools, Yes("permission rules")),
        (Feature::McpTimeouts, Yes("`timeout`, one for a server's start and its calls")),
        (
            Feature::McpStrict,
            Refused(
                "servers are switched off by name only; set `mcp.NAME.enabled` to false in OPENCODE_CONFIG_CONTENT",
            ),
        ),
        (
            Feature::McpMergeRestore,
            Yes("`mcp` of `opencode.json` or `opencode.jsonc` in the working directory, with values in private files"),
        ),
        (Feature::Messages, Yes("parts are told when they are whole; exec: as always")),
        (Feature::Batch, Yes("it has no such form: parts are told when they are whole")),
        (
            Feature::UntrustedProject,
            Yes(
                "`OPENCODE_DISABLE_PROJECT_CONFIG` and `OPENCODE_PURE`, and CONFIG before a start or a turn where `.opencode`, `opencode.json` or `opencode.jsonc` is in the directory or above it (but in the home), since the agent uses them all the same; AGENTS.md goes with it",
            ),
        ),
        (
            Feature::LiteralPrompt,
            Yes("it interprets nothing of a prompt that comes by its server, or by standard input"),
        ),
        (Feature::BackgroundTasks, Refused("it begins no turn by itself")),
    ],
    events: &[
        ("init", "when the session is there, before the model is asked (exec: after the model's first chunk)"),
        ("text", "deltas, subagents' too (exec: each part once it is whole, and not theirs)"),
        ("thinking", "as text"),
        ("retract", "for a summary of the conversation, and for an answer that is asked for again"),
        ("tool_use", "when its arguments are whole (exec: with its result)"),
        ("tool_result", "in order of completion"),
        ("permission_request", "in a session: of the agent and of its subagents"),
        ("question", "in a session: from its tool `question`"),
        ("plan", "from `todowrite`"),
        ("usage", "after each call of the model, subagents' too (exec: theirs are not told)"),
        ("rate_limit", "while the agent waits for the vendor (exec: with the failure), where it says for how long"),
        ("warning", "compaction; each try of the agent's own; MCP servers that failed"),
    ],
    failures: super::failure::FAILURES,
};
