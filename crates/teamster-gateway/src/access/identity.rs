//! Who makes a request, and what it may do.

use serde::{Deserialize, Serialize};
use teamster_store::TokenId;
use utoipa::ToSchema;

use super::limits::LimitKey;
use crate::error::GatewayError;

/// What a token permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
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

impl Scope {
    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Send => "send",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }
}

/// Who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The token. `None` is a program inside the gateway, or the operator with the fixed token.
    pub token: Option<TokenId>,
    /// The owner of the token. It is the author of its messages.
    pub owner: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    /// Its identity.
    pub(crate) identity: Identity,
    /// The credential that it has used.
    pub(crate) method: Method,
}

/// The credential of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// A token in the header `Authorization`.
    Token {
        /// The hash of its secret.
        hash: [u8; 32],
    },
    /// The cookie of the page, which a browser sends automatically.
    Session {
        /// The session, as a token.
        id: TokenId,
    },
}

impl Identity {
    /// Returns whether the identity has a scope. `Admin` includes all others.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.iter().any(|has| *has == scope || *has == Scope::Admin)
    }

    /// Checks that the identity has a scope.
    ///
    /// # Errors
    /// It does not have the scope.
    pub fn require(&self, scope: Scope) -> Result<(), GatewayError> {
        if self.has(scope) {
            return Ok(());
        }
        let reason = format!("the token does not have the scope {}", scope.name());
        Err(GatewayError::Forbidden { reason })
    }

    /// Returns the key to which its limits apply.
    pub(crate) fn limit_key(&self) -> LimitKey {
        self.token.map_or(LimitKey::Fixed, LimitKey::Token)
    }

    /// Returns its name in the audit log.
    pub(crate) fn actor(&self) -> String {
        match self.token {
            Some(id) => format!("token:{id}"),
            None => format!("owner:{}", self.owner),
        }
    }
}
