//! What Gemini CLI 0.61.0 can do, and by which means.

use crate::agent::{Abilities, Feature, OwnKeys, Support};
use Support::{Ignored, Refused, Yes};

pub(super) const ABILITIES: Abilities = Abilities {
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
    credential_files: &[".gemini/oauth_creds.json"],
    features: &[
        (Feature::Model, Yes("`--model`; names are not checked before the vendor sees them")),
        (Feature::Effort, Ignored("there is no such option: how a model thinks is set for each model in the settings")),
        (
            Feature::SystemPrompt,
            Yes("GEMINI_SYSTEM_MD, a private file; `${AvailableTools}` and the like are filled in"),
        ),
        (
            Feature::AppendSystemPrompt,
            Yes("after the user's own GEMINI.md, in a stand-in; an `@path` that would import a file is refused"),
        ),
        (Feature::Attachments, Refused("files reach the model only as `@path` inside the prompt; name them there")),
        (Feature::Schema, Refused("there is no structured output: nothing would enforce the schema")),
        (
            Feature::Resume,
            Yes("`--resume` with the session's id, from its own directory; another session's answer is an error"),
        ),
        (Feature::Fork, Refused("a session is forked by the path of its file, which only the CLI knows")),
        (Feature::Continue, Yes("`--resume=latest`: the session that began last, not the one that was used last")),
        (
            Feature::ReadOnly,
            Yes("a private policy that allows the reading tools and nothing else; it replaces the user's policies"),
        ),
        (
            Feature::Ask,
            Yes("mode `default`, which offers no tool that it would ask for; no way into plan mode and out"),
        ),
        (Feature::Edit, Yes("mode `default` with a private policy that allows the edit tools")),
        (
            Feature::Full,
            Yes(
                "`--approval-mode=yolo`; where the project is not trusted, a private policy that allows everything; its file tools stay in the project",
            ),
        ),
        (Feature::AllowTools, Yes("rules of a private policy: `NAME`, `mcp__SERVER`, `run_shell_command(git diff)`")),
        (Feature::DenyTools, Yes("rules of a private policy, which win over every mode")),
        (
            Feature::MaxTurns,
            Yes("`model.maxSessionTurns` in the settings of a stand-in; calls of the model in this run"),
        ),
        (Feature::MaxBudget, Refused("the CLI does not know what a run costs")),
        (Feature::MaxSessionBudget, Refused("the CLI does not know what a run costs")),
        (Feature::MaxTokens, Refused("the CLI tells its tokens when a run is over")),
        (Feature::MaxSessionTokens, Refused("its sessions tell no tokens")),
        (Feature::AddDirs, Yes("`--include-directories`")),
        (Feature::McpServers, Yes("`mcpServers` in the settings of a stand-in; the user's own servers stay")),
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
                "GEMINI_CLI_TRUST_WORKSPACE=false with folder trust off; GEMINI.md goes with it, MCP servers are refused",
            ),
        ),
        (
            Feature::LiteralPrompt,
            Yes(
                "a prompt with `/` or `@` goes as a private command's text; with `@{`, `!{` or `{{args}}` it is refused",
            ),
        ),
        (Feature::BackgroundTasks, Refused("it begins no turn by itself")),
    ],
    events: &[
        ("init", "`init`, after MCP servers and extensions have been loaded; `model` as it was asked for"),
        ("text", "deltas; messages are numbered, a new one begins after a tool's result"),
        ("retract", "when the CLI gives a message up after it has said it several times"),
        ("tool_use", "when the call is complete, before it runs"),
        ("tool_result", "all results of a turn together, after the slowest"),
        ("plan", "calls of `write_todos`"),
        ("rate_limit", "with the failure, where the vendor said how long to wait"),
        ("warning", "loops, MCP servers that failed"),
    ],
    failures: super::failure::FAILURES,
};
