//! What a CLI inherits of its host's environment.

use serde::{Deserialize, Serialize};

use super::RequestError;

/// What the CLI, and whatever it starts, inherits of the host's environment. Variables that the request itself sets are
/// always there.
///
/// Names are exact, or hold one `*` for any characters: `LC_*`, `*_API_KEY`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Inherit {
    /// All of it.
    #[default]
    All,
    /// All but keys that are not the agent's own: those of other vendors, clouds and code hosts
    /// ([`WITHHELD_KEYS`](crate::agent::WITHHELD_KEYS)).
    WithholdKeys {
        /// Keys that are not withheld.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keep: Vec<String>,
    },
    /// These variables, and what no agent can run without ([`BASE_VARIABLES`]). The agent's own key must be among them,
    /// unless it has logged in.
    Only(Vec<String>),
}

/// What a CLI inherits in any case: who and where its user is, and how the network is reached.
pub const BASE_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

impl Inherit {
    pub(super) fn validate(&self) -> Result<(), RequestError> {
        let names = match self {
            Self::All => return Ok(()),
            Self::WithholdKeys { keep } => keep,
            Self::Only(names) => names,
        };
        for name in names {
            if name.is_empty() || name.contains(['=', '\0']) || name.matches('*').count() > 1 {
                return Err(RequestError::EnvPattern { name: name.clone() });
            }
        }
        Ok(())
    }
}

/// Whether a variable's name is this one, or matches it where it holds a `*`.
pub fn is_named(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters_and_everything_else_for_itself() {
        for (pattern, name, matches) in [
            ("PATH", "PATH", true),
            ("PATH", "PATHS", false),
            ("PATH", "path", false),
            ("LC_*", "LC_ALL", true),
            ("LC_*", "LC_", true),
            ("LC_*", "XLC_ALL", false),
            ("*_API_KEY", "A_API_KEY", true),
            ("*_API_KEY", "A_API_KEY_FILE", false),
            ("A*A", "A", false),
            ("A*A", "AA", true),
            ("*", "ANY", true),
            ("A.*", "AB", false),
        ] {
            assert_eq!(is_named(pattern, name), matches, "{pattern} {name}");
        }
    }
}
