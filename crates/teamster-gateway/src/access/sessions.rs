//! Sessions of the page: a cookie instead of a token that scripts could read.
//!
//! A session is a token of the store that was derived from another one. It ends after its lifetime, at the logout, or
//! when the token from which it was derived is revoked. The cookie has a secret of its own, so that it does not reveal
//! the token.

use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use teamster_store::{PageRequest, Timestamp};

use super::identity::{Authenticated, Method};
use super::secret::Secret;
use super::tokens::{AccessError, SessionDocument, TokenDocument, TokenView, Tokens};
use crate::engine::Gateway;

/// The name of the cookie.
const COOKIE_NAME: &str = "teamster_session";

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The interval in which sessions that have ended are deleted.
const CLEANUP: Duration = Duration::from_hours(1);

/// The number of tokens that are read at once.
const PAGE: u32 = 500;

/// A new session.
pub(crate) struct NewSession {
    /// The session, as a token.
    pub(crate) view: TokenView,
    /// The header that sets its cookie.
    pub(crate) cookie: HeaderValue,
}

/// Creates a session with the rights of a token. `None` if the caller has no token, but a session.
pub(crate) async fn create(
    tokens: &Tokens,
    caller: &Authenticated,
    now: Timestamp,
    is_https: bool,
) -> Result<Option<NewSession>, AccessError> {
    let Method::Token { hash } = caller.method else { return Ok(None) };
    let secret = Secret::session().map_err(AccessError::Random)?;
    let identity = &caller.identity;
    let session =
        SessionDocument { parent: hash, parent_id: identity.token, expires_at: now.after(LIFETIME).as_millis() };
    let document = TokenDocument { scopes: identity.scopes.clone(), session: Some(session) };
    let view = tokens.store(&identity.owner, document, &secret).await?;
    Ok(Some(NewSession { view, cookie: cookie(secret.expose(), LIFETIME.as_secs(), is_https) }))
}

/// Deletes sessions that have ended, until the task is dropped. The audit log keeps an entry for the start of each
/// session.
pub(crate) async fn remove_ended(gateway: Gateway) {
    loop {
        match remove_ended_once(&gateway).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "sessions that have ended were deleted"),
            Err(error) => tracing::error!(%error, "sessions that have ended cannot be deleted"),
        }
        tokio::time::sleep(CLEANUP).await;
    }
}

async fn remove_ended_once(gateway: &Gateway) -> Result<u32, AccessError> {
    let now = gateway.now();
    let (mut request, mut removed) = (PageRequest::first(PAGE), 0);
    loop {
        let page = gateway.store().tokens(request).await?;
        for token in page.items {
            let session = token.scopes.to::<TokenDocument>()?.session;
            let has_ended =
                session.is_some_and(|session| session.expires_at <= now.as_millis() || token.revoked_at.is_some());
            if has_ended && gateway.store().remove_token(token.id).await? {
                removed += 1;
            }
        }
        let Some(cursor) = page.next else { return Ok(removed) };
        request = PageRequest { limit: PAGE, cursor: Some(cursor) };
    }
}

/// Returns the header that deletes the cookie.
pub(crate) fn no_cookie(is_https: bool) -> HeaderValue {
    cookie("", 0, is_https)
}

fn cookie(value: &str, seconds: u64, is_https: bool) -> HeaderValue {
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{COOKIE_NAME}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    // The value is Base64: it can always be a header.
    let mut value = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Returns the secret of the session's cookie.
pub(crate) fn presented(headers: &HeaderMap) -> Option<Secret> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
    Secret::presented(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;
    use crate::testing::TestGateway;

    #[tokio::test]
    async fn sessions_that_have_ended_are_deleted_and_no_token_is() {
        let test = TestGateway::new(|_| {});
        let tokens = Tokens::new(test.gateway.clone());
        let now = test.gateway.now().as_millis();
        let session = |expires_at| SessionDocument { parent: [0; 32], parent_id: None, expires_at };
        for session in [None, Some(session(now + 1)), Some(session(now))] {
            let document = TokenDocument { scopes: vec![Scope::Read], session };
            tokens.store("ada", document, &Secret::session().unwrap()).await.unwrap();
        }
        assert_eq!(remove_ended_once(&test.gateway).await.unwrap(), 1);
        assert_eq!(remove_ended_once(&test.gateway).await.unwrap(), 0);
        assert_eq!(tokens.list(PageRequest::first(9)).await.unwrap().0.len(), 2);
    }
}
