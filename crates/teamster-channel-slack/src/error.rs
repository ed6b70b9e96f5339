//! Why a call has no result.

use std::time::Duration;

use teamster_channel::ChannelError;

/// The name of the service in errors.
pub(crate) const SERVICE: &str = "Slack";

/// Why a call has no result. The texts have no token and no URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// The service answers `ok: false`.
    #[error("Slack refuses {method}: {error}{detail}")]
    Refused {
        method: &'static str,
        /// The code.
        error: String,
        /// What is missing or invalid, with a separator; empty if the service does not state it.
        detail: String,
        /// The scope that is missing.
        needed: Option<String>,
    },
    /// Too many calls. The call had no effect.
    #[error("Slack limits {method}")]
    Limited { method: &'static str, retry_after: Duration },
    /// The service was not reached.
    #[error("{0}")]
    NotSent(String),
    /// The connection broke after the call was sent.
    #[error("{0}")]
    Unknown(String),
    /// The answer is not one of the Web API.
    #[error("Slack answers {code} with what is no answer of the Web API")]
    Foreign { code: u16 },
    /// The bytes of a file were not taken. They are shown to no person.
    #[error("a file cannot be uploaded: {0}")]
    NotUploaded(String),
    /// The content is larger than permitted.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
}

/// The errors of a token that is not valid. The lists are those of <https://docs.slack.dev/reference/methods/auth.test>.
const OF_TOKEN: [&str; 5] = ["not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired"];

/// The errors of a token that is valid, and lacks a permission for a method or for a chat.
const OF_PERMISSION: [&str; 6] = [
    "not_allowed_token_type",
    "no_permission",
    "missing_scope",
    "access_denied",
    "org_login_required",
    "ekm_access_denied",
];

/// The errors after which the call may have had an effect: "some aspect of the operation succeeded before the error was raised".
const UNCERTAIN: [&str; 3] = ["fatal_error", "internal_error", "service_unavailable"];

impl CallError {
    /// Returns the code of a refusal.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => Some(error),
            _ => None,
        }
    }

    pub(crate) fn is_refusal(&self, code: &str) -> bool {
        self.refusal() == Some(code)
    }

    /// Returns whether the service rejects the token for every call.
    pub(crate) fn is_of_token(&self) -> bool {
        self.refusal().is_some_and(|error| OF_TOKEN.contains(&error)) || matches!(self, Self::Foreign { code: 401 })
    }

    /// Returns whether the token lacks a permission for this method or this chat.
    pub(crate) fn is_of_permission(&self) -> bool {
        self.refusal().is_some_and(|error| OF_PERMISSION.contains(&error))
    }

    /// Returns the scope that a call for a file needs, if it is missing.
    pub(crate) fn missing_scope_of_file(&self) -> Option<&str> {
        match self {
            Self::Refused { method, needed, .. } if method.starts_with("files.") => needed.as_deref(),
            _ => None,
        }
    }

    /// Returns whether the call may have had an effect.
    pub(crate) fn is_uncertain(&self) -> bool {
        match self {
            Self::Unknown(_) => true,
            Self::Foreign { code } => !(400..500).contains(code),
            Self::Refused { error, .. } => UNCERTAIN.contains(&error.as_str()),
            Self::Limited { .. } | Self::NotSent(_) | Self::NotUploaded(_) | Self::TooLarge(_) => false,
        }
    }

    /// Returns whether another attempt has the same result.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused { error, .. } => {
                !UNCERTAIN.contains(&error.as_str())
                    && !matches!(error.as_str(), "request_timeout" | "team_added_to_org")
            }
            // A proxy refuses the call, so nothing is known about its content. Only its size is the cause of a 413.
            Self::Foreign { code } => *code == 413,
            Self::TooLarge(_) => true,
            Self::Limited { .. } | Self::NotSent(_) | Self::NotUploaded(_) | Self::Unknown(_) => false,
        }
    }
}

/// Returns what a failed call means for the whole channel. `token` is how the settings of the app name the token of the call.
pub(crate) fn channel_error(error: &CallError, token: TokenName) -> ChannelError {
    if let CallError::Refused { needed: Some(needed), .. } = error {
        return ChannelError::Setting(token.without_scope(needed));
    }
    if error.is_refusal("not_allowed_token_type") {
        let problem = format!("Slack does not accept this token for {}: {}", token.purpose(), token.place());
        return ChannelError::Setting(problem);
    }
    if error.is_of_token() || error.is_of_permission() {
        let reason = format!("{error}. {}", token.place());
        return ChannelError::Credentials { service: SERVICE, reason };
    }
    ChannelError::Unreachable { service: SERVICE, reason: error.to_string() }
}

/// A token, as an error names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenName {
    Bot,
    App,
}

impl TokenName {
    const fn purpose(self) -> &'static str {
        match self {
            Self::Bot => "the Web API",
            Self::App => "Socket Mode",
        }
    }

    const fn place(self) -> &'static str {
        match self {
            Self::Bot => "The bot token (xoxb-) is in the settings of the app under \"OAuth & Permissions\"",
            Self::App => {
                "The app-level token (xapp-) is in the settings of the app under \"Basic Information\", \"App-Level Tokens\""
            }
        }
    }

    /// Returns the error of a token that lacks scopes.
    pub(crate) fn without_scope(self, scopes: &str) -> String {
        match self {
            Self::Bot => format!(
                "the Slack bot lacks the scope {scopes}: add it in the settings of the app under \"OAuth & Permissions\", \"Bot \
                 Token Scopes\", then choose \"Reinstall to Workspace\""
            ),
            Self::App => format!(
                "the app-level token of the Slack app lacks the scope {scopes}: create a token with it in the settings of the \
                 app under \"Basic Information\", \"App-Level Tokens\""
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(error: &str) -> CallError {
        CallError::Refused { method: "chat.postMessage", error: error.to_owned(), detail: String::new(), needed: None }
    }

    #[test]
    fn an_error_after_which_the_call_may_have_had_an_effect_is_uncertain_and_no_other_one_is() {
        for error in [refused("fatal_error"), CallError::Unknown(String::new()), CallError::Foreign { code: 502 }] {
            assert!(error.is_uncertain() && !error.is_final(), "{error:?}");
        }
        for error in [refused("channel_not_found"), CallError::Foreign { code: 413 }, CallError::TooLarge(1)] {
            assert!(!error.is_uncertain() && error.is_final(), "{error:?}");
        }
        let limited = CallError::Limited { method: "chat.update", retry_after: Duration::from_secs(1) };
        for error in [limited, CallError::Foreign { code: 404 }] {
            assert!(!error.is_uncertain() && !error.is_final(), "{error:?}");
        }
    }

    #[test]
    fn a_missing_scope_is_named_with_the_place_to_add_it() {
        let error = CallError::Refused {
            method: "users.info",
            error: "missing_scope".to_owned(),
            detail: String::new(),
            needed: Some("users:read".to_owned()),
        };
        let text = channel_error(&error, TokenName::Bot).to_string();
        assert!(text.contains("users:read") && text.contains("Reinstall"), "{text}");
        let text = channel_error(&error, TokenName::App).to_string();
        assert!(text.contains("App-Level Tokens"), "{text}");
    }
}
