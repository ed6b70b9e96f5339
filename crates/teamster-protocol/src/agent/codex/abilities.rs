//! What Codex 0.169.0 can do in `exec`, and by which means.

use crate::agent::{Abilities, Feature, OwnKeys, Support};
use Support::{Ignored, Refused, Yes};

pub(super) const ABILITIES: Abilities = Abilities {
    program: "codex",
    tested_version: "0.169.0",
    package: "@openai/codex",
    // OPENAI_API_KEY alone is not used.
    credential_variables: &["CODEX_API_KEY"],
    // The vendor's usual key is for providers of the user's configuration.
    own_keys: &[OwnKeys::Always(&["CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"])],
    home_variables: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
    credential_files: &[".codex/auth.json"],
    features: &[
        (Feature::Model, Yes("`--model`; names are not checked before the vendor sees them")),
        (Feature::Effort, Yes("`model_reasoning_effort`; unknown levels are the vendor's to refuse")),
        (Feature::SystemPrompt, Yes("`model_instructions_file`, a private file")),
        (
            Feature::AppendSystemPrompt,
            Yes(
                "with the system prompt in its file; else `developer_instructions` in argv, which a resumed session ignores",
            ),
        ),
        (Feature::Attachments, Yes("images by private file, texts before the prompt; no PDF")),
        (Feature::Schema, Yes("`--output-schema`, which the vendor enforces; an answer that is no JSON is an error")),
        (Feature::Resume, Yes("`exec resume`, ids only; another session's answer is an error")),
        (Feature::Fork, Yes("`exec fork`, ids only")),
        (Feature::Continue, Yes("`exec resume --last`")),
        (Feature::ReadOnly, Yes("sandbox `read-only`; commands run in it, and rules that would lift it are not used")),
        (Feature::Ask, Yes("sandbox `read-only`, whose escalations are refused in a run")),
        (Feature::Edit, Yes("sandbox `workspace-write`: the project, temporary directories, no network")),
        (Feature::Full, Yes("`--dangerously-bypass-approvals-and-sandbox`")),
        (Feature::AllowTools, Yes("tools of the run's own MCP servers: `mcp__SERVER`, `mcp__SERVER__TOOL`; no others")),
        (Feature::DenyTools, Refused("it has no rules by tool in a run")),
        (Feature::MaxTurns, Ignored("it counts no turns")),
        (Feature::MaxBudget, Refused("it knows no cost")),
        (Feature::AddDirs, Yes("`--add-dir`; writable in mode `edit`")),
        (Feature::McpServers, Yes("`mcp_servers`, with values in the environment; the user's own servers stay")),
        (Feature::McpSse, Refused("it speaks streamable HTTP only: use type http")),
        (Feature::McpRequired, Yes("`required`, before the model is called")),
        (Feature::McpEnabledTools, Yes("`enabled_tools`")),
        (Feature::McpDisabledTools, Yes("`disabled_tools`")),
        (Feature::McpTimeouts, Yes("`startup_timeout_sec` (60 s if left out) and `tool_timeout_sec`")),
        (
            Feature::McpStrict,
            Refused(
                "servers are switched off by name only; pass `--cli-arg=--config=mcp_servers.NAME.enabled=false` for each",
            ),
        ),
        (
            Feature::McpMergeRestore,
            Yes("`mcp_servers` of `$CODEX_HOME/config.toml` or `~/.codex/config.toml`, with values in the environment"),
        ),
        (Feature::Messages, Yes("messages always come whole")),
        (Feature::Batch, Yes("it has no such form; its lines are read as they come")),
        (
            Feature::UntrustedProject,
            Yes("the directory and those above it are marked untrusted, AGENTS.md and lists of skills are off"),
        ),
        (Feature::LiteralPrompt, Yes("skills that the prompt names with `$` are off")),
    ],
    events: &[
        ("init", "`thread.started`, before the model is called"),
        ("text", "whole messages"),
        ("thinking", "whole summaries, where the model gives them"),
        ("tool_use", "when the call starts; web searches when they are over"),
        ("tool_result", "in order of completion; a patch that is refused gives none"),
        ("plan", "`todo_list`, where the tool is on"),
        ("warning", "reconnects, notices, MCP servers that failed (from its log)"),
    ],
    failures: super::failure::FAILURES,
};
