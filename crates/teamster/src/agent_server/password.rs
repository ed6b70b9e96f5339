//! The password for a CLI's server.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

/// The secret password of a run for its CLI's server.
#[derive(Clone)]
pub(crate) struct Password(Arc<str>);

impl Password {
    /// Creates a random password.
    ///
    /// # Errors
    /// The system returns no random bytes.
    pub(crate) fn new() -> std::io::Result<Self> {
        let mut bytes = [0; 24];
        getrandom::fill(&mut bytes).map_err(std::io::Error::from)?;
        Ok(Self(BASE64_URL_SAFE_NO_PAD.encode(bytes).into()))
    }

    /// Returns the credentials of HTTP basic authentication for this user.
    pub(crate) fn basic(&self, user: &str) -> String {
        BASE64_STANDARD.encode(format!("{user}:{}", self.0))
    }

    /// Returns the text of the password, to send it or to redact it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password")
    }
}
