//! The modes of known agents, and which of them suit a permission mode.
//!
//! The ids are those of Gemini CLI 0.61.0, claude-agent-acp 0.101.0, codex-acp 2.6.0, OpenCode 1.18.33, Qwen Code 0.24.4, Kilo
//! 7.7.9, Kimi Code 2.1.0, Copilot CLI 1.0.102, Droid 0.215.0, Mistral Vibe 3.0.3, Cline 3.0.65, `OpenHands` 1.16.0 and Goose.

use teamster_types::request::PermissionMode;

/// What an agent does in a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModeClass {
    /// It plans, and changes nothing.
    Plans,
    /// It changes nothing without permission. It may run commands in a sandbox that changes nothing.
    ReadOnly,
    /// It requests permission for changes and commands.
    Asks,
    /// It edits files without permission.
    Edits,
    /// It decides each call by itself. It may permit any call, and deny one that mode `full` permits. This is the first mode of
    /// claude-agent-acp 0.101.0, which decides by model calls.
    Decides,
    /// It requests no permission.
    Full,
}

use ModeClass::{Asks, Decides, Edits, Full, Plans, ReadOnly};

/// The classes of modes, by their [normalized](normalized) ids.
const MODES: &[(&str, ModeClass)] = &[
    ("plan", Plans),
    ("spec", Plans),
    ("readonly", ReadOnly),
    ("default", Asks),
    ("ask", Asks),
    ("manual", Asks),
    ("normal", Asks),
    ("act", Asks),
    ("approve", Asks),
    ("alwaysask", Asks),
    // OpenCode and Kilo: by the rules of their configuration.
    ("build", Asks),
    ("code", Asks),
    ("acceptedits", Edits),
    ("autoedit", Edits),
    ("auto", Decides),
    // codex-acp: commands run in a sandbox without a request, and the model decides when it asks.
    ("agent", Decides),
    ("workspacewrite", Decides),
    ("autolow", Decides),
    ("automedium", Decides),
    ("autohigh", Decides),
    ("smartapprove", Decides),
    ("llmapprove", Decides),
    ("autoapprove", Full),
    ("alwaysapprove", Full),
    ("bypasspermissions", Full),
    ("fullaccess", Full),
    ("agentfullaccess", Full),
    ("autopilot", Full),
    ("yolo", Full),
];

/// The ids of Copilot are addresses of this document, with a fragment. There, `agent` requests permission.
const STANDARD_AGENT: &str = "session-modes#agent";

/// Returns the class of a mode; `None` if the mode is not known.
pub(super) fn class_of(id: &str) -> Option<ModeClass> {
    if id.ends_with(STANDARD_AGENT) {
        return Some(Asks);
    }
    let id = normalized(id);
    MODES.iter().find(|(known, _)| *known == id).map(|(_, class)| *class)
}

/// Returns an id without its address, in lower case and without separators: `accept-edits` and `acceptEdits` are one mode.
fn normalized(id: &str) -> String {
    let id = id.rsplit('#').next().unwrap_or(id);
    id.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Returns the classes that suit a permission mode, the best first. A stricter class suits, because the permission mode answers the
/// agent's requests. An agent that only plans does no work, so such a class is not selected for another mode.
pub(super) fn suitable(wanted: PermissionMode) -> &'static [ModeClass] {
    match wanted {
        PermissionMode::ReadOnly => &[Plans, ReadOnly],
        PermissionMode::Ask => &[Asks, ReadOnly],
        PermissionMode::Edit => &[Asks, Edits, ReadOnly],
        PermissionMode::Full => &[Asks, Edits, Full],
    }
}

/// Returns whether an agent in a mode of this class asks at least as often as the permission mode requires.
pub(super) fn is_as_strict(class: ModeClass, wanted: PermissionMode) -> bool {
    match class {
        Plans | ReadOnly => true,
        Asks => wanted != PermissionMode::ReadOnly,
        Edits => matches!(wanted, PermissionMode::Edit | PermissionMode::Full),
        Decides | Full => wanted == PermissionMode::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_mode_are_known() {
        for (ids, class) in [
            (&["acceptEdits", "accept-edits", "accept_edits", "ACCEPT EDITS"][..], Some(Edits)),
            (&["autoEdit", "auto_edit", "auto-edit"], Some(Edits)),
            (&["read-only", "readOnly", "https://example.org/modes#read-only"], Some(ReadOnly)),
            (&["https://agentclientprotocol.com/protocol/session-modes#agent"], Some(Asks)),
            (&["https://agentclientprotocol.com/protocol/session-modes#plan"], Some(Plans)),
            (&["https://agentclientprotocol.com/protocol/session-modes#autopilot"], Some(Full)),
            (&["agent", "workspace-write"], Some(Decides)),
            (&["agent-full-access"], Some(Full)),
            (&["", "off", "#", "architect", "defaults"], None),
        ] {
            for id in ids {
                assert_eq!(class_of(id), class, "{id}");
            }
        }
    }

    #[test]
    fn the_ids_of_the_table_are_normalized_and_unique() {
        for (at, (id, _)) in MODES.iter().enumerate() {
            assert_eq!(normalized(id), *id);
            assert!(MODES.iter().skip(at + 1).all(|(other, _)| other != id), "{id}");
        }
    }
}
