//! What OpenCode 1.18.33 can do in one-shot runs, and by which means.

use crate::agent::{Abilities, Feature, Support};
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
    credential_files: &[".local/share/opencode/auth.json"],
    features: &[
        (Feature::Model, Yes("`--model=PROVIDER/MODEL`")),
        (Feature::Effort, Yes("`--variant`; the agent ignores one that the model does not have")),
        (Feature::SystemPrompt, Yes("`agent.teamster.prompt`, from a private file")),
        (Feature::AppendSystemPrompt, Yes("`instructions`, a private file")),
        (Feature::Attachments, Yes("`--file`, private files; what a model cannot take it is told so")),
        (Feature::Schema, Refused("`opencode run` has no schema; nothing would enforce it")),
        (Feature::Resume, Yes("`--session`, from the session's own directory; another session's answer is an error")),
        (Feature::Fork, Yes("`--session` with `--fork`")),
        (Feature::Continue, Yes("`--continue`")),
        (Feature::ReadOnly, Yes("permission rules: only tools that read; edits are denied even where allowed by name")),
        (Feature::Ask, Yes("permission rules that deny what would be asked for")),
        (Feature::Edit, Yes("permission rules: `edit` is allowed in the project, the rest as in `ask`")),
        (Feature::Full, Yes("permission rule `*: allow`")),
        (Feature::AllowTools, Yes("permission rules: `NAME` or `NAME(PATTERN)`, as in `bash(git *)`")),
        (Feature::DenyTools, Yes("permission rules, the last ones; subagents are denied with them")),
        (Feature::MaxTurns, Yes("counted here by `step_finish`; the agent's own limit is only a request to the model")),
        (Feature::MaxBudget, Yes("counted here by `step_finish`; a model without a known price costs nothing")),
        (Feature::AddDirs, Yes("permission rule `external_directory`")),
        (Feature::McpServers, Yes("`mcp`, with values from private files; the user's own servers stay")),
        (Feature::Messages, Yes("as always: parts are told when they are whole")),
        (Feature::Batch, Yes("it has no such form; its lines are read as they come")),
        (
            Feature::UntrustedProject,
            Yes(
                "`OPENCODE_DISABLE_PROJECT_CONFIG` and `OPENCODE_PURE`; AGENTS.md goes with it, and the user's own plugins",
            ),
        ),
        (Feature::LiteralPrompt, Yes("`opencode run` interprets nothing that comes by standard input")),
    ],
    events: &[
        ("init", "with the first line, after the model's first chunk"),
        ("text", "each part once it is whole"),
        ("thinking", "each part once it is whole"),
        ("retract", "for a summary of the conversation, and for an answer that is asked for again"),
        ("tool_use", "with its result: the agent tells of a call when it is over"),
        ("tool_result", "in order of completion"),
        ("plan", "from `todowrite`"),
        ("usage", "after each call of the model; subagents' calls are not told"),
        ("rate_limit", "with the failure, where the vendor's answer had `retry-after`"),
        ("warning", "compaction; an answer that is asked for again; MCP servers that failed, at the end"),
    ],
    failures: super::failure::FAILURES,
};
