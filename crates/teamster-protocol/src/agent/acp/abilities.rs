//! What an agent can do of which nothing is known but that it speaks ACP.

use crate::agent::{Abilities, Feature, Support};
use Support::{Ignored, Refused, Yes};

pub(super) const ABILITIES: Abilities = Abilities {
    program: "",
    tested_version: "",
    package: "",
    credential_variables: &[],
    own_keys: &[],
    home_variables: &[],
    credential_files: &[],
    features: &[
        (
            Feature::Model,
            Yes("`session/set_model`, or the session's option of that category; refused where it has neither"),
        ),
        (Feature::Effort, Yes("the session's option of the category `thought_level`; refused where there is none")),
        (Feature::SystemPrompt, Refused("the protocol has no such field")),
        (Feature::AppendSystemPrompt, Refused("the protocol has no such field")),
        (Feature::Attachments, Yes("content blocks: text; images and PDF where the agent takes them")),
        (Feature::Schema, Refused("the protocol has no such field: nothing would enforce the schema")),
        (
            Feature::Resume,
            Yes("`session/resume`, else `session/load`, whose replay is not told; refused where it has neither"),
        ),
        (Feature::Fork, Yes("`session/fork`; refused where it has none")),
        (Feature::Continue, Refused("the protocol cannot tell which session is the newest: resume one by its id")),
        (Feature::ReadOnly, Yes("a mode of the agent's that only reads; refused where none is known")),
        (
            Feature::Ask,
            Yes("what the agent asks leave for is asked, in a run denied; what it does not ask for is its own matter"),
        ),
        (Feature::Edit, Yes("leave for calls of kind `edit`; other things are asked for")),
        (Feature::Full, Yes("leave for all that it asks for")),
        (Feature::AllowTools, Refused("the protocol has no rules for tools")),
        (Feature::DenyTools, Refused("the protocol has no rules for tools")),
        (Feature::MaxTurns, Refused("the protocol has no such field")),
        (Feature::MaxBudget, Refused("the protocol has no such field")),
        (Feature::AddDirs, Refused("the protocol leaves it to each agent")),
        (Feature::McpServers, Yes("`mcpServers` of the session; the user's own servers stay")),
        (Feature::McpSse, Yes("type `sse`; refused where the agent cannot reach them")),
        (Feature::McpRequired, Refused("the protocol does not tell how servers fare")),
        (Feature::McpEnabledTools, Refused("the protocol has no such field")),
        (Feature::McpDisabledTools, Refused("the protocol has no such field")),
        (Feature::McpTimeouts, Ignored("the protocol has no such field")),
        (Feature::McpStrict, Refused("the protocol has no such field: the user's own servers stay")),
        (Feature::McpMergeRestore, Refused("`auto` touches no file; leave the option out")),
        (Feature::Messages, Yes("deltas, joined")),
        (Feature::Batch, Refused("there is no such form")),
        (Feature::UntrustedProject, Refused("nobody knows what the agent reads there")),
        (Feature::LiteralPrompt, Refused("nobody knows what the agent makes of a prompt")),
    ],
    events: &[
        ("init", "the answer that opens the session"),
        ("text", "`agent_message_chunk`; messages without an id are numbered, a new one begins after a call of a tool"),
        ("thinking", "`agent_thought_chunk`"),
        (
            "tool_use",
            "when the call begins, or leave is asked for it; with what the agent shows, where it tells no arguments",
        ),
        ("tool_result", "`completed` or `failed`; at once where leave was denied"),
        ("permission_request", "`session/request_permission`, in sessions"),
        ("plan", "`plan`"),
        ("warning", "what is no text, a mode that the agent went into by itself"),
    ],
    failures: super::failure::FAILURES,
};
