//! Shows in a chat how a permission request was closed.

use teamster_store::{NewDelivery, Permission, PermissionOutcome};

use super::deliveries::{Recipient, prompt_closed};
use crate::engine::Gateway;
use crate::error::GatewayError;

impl Gateway {
    /// Returns what the chat of a permission request shows when it is closed. Add it in the transaction that closes the request,
    /// so that the chat shows the outcome once, even after a crash.
    pub(crate) async fn closed_prompt(
        &self,
        permission: &Permission,
        outcome: PermissionOutcome,
        by: Option<&str>,
    ) -> Result<Vec<NewDelivery>, GatewayError> {
        let now = self.now();
        let Some(conversation) = self.store().conversation(permission.conversation, now).await? else {
            return Ok(Vec::new());
        };
        let turn = Some((permission.turn, permission.epoch));
        let to = Recipient { conversation: conversation.id, address: &conversation.address, turn, now };
        prompt_closed(&to, permission.id, outcome, by)
    }
}
