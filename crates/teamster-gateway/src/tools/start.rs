//! Starts the server of the tools.

use std::sync::Arc;

use super::AgentTools;
use super::server::server;
use crate::engine::Gateway;
use crate::error::GatewayError;

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
            let served = server(gateway.downgrade(), self.sessions.clone()).serve().await?;
            // Another call may have been first; then its server is used.
            _ = self.served.set(Arc::new(served));
        }
        Ok(())
    }
}
