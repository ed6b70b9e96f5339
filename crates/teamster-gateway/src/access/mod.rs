//! Tokens, scopes and the audit log.

use teamster_store::TokenId;

use crate::error::GatewayError;

/// What a token permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Read conversations and events.
    Read,
    /// Send messages, and abort and retry turns.
    Send,
    /// Answer permission requests.
    Approve,
    /// Everything, also tokens and the audit log.
    Admin,
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The token. `None` is a program inside the gateway.
    pub token: Option<TokenId>,
    /// The owner of the token. It is the author of its messages.
    pub owner: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
}

impl Identity {
    /// Checks that the identity has a scope. `Admin` includes all others.
    ///
    /// # Errors
    /// It does not have the scope.
    pub fn require(&self, scope: Scope) -> Result<(), GatewayError> {
        if self.scopes.iter().any(|has| *has == scope || *has == Scope::Admin) {
            return Ok(());
        }
        let reason = format!("the token does not have the scope {scope:?}").to_lowercase();
        Err(GatewayError::Forbidden { reason })
    }
}
