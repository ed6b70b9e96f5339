//! The MCP tools that the gateway offers to agents.

use teamster::RunRequest;
use teamster_store::{ChatAddress, ConversationId, TurnId};

/// The turn that may use the tools.
#[derive(Clone, Debug)]
pub struct ToolTurn {
    /// The conversation.
    pub conversation: ConversationId,
    /// The turn.
    pub turn: TurnId,
    /// Its address.
    pub address: ChatAddress,
    /// Who wrote its message.
    pub author: String,
}

/// Serves the tools to the agents of this process.
#[derive(Debug, Default)]
pub struct AgentTools {}

/// The tools of one session. Its token is valid only between [`begin_turn`](Self::begin_turn) and [`end_turn`](Self::end_turn).
#[derive(Debug, Default)]
pub struct SessionTools {}

impl AgentTools {
    /// Adds the tools to the request of a session.
    pub fn offer(&self, _conversation: ConversationId, _request: &mut RunRequest) -> SessionTools {
        SessionTools {}
    }
}

impl SessionTools {
    /// Makes the token valid for a turn.
    pub fn begin_turn(&self, _turn: ToolTurn) {}

    /// Makes the token invalid.
    pub fn end_turn(&self) {}
}
