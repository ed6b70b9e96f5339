//! The MCP tools that the gateway offers to agents.
//!
//! One server on the loopback address serves all sessions of the process. Each session has a token of its own, which is valid
//! while a turn runs. A call gets its conversation and its author from the token, never from its arguments.
//!
//! | module | contents |
//! |---|---|
//! | `config` | the configuration: [`ToolsConfig`] |
//! | `turn` | the running turn of a session, and the identity of what it does |
//! | `server` | the list of tools |
//! | `send`, `files`, `plans` | what the tools do |

mod config;
mod files;
mod plans;
mod send;
mod server;
mod turn;

use std::sync::{Arc, OnceLock};

use teamster::RunRequest;
use teamster::tools::ServedTools;
use teamster_store::ConversationId;
use uuid::Uuid;

pub use self::config::ToolsConfig;
pub use self::turn::ToolTurn;
use self::turn::{ToolSession, ToolSessions};
use crate::engine::Gateway;
use crate::error::GatewayError;

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
    /// Starts the server, unless the configuration disables the tools. Call it inside a Tokio runtime.
    ///
    /// # Errors
    /// The configuration is invalid, or no port is available.
    pub async fn start(&self, gateway: &Gateway) -> Result<(), GatewayError> {
        let config = &gateway.config().tools;
        if let Some(entry) = config.invalid_chat() {
            let problem = format!("tools.other_chats: {entry:?} must be CHANNEL:CHAT or CHANNEL:*");
            return Err(GatewayError::Config(problem));
        }
        if config.enabled && self.served.get().is_none() {
            let served = server::server(gateway.downgrade(), self.sessions.clone()).serve().await?;
            // Another call may have been first; then its server is used.
            _ = self.served.set(Arc::new(served));
        }
        Ok(())
    }

    /// Adds the tools to the request of a session, and permits them there. Adds nothing before [`start`](Self::start).
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

    /// Makes the token invalid, and ends the running calls.
    pub fn end_turn(&self) {
        if let Some(offered) = &self.offered {
            offered.session.end();
        }
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
