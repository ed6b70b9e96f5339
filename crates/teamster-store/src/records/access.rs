//! API tokens and the audit log.

use crate::ids::{Json, Timestamp, TokenId};

/// An API token. Its secret is not stored, only a hash of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// A hash of the secret.
    pub hash: [u8; 32],
    /// Who owns it.
    pub owner: String,
    /// What it permits. The HTTP layer interprets it.
    pub scopes: Json,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// An entry for the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAuditEntry {
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// On what.
    pub subject: String,
    /// From where, for example an address.
    pub origin: String,
    /// Other fields.
    pub details: Json,
}

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its number; larger than the numbers of all earlier entries.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// What was recorded.
    pub entry: NewAuditEntry,
}
