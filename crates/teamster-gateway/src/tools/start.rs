//! Starts the server of the tools.

use std::sync::Arc;

use super::AgentTools;
use super::server::server;
use crate::engine::Gateway;
use crate::error::GatewayError;

/// Starts the server of the tools, unless the configuration disables them. [`Gateway::start`] calls it. Call it inside
/// a Tokio runtime.
///
/// # Errors
/// The configuration is invalid, or no port is available.
pub async fn start(tools: &AgentTools, gateway: &Gateway) -> Result<(), GatewayError> {
    let config = &gateway.config().tools;
    if let Some(entry) = config.invalid_chat() {
        let problem = format!("tools.other_chats: {entry:?} must be CHANNEL:CHAT or CHANNEL:*");
        return Err(GatewayError::Config(problem));
    }
    if config.enabled && tools.served.get().is_none() {
        let served = server(gateway.downgrade(), tools.sessions.clone()).serve().await?;
        // Another call may have been first; then its server is used.
        _ = tools.served.set(Arc::new(served));
    }
    Ok(())
}
