//! The capabilities of an unknown agent, which supports only ACP.

use crate::agent::{Capabilities, EffortLevels, Feature, Support};
use Support::{Ignored, Refused, Yes};

pub(super) const CAPABILITIES: Capabilities = Capabilities {
    program: "",
    tested_version: "",
    package: "",
    credential_variables: &[],
    own_keys: &[],
    home_variables: &[],
    effort_levels: EffortLevels::Listed,
    credential_files: &[],
    configured_keys: None,
    features: &[
        (
            Feature::Model,
            Yes("the session's option of that category, or `session/set_model`; refused if it has neither"),
        ),
        (Feature::Effort, Yes("the session's option of the category `thought_level`; refused if there is none")),
        (Feature::SystemPrompt, Refused("the protocol has no such field")),
        (Feature::AppendSystemPrompt, Refused("the protocol has no such field")),
        (Feature::Attachments, Yes("content blocks: text; images and PDF if the agent accepts them")),
        (Feature::Schema, Refused("the protocol has no such field, so the schema could not be enforced")),
        (
            Feature::Resume,
            Yes("`session/resume`, else `session/load`, whose replay is not emitted; refused if it has neither"),
        ),
        (Feature::Fork, Yes("`session/fork`; refused if it has none")),
        (Feature::Continue, Refused("the protocol does not identify the newest session; resume one by its id")),
        (Feature::ReadOnly, Yes("a read-only mode of the agent; refused if none is known")),
        (
            Feature::Ask,
            Yes(
                "permission requests go to the caller, and are denied in a run; an agent that starts a command or an edit \
                 without a request is stopped",
            ),
        ),
        (Feature::Edit, Yes("calls of the kind `edit` are permitted; other requests go to the caller")),
        (Feature::Full, Yes("all requests are permitted")),
        (Feature::AllowTools, Refused("the protocol has no rules for tools")),
        (Feature::DenyTools, Refused("the protocol has no rules for tools")),
        (Feature::MaxTurns, Refused("the protocol has no such field")),
        (Feature::MaxBudget, Refused("the protocol does not report cost")),
        (Feature::MaxSessionBudget, Refused("the protocol does not report cost")),
        (Feature::MaxTokens, Refused("agents may omit tokens, and report them only after a turn")),
        (Feature::MaxSessionTokens, Refused("agents may omit tokens")),
        (Feature::AddDirs, Refused("the protocol has no standard field for it")),
        (Feature::McpServers, Yes("`mcpServers` of the session; the user's own servers stay available")),
        (Feature::McpSse, Yes("type `sse`; refused if the agent does not support it")),
        (Feature::McpRequired, Refused("the protocol does not report the state of servers")),
        (Feature::McpEnabledTools, Refused("the protocol has no such field")),
        (Feature::McpDisabledTools, Refused("the protocol has no such field")),
        (Feature::McpTimeouts, Ignored("the protocol has no such field")),
        (Feature::McpStrict, Refused("the protocol has no such field; the user's own servers stay available")),
        (Feature::McpMergeRestore, Refused("not needed: `auto` changes no file")),
        (Feature::Messages, Yes("deltas, joined")),
        (Feature::Batch, Refused("it has no such interface")),
        (Feature::UntrustedProject, Refused("it is unknown what the agent reads there")),
        (Feature::LiteralPrompt, Refused("it is unknown how the agent interprets a prompt")),
        (Feature::BackgroundTasks, Refused("in this protocol, only the client starts turns")),
    ],
    events: &[
        ("init", "the reply that opens the session"),
        ("text", "`agent_message_chunk`; messages without an id are numbered, and a tool call starts a new one"),
        ("thinking", "`agent_thought_chunk`"),
        (
            "tool_use",
            "when the call starts or needs permission; with the displayed content, if the agent reports no arguments",
        ),
        ("tool_result", "`completed` or `failed`; at once after a denial"),
        ("permission_request", "`session/request_permission`, in sessions"),
        ("question", "`elicitation/create` with a form, in sessions"),
        ("plan", "`plan`"),
        ("warning", "text between turns; content that is not text; a mode that the agent selected by itself"),
    ],
    failures: super::failure::FAILURES,
};
