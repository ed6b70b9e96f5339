//! The credential of an agent, without its secret.

use serde::{Deserialize, Serialize};

use crate::names::open_enum;
use crate::text::UntrustedText;

open_enum! {
    /// The kind of a credential, which decides what is billed.
    CredentialKind {
        /// A key of the vendor's API. Its account is billed for each use.
        ApiKey = "api_key",
        /// A token that a variable contains: of a plan, or of a server between the agent and the vendor.
        Token = "token",
        /// A login of the CLI. Its plan is used.
        Login = "login",
        /// The credentials of a cloud, whose account is billed.
        Cloud = "cloud",
        /// The agent reports that it uses no key. It may have a login that only it knows.
        Unknown = "none",
    }
}

/// The credential that an agent uses. It never contains the secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Credential {
    /// Its kind.
    pub kind: CredentialKind,
    /// Where the agent finds it: the name of a variable, of a file or of a setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<UntrustedText>,
}

impl Credential {
    /// Creates a credential without a name.
    pub fn new(kind: CredentialKind) -> Self {
        Self { kind, name: None }
    }

    /// Sets the name of the place where the agent finds it.
    #[must_use]
    pub fn named(self, name: impl Into<UntrustedText>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}
