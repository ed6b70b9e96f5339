//! The MCP tools that the gateway offers to agents.
//!
//! One server on the loopback address serves all sessions of the process. Each session has a token of its own, which is valid
//! while a turn runs. A call gets its conversation and its author from the token, never from its arguments.
//!
//! | module | contents |
//! |---|---|
//! | `config` | the configuration: [`ToolsConfig`] |
//! | `turn` | the running turn of a session, and the identity of what it does |
//! | `server`, `start` | the list of tools, and the start of their server |
//! | `call` | the context of a tool call |
//! | `send`, `files`, `plans` | the tools |

mod call;
mod config;
mod files;
mod plans;
mod send;
mod server;
mod start;
mod turn;

use std::sync::{Arc, OnceLock};

use teamster::RunRequest;
use teamster::tools::ServedTools;
use teamster_store::ConversationId;
use uuid::Uuid;

pub use self::config::ToolsConfig;
pub use self::start::start;
pub use self::turn::ToolTurn;
use self::turn::{ToolSession, ToolSessions};

/// Serves the tools to the agents of this process.
#[derive(Debug, Default)]
pub struct AgentTools {
    served: OnceLock<Arc<ServedTools>>,
    sessions: ToolSessions,
}

/// The tools of one session. Its token is valid only between [`begin_turn`](Self::begin_turn) and [`end_turn`](Self::end_turn),
/// and is removed when this is dropped.
#[derive(Debug, Default)]
pub struct SessionTools {
    offered: Option<Offered>,
}

#[derive(Debug)]
struct Offered {
    label: String,
    session: Arc<ToolSession>,
    sessions: ToolSessions,
    served: Arc<ServedTools>,
}

impl AgentTools {
    /// Adds the tools to the request of a session, and permits them there. Adds nothing before the server was started.
    pub fn offer(&self, conversation: ConversationId, request: &mut RunRequest) -> SessionTools {
        let Some(served) = self.served.get() else { return SessionTools::default() };
        let label = Uuid::now_v7().to_string();
        served.offer_labeled(&label, request);
        let session = Arc::new(ToolSession::new(conversation));
        self.sessions.add(label.clone(), &session);
        let (sessions, served) = (self.sessions.clone(), Arc::clone(served));
        SessionTools { offered: Some(Offered { label, session, sessions, served }) }
    }
}

impl SessionTools {
    /// Makes the token valid for a turn. An earlier turn ends.
    pub fn begin_turn(&self, turn: ToolTurn) {
        if let Some(offered) = &self.offered {
            offered.session.begin(turn);
        }
    }

    /// Makes the token invalid, and ends the running calls. Returns whether a tool had an effect, or may have had one.
    pub fn end_turn(&self) -> bool {
        self.offered.as_ref().is_some_and(|offered| offered.session.end())
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.session.end();
        self.sessions.remove(&self.label);
        self.served.withdraw(&self.label);
    }
}

#[cfg(test)]
mod tests;
