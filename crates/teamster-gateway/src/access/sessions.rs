//! Sessions of the page: a cookie instead of a token in reach of scripts.
//!
//! A session is a token of the store that was derived from another one. It ends with its time, with a logout, or with the token
//! from which it was derived. The cookie has a secret of its own, so that it does not reveal the token.

use std::time::Duration;

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use teamster_store::Timestamp;

use super::identity::{Authenticated, Method};
use super::secret::Secret;
use super::tokens::{AccessError, SessionDocument, TokenDocument, TokenView, Tokens};

/// The name of the cookie.
const COOKIE_NAME: &str = "teamster_session";

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_hours(30 * 24);

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
