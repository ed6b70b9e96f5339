//! Shows in a chat how a permission request was closed.

use teamster_store::PermissionId;

use super::deliveries::{Recipient, prompt_closed};
use crate::engine::Gateway;
use crate::error::GatewayError;

impl Gateway {
    /// Shows in the chat of a closed permission request how it was closed. A failure has no consequence: a later press of a
    /// button is refused, and the channel removes the buttons then.
    pub(crate) async fn show_closed_prompt(&self, id: PermissionId) {
        if let Err(error) = enqueue(self, id).await {
            tracing::warn!(%error, request = %id, "a chat does not show that a permission request is closed");
        }
    }
}

async fn enqueue(gateway: &Gateway, id: PermissionId) -> Result<(), GatewayError> {
    let (store, now) = (gateway.store(), gateway.now());
    let Some(permission) = store.permission(id).await? else { return Ok(()) };
    let Some(closing) = permission.closing else { return Ok(()) };
    let Some(conversation) = store.conversation(permission.conversation, now).await? else { return Ok(()) };
    let turn = Some((permission.turn, permission.epoch));
    let to = Recipient { conversation: conversation.id, address: &conversation.address, turn, now };
    let deliveries = prompt_closed(&to, id, closing.outcome, closing.by.as_deref())?;
    if !deliveries.is_empty() {
        store.enqueue(deliveries, now).await?;
        gateway.announce_growth(conversation.id);
    }
    Ok(())
}
