//! The capabilities of Codex 0.169.0: by its app-server, and by `exec` where that differs.

use serde::Deserialize;
use std::collections::BTreeMap;

use crate::agent::{Capabilities, ConfiguredKeys, EffortLevels, Feature, OwnKeys, Support};
use Support::{Refused, Yes};
use teamster_types::text::without_bom;

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    program: "codex",
    tested_version: "0.169.0",
    package: "@openai/codex",
    // OPENAI_API_KEY alone is not used.
    credential_variables: &["CODEX_API_KEY"],
    // OPENAI_API_KEY is for providers that the user configures.
    own_keys: &[OwnKeys::Always(&["CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_API_KEY"])],
    home_variables: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
    effort_levels: EffortLevels::Only(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    credential_files: &[".codex/auth.json"],
    configured_keys: Some(ConfiguredKeys {
        home_variable: "CODEX_HOME",
        default_home: ".codex",
        file: "config.toml",
        read: provider_key,
    }),
    features: &[
        (Feature::Model, Yes("`model` of the thread; a resumed thread keeps its own; `exec`: `--model`")),
        (
            Feature::Effort,
            Yes(
                "`model_reasoning_effort`: none to max; other levels are refused, the vendor checks those of the model",
            ),
        ),
        (Feature::SystemPrompt, Yes("`baseInstructions`; `exec`: `model_instructions_file`, a private file")),
        (
            Feature::AppendSystemPrompt,
            Yes(
                "with the system prompt; else `developerInstructions`, and in a resumed session before the prompt; `exec`: in the arguments",
            ),
        ),
        (Feature::Attachments, Yes("images as data (`exec`: as private files); texts before the prompt; no PDF")),
        (Feature::Schema, Yes("`outputSchema`, which the vendor enforces; an answer that is not JSON is an error")),
        (
            Feature::Resume,
            Yes(
                "`thread/resume`, in the session's own directory, ids only; an answer from another session is an error",
            ),
        ),
        (Feature::Fork, Yes("`thread/fork`, in the session's own directory, ids only")),
        (
            Feature::Continue,
            Yes("the newest session of exactly this directory, found in the store and passed by its id"),
        ),
        (
            Feature::ReadOnly,
            Yes(
                "a permission profile that no rule of the user can override; commands run in its sandbox; `exec`: `--ignore-rules`",
            ),
        ),
        (
            Feature::Ask,
            Yes(
                "in a run like read-only; a session asks before an action outside the sandbox, except commands that a rule of the user allows",
            ),
        ),
        (
            Feature::Edit,
            Yes(
                "sandbox `workspace-write`: edits and commands in the project and in temporary directories, no network; a session asks for more",
            ),
        ),
        (Feature::Full, Yes("`danger-full-access`, without requests; it rejects `rm -f` and similar commands anyway")),
        (
            Feature::AllowTools,
            Yes(
                "tools of the run's own MCP servers: `mcp__SERVER`, `mcp__SERVER__TOOL`; in a session also what it asks for: `command_execution(git push:*)`, `file_change`, tools of the user's servers",
            ),
        ),
        (
            Feature::DenyTools,
            Yes(
                "tools of the run's own MCP servers, which the model then does not receive; others are refused: it does not ask before actions in its sandbox, so they could not be enforced",
            ),
        ),
        (
            Feature::MaxTurns,
            Yes(
                "Teamster counts model calls, by the reports of tokens after each, and interrupts a turn that continues; ignored with a warning in `exec`",
            ),
        ),
        (Feature::MaxBudget, Refused("it does not report cost; use `max_tokens`")),
        (Feature::MaxSessionBudget, Refused("it does not report cost; use `max_session_tokens`")),
        (Feature::MaxTokens, Yes("an interrupt after the model call that exceeds it; refused in `exec`")),
        (Feature::MaxSessionTokens, Yes("an interrupt, and no further turns; in `exec` no further turns")),
        (Feature::AddDirs, Yes("writable in mode `edit`; `exec`: `--add-dir`")),
        (
            Feature::McpServers,
            Yes("`mcp_servers` of the thread, with values in the environment; the user's own servers stay available"),
        ),
        (Feature::McpSse, Refused("it supports streamable HTTP only: use type http")),
        (Feature::McpRequired, Yes("`required`, before the model is called")),
        (Feature::McpEnabledTools, Yes("`enabled_tools`")),
        (Feature::McpDisabledTools, Yes("`disabled_tools`")),
        (Feature::McpTimeouts, Yes("`startup_timeout_sec` (default 60 s) and `tool_timeout_sec`")),
        (
            Feature::McpStrict,
            Refused(
                "servers are disabled by name only; pass `--config=mcp_servers.NAME.enabled=false` in `cli_args` for each",
            ),
        ),
        (
            Feature::McpMergeRestore,
            Yes("`mcp_servers` of `$CODEX_HOME/config.toml` or `~/.codex/config.toml`, with values in the environment"),
        ),
        (Feature::Messages, Yes("deltas are not emitted; `exec`: messages are always whole")),
        (Feature::Batch, Yes("`exec`, with its lines read as they arrive")),
        (
            Feature::UntrustedProject,
            Yes("the directory and its parents are marked untrusted; AGENTS.md and lists of skills are disabled"),
        ),
        (
            Feature::LiteralPrompt,
            Yes(
                "each skill that the prompt names with `$` is replaced by one that does not exist; `exec`: it is disabled",
            ),
        ),
        (
            Feature::BackgroundTasks,
            Refused("it starts no turn by itself; commands that it leaves running live until the session ends"),
        ),
    ],
    events: &[
        ("init", "when the thread has opened, before the model is called"),
        ("text", "deltas; `exec`: whole messages"),
        ("thinking", "deltas of summaries, if the model provides them; `exec`: whole"),
        ("retract", "when the connection broke within a message; not in `exec`"),
        ("tool_use", "when the call starts; web searches when they end"),
        ("tool_result", "in order of completion; none for a patch that is rejected without a request"),
        ("permission_request", "for commands, patches, permissions and tools of MCP servers, in sessions"),
        ("question", "from the agent and from MCP servers, in sessions"),
        ("plan", "if the tool is enabled (`tools.update_plan`)"),
        ("usage", "after each model call, for this turn alone; not in `exec`"),
        ("rate_limit", "when a limit of the account is near or reached; not in `exec`"),
        ("warning", "reconnects, notices, failed MCP servers, shortened conversations"),
    ],
    failures: super::failure::FAILURES,
};

/// Returns the name of the chosen provider, `model_provider`.
pub(super) fn chosen_provider(config: &str) -> Option<String> {
    toml::from_str::<toml::Table>(without_bom(config)).ok()?.get("model_provider")?.as_str().map(str::to_owned)
}

/// Returns the variable that holds the key of the chosen provider: `env_key` of `model_providers.NAME`, where `model_provider`
/// is NAME (`config.toml` of 0.169.0).
pub(super) fn provider_key(config: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Config {
        model_provider: Option<String>,
        #[serde(default)]
        model_providers: BTreeMap<String, Provider>,
    }
    #[derive(Deserialize)]
    struct Provider {
        env_key: Option<String>,
    }
    let Ok(Config { model_provider: Some(name), model_providers }) = toml::from_str(without_bom(config)) else {
        return Vec::new();
    };
    model_providers.get(&name).and_then(|provider| provider.env_key.clone()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_the_chosen_provider_is_found() {
        let config = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nenv_key = 'MY_KEY'\n\
                      [model_providers.other]\nenv_key = 'OTHER'\n";
        assert_eq!(provider_key(config), ["MY_KEY"]);
        for other in ["", "model_provider = 'mine'", "model_provider = 1", "no toml ["] {
            assert!(provider_key(other).is_empty(), "{other}");
        }
    }
}
