//! What a client waits for while its agent is silent, and what belongs to no turn.

use std::time::Duration;

/// A wait for silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// After the response to a prompt, before the turn ends. Some agents write the last chunk at the same moment.
    TurnEnd,
    /// After `session/load`, before the first prompt.
    History,
    /// After a turn, before the next prompt. Some agents write text of a turn up to a second after its end.
    NextPrompt,
    /// After a part of the old conversation that was replayed after the prompt.
    ReplayEnd,
    /// After a call has started that needs permission. Some agents report the start before they request it (OpenCode 1.18.33).
    Request,
}

impl Wait {
    pub(super) const fn duration(self) -> Duration {
        Duration::from_millis(match self {
            Self::TurnEnd | Self::ReplayEnd => 100,
            Self::History => 300,
            Self::NextPrompt => 900,
            Self::Request => 200,
        })
    }
}

/// Whether the next prompt waits until the agent was quiet for a longer time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pause {
    /// It is not known whether the agent writes text after its turns. The second prompt waits.
    #[default]
    Once,
    /// The agent was quiet after its first turn.
    Never,
    /// The agent has written text between turns.
    Always,
}

/// What the client waits for, and what belongs to no turn.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    pub(super) wait: Option<Wait>,
    pub(super) pause: Pause,
    /// Text between turns that was not reported yet.
    pub(super) late: String,
    /// The bytes that were dropped from it.
    pub(super) missing: usize,
    /// The number of replayed updates that were skipped.
    pub(super) skipped: u64,
    pub(super) has_sent_prompt: bool,
    /// The prompt of the first turn after `session/load`, while that turn runs.
    pub(super) first_prompt: Option<String>,
}

/// What an update belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Turn,
    /// The replayed history of an old session.
    History,
    /// No turn.
    Late,
    /// Another session.
    Other,
}
