//! Appends to the logs of conversations without the lease of a worker.

use async_trait::async_trait;
use teamster_store::{ConversationId, TurnId};

use crate::error::GatewayError;
use crate::event::GatewayEvent;

/// Appends events of the gateway. Parts that the engine uses write to logs through it.
#[async_trait]
pub trait EventLog: std::fmt::Debug + Send + Sync {
    /// Appends an event to the log of a conversation.
    async fn append(
        &self,
        conversation: ConversationId,
        turn: Option<TurnId>,
        event: &GatewayEvent,
    ) -> Result<(), GatewayError>;
}
