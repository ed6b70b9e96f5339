//! Authenticates the caller of a request by its headers.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;
use teamster_store::Token;

use super::identity::{Authenticated, Identity, Method, Scope};
use super::limits::Failures;
use super::secret::Secret;
use super::sessions;
use super::tokens::{AccessError, OPERATOR, SessionDocument, TokenDocument, Tokens};
use crate::engine::Gateway;

/// Why a caller is not authenticated.
#[derive(Debug)]
pub(crate) enum Denial {
    /// There is no token and no session.
    Missing,
    /// The header is not `Bearer TOKEN`, or there are several.
    Malformed,
    /// No token has this secret.
    Unknown,
    /// The token, or that of the session, was revoked.
    Revoked,
    /// The session has ended.
    Expired,
    /// Too many attempts from this address have failed.
    Locked(Duration),
    /// The store cannot be used.
    Failed(AccessError),
}

impl Denial {
    /// Returns its name in the audit log.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Locked(_) => "locked",
            Self::Failed(_) => "failed",
        }
    }
}

/// Authenticates callers.
#[derive(Debug)]
pub(crate) struct Authentication {
    tokens: Tokens,
    gateway: Gateway,
    fixed: Option<Secret>,
    failures: Failures,
}

impl Authentication {
    pub(crate) fn new(gateway: Gateway, fixed: Option<Secret>) -> Self {
        Self { tokens: Tokens::new(gateway.clone()), gateway, fixed, failures: Failures::new() }
    }

    /// Authenticates a caller by the headers of its request. Nothing is cached, so a revocation takes effect at once.
    pub(crate) async fn authenticate(&self, headers: &HeaderMap, address: IpAddr) -> Result<Authenticated, Denial> {
        let result = match bearer(headers) {
            Bearer::None => match sessions::presented(headers) {
                Some(secret) => self.by_session(&secret).await,
                None => return Err(Denial::Missing),
            },
            Bearer::Malformed => Err(Denial::Malformed),
            Bearer::Token(secret) => self.by_token(&secret, address).await,
        };
        match result {
            // Only an error that a guess can cause is counted as a failed guess.
            Err(denial @ (Denial::Malformed | Denial::Unknown)) => {
                Err(self.failures.record(address).map_or(denial, Denial::Locked))
            }
            other => other,
        }
    }

    async fn by_token(&self, secret: &Secret, address: IpAddr) -> Result<Authenticated, Denial> {
        let hash = secret.hash();
        let locked = self.failures.locked(address);
        // A token of the store has 256 random bits, so guesses are harmless and do not lock its owner out. The fixed
        // token may be weaker: it is not compared while the address is locked.
        if locked.is_none() && self.fixed.as_ref().is_some_and(|fixed| fixed.matches(secret)) {
            let identity = Identity { token: None, owner: OPERATOR.to_owned(), scopes: vec![Scope::Admin] };
            return Ok(Authenticated { identity, method: Method::Token { hash } });
        }
        if secret.is_token()
            && let Some((token, document)) = self.tokens.by_hash(hash).await.map_err(Denial::Failed)?
            && document.session.is_none()
        {
            if token.revoked_at.is_some() {
                return Err(Denial::Revoked);
            }
            let identity = identity(token, document);
            return Ok(Authenticated { identity, method: Method::Token { hash } });
        }
        Err(locked.map_or(Denial::Unknown, Denial::Locked))
    }

    async fn by_session(&self, secret: &Secret) -> Result<Authenticated, Denial> {
        if !secret.is_session() {
            return Err(Denial::Unknown);
        }
        let found = self.tokens.by_hash(secret.hash()).await.map_err(Denial::Failed)?;
        let Some((token, document)) = found else { return Err(Denial::Unknown) };
        let Some(session) = &document.session else { return Err(Denial::Unknown) };
        if token.revoked_at.is_some() || self.is_parent_revoked(session).await? {
            return Err(Denial::Revoked);
        }
        if session.expires_at <= self.gateway.now().as_millis() {
            return Err(Denial::Expired);
        }
        let (id, parent) = (token.id, session.parent_id);
        // Limits and messages belong to the token, not to each of its sessions.
        let identity = Identity { token: parent, ..identity(token, document) };
        Ok(Authenticated { identity, method: Method::Session { id } })
    }

    async fn is_parent_revoked(&self, session: &SessionDocument) -> Result<bool, Denial> {
        if session.parent_id.is_none() {
            let is_current = self.fixed.as_ref().is_some_and(|fixed| fixed.hash().ct_eq(&session.parent).into());
            return Ok(!is_current);
        }
        let parent = self.tokens.by_hash(session.parent).await.map_err(Denial::Failed)?;
        Ok(parent.is_none_or(|(parent, _)| parent.revoked_at.is_some()))
    }
}

fn identity(token: Token, document: TokenDocument) -> Identity {
    Identity { token: Some(token.id), owner: token.owner, scopes: document.scopes }
}

enum Bearer {
    None,
    Malformed,
    Token(Secret),
}

fn bearer(headers: &HeaderMap) -> Bearer {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Bearer::None };
    if values.next().is_some() {
        return Bearer::Malformed;
    }
    let token = value.to_str().ok().and_then(|text| text.split_once(' '));
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    token.and_then(|(_, token)| Secret::presented(token.trim())).map_or(Bearer::Malformed, Bearer::Token)
}
