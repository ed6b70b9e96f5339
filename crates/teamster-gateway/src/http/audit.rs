//! Writes the audit log.

use teamster_store::{Json, NewAuditEntry};

use super::extract::Authenticated;
use crate::access::Identity;
use crate::engine::Gateway;

/// Records a change that was made. `action` is a name such as `conversation.delete`, `subject` an id.
///
/// A failure is in the operator's log: the change is durable already, and its caller must not repeat it.
pub async fn audit(gateway: &Gateway, identity: &Identity, action: &str, subject: &str) {
    record(gateway, identity, String::new(), action, subject).await;
}

/// Records a change with the address of its caller.
pub(super) async fn audit_from(gateway: &Gateway, caller: &Authenticated, action: &str, subject: &str) {
    record(gateway, &caller.identity, caller.origin.clone(), action, subject).await;
}

async fn record(gateway: &Gateway, identity: &Identity, origin: String, action: &str, subject: &str) {
    let actor = match identity.token {
        Some(id) => format!("token:{id}"),
        None => format!("owner:{}", identity.owner),
    };
    let entry =
        NewAuditEntry { actor, action: action.to_owned(), subject: subject.to_owned(), origin, details: Json::empty() };
    if let Err(error) = gateway.store().record_audit(entry, gateway.now()).await {
        tracing::error!(%error, action, subject, "the audit log cannot be written");
    }
}
