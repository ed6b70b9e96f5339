//! The environment variables that a CLI inherits from its host.

use serde::{Deserialize, Serialize};

use super::RequestError;

/// The environment variables that the CLI and its child processes inherit from the host. Variables that the request sets are
/// always passed.
///
/// A name is exact or contains one `*`, which matches any characters: `LC_*`, `*_API_KEY`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Inherit {
    /// All variables.
    #[default]
    All,
    /// All variables except keys of other services: other vendors, clouds and code hosts (`agent::WITHHELD_KEYS`).
    WithholdKeys {
        /// Keys to pass nevertheless.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        keep: Vec<String>,
    },
    /// These variables and those that every agent needs ([`BASE_VARIABLES`]). Unless the agent is logged in, its key must be
    /// among them.
    Only(Vec<String>),
}

/// The variables that every CLI inherits: the user, the locale, directories and the network.
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

/// Returns whether a variable's name matches a name or pattern.
pub fn env_name_matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters_and_other_characters_match_themselves() {
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
            assert_eq!(env_name_matches(pattern, name), matches, "{pattern} {name}");
        }
    }
}
