//! Secrets of tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Marks a secret, so that people and scanners recognize it.
const TOKEN_PREFIX: &str = "tms_";

/// Marks the cookie of a session.
const SESSION_PREFIX: &str = "tmc_";

/// A fixed token that is shorter can be guessed.
const SHORT: usize = 16;

/// The longest secret that a request may present.
const LONGEST: usize = 256;

/// A secret that proves who makes a request. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a text is not a secret. The text is not part of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSecret {
    /// The token is empty.
    #[error("the token is empty: use the output of `openssl rand -hex 32`, or leave it out")]
    Empty,
    /// The token cannot be sent in a header.
    #[error("the token must have at most {LONGEST} characters, all of them visible ASCII without spaces")]
    NotVisible,
}

impl Secret {
    /// Wraps a token that the operator has selected.
    ///
    /// # Errors
    /// It is empty, too long, or cannot be sent in a header.
    pub fn fixed(text: impl Into<String>) -> Result<Self, InvalidSecret> {
        let text = text.into();
        if text.is_empty() {
            return Err(InvalidSecret::Empty);
        }
        Self::presented(&text).ok_or(InvalidSecret::NotVisible)
    }

    /// Returns whether it is so short that it can be guessed.
    pub(crate) fn is_short(&self) -> bool {
        self.0.len() < SHORT
    }

    /// Makes the secret of a token: 256 bits from the operating system.
    pub(super) fn token() -> Result<Self, getrandom::Error> {
        Self::random(TOKEN_PREFIX)
    }

    /// Makes the secret of a session.
    pub(super) fn session() -> Result<Self, getrandom::Error> {
        Self::random(SESSION_PREFIX)
    }

    /// Wraps what a request presents. `None` if nothing of this form is a secret.
    pub(super) fn presented(text: &str) -> Option<Self> {
        let is_possible = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_possible.then(|| Self(text.to_owned()))
    }

    fn random(prefix: &str) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// Returns whether it can be a token of the store. The secret of a session cannot.
    pub(super) fn is_token(&self) -> bool {
        self.0.starts_with(TOKEN_PREFIX)
    }

    /// Returns whether it can be the secret of a session.
    pub(super) fn is_session(&self) -> bool {
        self.0.starts_with(SESSION_PREFIX)
    }

    /// Returns the hash under which the store keeps it.
    pub(super) fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Compares two secrets in a time that does not depend on their contents.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.hash().ct_eq(&other.hash()).into()
    }

    /// Returns the secret in clear text, to show it once to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_and_a_prefix_and_is_never_the_same() {
        let (first, second) = (Secret::token().unwrap(), Secret::token().unwrap());
        let text = first.expose().strip_prefix("tms_").unwrap();
        assert_eq!(URL_SAFE_NO_PAD.decode(text).unwrap().len(), 32);
        assert!(!first.matches(&second));
        assert!(first.matches(&Secret::presented(first.expose()).unwrap()));
    }

    #[test]
    fn the_debug_output_does_not_show_it() {
        let secret = Secret::token().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(***)");
    }

    #[test]
    fn a_fixed_token_that_cannot_be_sent_is_refused() {
        assert_eq!(Secret::fixed("").unwrap_err(), InvalidSecret::Empty);
        assert_eq!(Secret::fixed("0123456789abcdef 0123").unwrap_err(), InvalidSecret::NotVisible);
        assert_eq!(Secret::fixed("0123456789abcdef\n").unwrap_err(), InvalidSecret::NotVisible);
        assert!(Secret::fixed("0123456789abcde").unwrap().is_short());
        assert!(!Secret::fixed("0123456789abcdef").unwrap().is_short());
    }

    #[test]
    fn a_text_that_no_header_can_contain_is_not_a_secret() {
        for text in ["", "a b", "ü", "a\nb", &"x".repeat(257)] {
            assert!(Secret::presented(text).is_none(), "{text:?}");
        }
    }
}
