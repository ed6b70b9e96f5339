//! What Gemini CLI 0.61.0 can do, and by which means.

use crate::agent::{Capabilities, EffortLevels, Feature, OwnKeys, Support};
use Support::{Ignored, Refused, Yes};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    program: "gemini",
    tested_version: "0.61.0",
    package: "@google/gemini-cli",
    credential_variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"],
    own_keys: &[OwnKeys::Always(&[
        "GEMINI_API_KEY",
        "GEMINI_CLI_CUSTOM_HEADERS",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_ACCESS_TOKEN",
    ])],
    home_variables: &["GEMINI_CLI_HOME"],
    effort_levels: EffortLevels::Listed,
    credential_files: &[".gemini/oauth_creds.json"],
    configured_keys: None,
    features: &[
        (Feature::Model, Yes("`--model`; only the vendor validates names")),
        (Feature::Effort, Ignored("there is no such option: the settings define it for each model")),
        (
            Feature::SystemPrompt,
            Yes("GEMINI_SYSTEM_MD, a private file; `${AvailableTools}` and similar variables are replaced"),
        ),
        (
            Feature::AppendSystemPrompt,
            Yes(
                "after the user's own GEMINI.md, in a shadow home; an invisible character before `@path` prevents an import",
            ),
        ),
        (Feature::Attachments, Refused("files reach the model only as `@path` in the prompt; name them there")),
        (Feature::Schema, Refused("there is no structured output, so the schema could not be enforced")),
        (
            Feature::Resume,
            Yes("`--resume` with the session's id, in its own directory; an answer from another session is an error"),
        ),
        (Feature::Fork, Refused("a fork needs the path of the session's file, which only the CLI knows")),
        (
            Feature::Continue,
            Yes("the newest session of exactly this directory, found in the store and passed by its id"),
        ),
        (
            Feature::ReadOnly,
            Yes("a private policy that allows only the reading tools; it replaces the user's policies"),
        ),
        (
            Feature::Ask,
            Yes("mode `default`, without the tools that need permission; plan mode cannot be entered or left"),
        ),
        (Feature::Edit, Yes("mode `default` with a private policy that allows the edit tools")),
        (
            Feature::Full,
            Yes(
                "`--approval-mode=yolo`; in an untrusted project, a private policy that allows everything; its file tools stay in the project",
            ),
        ),
        (Feature::AllowTools, Yes("rules of a private policy: `NAME`, `mcp__SERVER`, `run_shell_command(git diff)`")),
        (Feature::DenyTools, Yes("rules of a private policy, which take precedence over every mode")),
        (
            Feature::MaxTurns,
            Yes("`model.maxSessionTurns` in the settings of a shadow home; counts model calls of this run"),
        ),
        (Feature::MaxBudget, Refused("the CLI does not report cost")),
        (Feature::MaxSessionBudget, Refused("the CLI does not report cost")),
        (Feature::MaxTokens, Refused("the CLI reports tokens only after the run")),
        (Feature::MaxSessionTokens, Refused("its sessions do not report tokens")),
        (Feature::AddDirs, Yes("`--include-directories`")),
        (
            Feature::McpServers,
            Yes("`mcpServers` in the settings of a shadow home; the user's own servers stay available"),
        ),
        (Feature::McpSse, Yes("type `sse`")),
        (Feature::McpRequired, Yes("its debug log on standard error, before the model is called")),
        (Feature::McpEnabledTools, Yes("`includeTools`")),
        (Feature::McpDisabledTools, Yes("`excludeTools`")),
        (Feature::McpTimeouts, Yes("`timeout`, one for a server's start and its calls")),
        (Feature::McpStrict, Yes("`--allowed-mcp-server-names`")),
        (
            Feature::McpMergeRestore,
            Yes("`mcpServers` of `.gemini/settings.json` in the working directory, with values in the environment"),
        ),
        (Feature::Messages, Yes("deltas, joined")),
        (Feature::Batch, Yes("`--output-format=json`; its text is the last message alone")),
        (
            Feature::UntrustedProject,
            Yes(
                "GEMINI_CLI_TRUST_WORKSPACE=false with folder trust off; GEMINI.md is not read either, and MCP servers are refused",
            ),
        ),
        (
            Feature::LiteralPrompt,
            Yes(
                "a prompt with `/` or `@` is passed as the text of a private command; with `@{`, `!{` or `{{args}}` it is refused",
            ),
        ),
        (Feature::BackgroundTasks, Refused("it starts no turn by itself")),
    ],
    events: &[
        ("init", "`init`, after MCP servers and extensions have loaded; `model` as requested"),
        ("text", "deltas; messages are numbered, and a tool result starts a new one"),
        ("retract", "when the CLI gives up a message after several attempts"),
        ("tool_use", "when the call is complete, before it runs"),
        ("tool_result", "all results of a turn together, when the slowest call has ended"),
        ("plan", "calls of `write_todos`"),
        ("rate_limit", "with the failure, if the vendor reported how long to wait"),
        ("warning", "loops, failed MCP servers"),
    ],
    failures: super::failure::FAILURES,
};
