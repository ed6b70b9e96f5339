//! What Codex 0.169.0 can do, and by which means: by its app-server, and in `exec` where that differs.

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
        (Feature::Model, Yes("`model` of the thread; a thread that goes on keeps its own; `exec`: `--model`")),
        (Feature::Effort, Yes("`model_reasoning_effort`; unknown levels are the vendor's to refuse")),
        (Feature::SystemPrompt, Yes("`baseInstructions`; `exec`: `model_instructions_file`, a private file")),
        (
            Feature::AppendSystemPrompt,
            Yes(
                "with the system prompt; else `developerInstructions`, and in a resumed session before the prompt; `exec`: in argv",
            ),
        ),
        (Feature::Attachments, Yes("images as data; `exec`: by private file; texts before the prompt; no PDF")),
        (Feature::Schema, Yes("`outputSchema`, which the vendor enforces; an answer that is no JSON is an error")),
        (Feature::Resume, Yes("`thread/resume`, ids only; another session's answer is an error")),
        (Feature::Fork, Yes("`thread/fork`, ids only")),
        (
            Feature::Continue,
            Yes("`thread/list` by the name of the directory, and `thread/resume`; `exec`: `exec resume --last`"),
        ),
        (
            Feature::ReadOnly,
            Yes(
                "a profile of permissions that no rule of the user's lifts; commands run in its sandbox; `exec`: `--ignore-rules`",
            ),
        ),
        (
            Feature::Ask,
            Yes(
                "in a run as read-only; a session asks for what leaves the sandbox, but for commands that a rule of the user's allows",
            ),
        ),
        (
            Feature::Edit,
            Yes(
                "sandbox `workspace-write`: edits and commands in the project and in temporary directories, no network; a session asks for more",
            ),
        ),
        (
            Feature::Full,
            Yes("`danger-full-access`, and nothing is asked for; `rm -f` and the like it refuses all the same"),
        ),
        (
            Feature::AllowTools,
            Yes(
                "tools of the run's own MCP servers: `mcp__SERVER`, `mcp__SERVER__TOOL`; in a session whatever it asks for: `command_execution(git push:*)`, `file_change`, tools of the user's servers",
            ),
        ),
        (
            Feature::DenyTools,
            Yes(
                "tools of the run's own MCP servers, which the model does not get; others are refused: it asks for nothing that its sandbox lets through, so that they would not hold",
            ),
        ),
        (Feature::MaxTurns, Ignored("it counts no turns")),
        (Feature::MaxBudget, Refused("it knows no cost; use `--max-tokens`")),
        (Feature::MaxSessionBudget, Refused("it knows no cost; use `--max-session-tokens`")),
        (Feature::MaxTokens, Yes("an interrupt after the call of the model that passes it; refused in `exec`")),
        (Feature::MaxSessionTokens, Yes("an interrupt, and no further turns; in `exec` no further turns")),
        (Feature::AddDirs, Yes("writable in mode `edit`; `exec`: `--add-dir`")),
        (
            Feature::McpServers,
            Yes("`mcp_servers` of the thread, with values in the environment; the user's own servers stay"),
        ),
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
        (Feature::Messages, Yes("deltas are not told; `exec`: messages always come whole")),
        (Feature::Batch, Yes("`exec`, whose lines are read as they come")),
        (
            Feature::UntrustedProject,
            Yes("the directory and those above it are marked untrusted, AGENTS.md and lists of skills are off"),
        ),
        (
            Feature::LiteralPrompt,
            Yes("each skill that the prompt names with `$` is named as one that does not exist; `exec`: it is off"),
        ),
        (
            Feature::BackgroundTasks,
            Refused("it begins no turn by itself; commands that it leaves running live until the session ends"),
        ),
    ],
    events: &[
        ("init", "when the thread is open, before the model is called"),
        ("text", "deltas; `exec`: whole messages"),
        ("thinking", "deltas of summaries, where the model gives them; `exec`: whole"),
        ("retract", "when the connection broke amid a message; not in `exec`"),
        ("tool_use", "when the call starts; web searches when they are over"),
        ("tool_result", "in order of completion; a patch that is refused without being asked for gives none"),
        ("permission_request", "commands, patches, permissions and tools of MCP servers, in sessions"),
        ("question", "of the agent and of MCP servers, in sessions"),
        ("plan", "where the tool is on (`tools.update_plan`)"),
        ("usage", "after each call of the model, of the turn alone; not in `exec`"),
        ("rate_limit", "when a limit of the account is near or reached; not in `exec`"),
        ("warning", "reconnects, notices, MCP servers that failed, shortened conversations"),
    ],
    failures: super::failure::FAILURES,
};
