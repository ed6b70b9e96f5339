//! What a failed send means. The codes are those of <https://docs.slack.dev/reference/methods/chat.postMessage> and `chat.update`.

use std::time::Duration;

use teamster_channel::{Operation, RateScope, SendError, SendOutcome};

use crate::error::{CallError, TokenName};

/// How long a chat waits if the token lacks a permission for it.
const WITHOUT_PERMISSION: Duration = Duration::from_mins(1);

/// The message of an edit does not exist, or cannot be edited any more.
const GONE: [&str; 5] =
    ["message_not_found", "cant_update_message", "edit_window_closed", "update_failed", "cant_delete_message"];

/// Returns the outcome of a call that has failed.
pub(crate) fn outcome(error: &CallError, operation: &Operation) -> SendOutcome {
    let reason = error.to_string();
    let later = |after: Option<Duration>, scope| {
        SendOutcome::NotSent(SendError::Later { reason: reason.clone(), after, scope })
    };
    match error {
        CallError::NotSent(_) => SendOutcome::NotSent(SendError::Unavailable { reason, after: None }),
        // New messages are limited for each chat, edits for the whole workspace.
        CallError::Limited { retry_after, .. } => match operation {
            Operation::New => later(Some(*retry_after), RateScope::Chat),
            Operation::Edit(_) | Operation::Delete(_) => later(Some(*retry_after), RateScope::Channel),
        },
        CallError::Foreign { code } if let Some(error) = SendError::of_foreign_status(*code, reason.as_str()) => {
            SendOutcome::NotSent(error)
        }
        // A repeated edit is harmless.
        _ if error.is_uncertain() => match operation {
            Operation::New => SendOutcome::Unknown(reason),
            Operation::Edit(_) | Operation::Delete(_) => later(None, RateScope::Chat),
        },
        // The messages wait until the token is corrected.
        _ if error.is_of_token() => SendOutcome::NotSent(SendError::rejected(reason)),
        // Answers do not wait behind a file.
        _ if let Some(scope) = error.missing_scope_of_file() => {
            SendOutcome::NotSent(SendError::Never(TokenName::Bot.without_scope(scope)))
        }
        // The token can send to no chat.
        _ if error.is_refusal("missing_scope") || error.is_refusal("not_allowed_token_type") => {
            SendOutcome::NotSent(SendError::rejected(reason))
        }
        // Other methods and other chats work.
        _ if error.is_of_permission() => later(Some(WITHOUT_PERMISSION), RateScope::Chat),
        _ if error.refusal().is_some_and(|code| GONE.contains(&code)) => SendOutcome::NotSent(SendError::Gone(reason)),
        _ if !error.is_final() => later(None, RateScope::Chat),
        _ => SendOutcome::NotSent(SendError::Never(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_a_proxy_is_tried_again_later_except_for_the_size() {
        let outcome = |code| outcome(&CallError::Foreign { code }, &Operation::New);
        for code in [400, 403, 404, 408] {
            let SendOutcome::NotSent(SendError::Later { after, scope, .. }) = outcome(code) else { panic!("{code}") };
            assert_eq!((after, scope), (None, RateScope::Chat), "another message may pass");
        }
        for code in [401, 407, 511] {
            assert!(matches!(outcome(code), SendOutcome::NotSent(SendError::Unavailable { .. })), "{code}");
        }
        assert!(matches!(outcome(413), SendOutcome::NotSent(SendError::Never(_))));
        assert!(matches!(outcome(502), SendOutcome::Unknown(_)));
    }
}
