//! Session ids of Claude Code, which are UUIDs.
//!
//! `--resume` of 2.1.197 also accepts the title of a session, and the path of a transcript, which it loads from any directory. So only
//! UUIDs are passed on.

use teamster_types::event::{ErrorCode, Failure};
use teamster_types::request::Conversation;

/// Returns the failure of a conversation whose session cannot exist, because its id is not a UUID.
pub(super) fn invalid(conversation: &Conversation) -> Option<Failure> {
    let (Conversation::Resume(id) | Conversation::Fork(id)) = conversation else { return None };
    let failure = || {
        let text =
            format!("No conversation found with session ID: {} (a session ID of this agent is a UUID)", id.as_str());
        Failure::new(ErrorCode::SessionNotFound, text).with_retryable(false)
    };
    (!is_uuid(id.as_str())).then(failure)
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_the_cli_would_take_as_a_path_or_a_title_is_rejected() {
        for id in [
            "x.jsonl",
            "/home/dev/x.jsonl",
            "Some title",
            "https://example.com/x",
            "00000000-0000-4000-8000-00000000000g",
        ] {
            for conversation in [Conversation::Resume(id.into()), Conversation::Fork(id.into())] {
                assert_eq!(
                    invalid(&conversation).map(|failure| failure.code),
                    Some(ErrorCode::SessionNotFound),
                    "{id}"
                );
            }
        }
        let valid = "00000000-0000-4000-8000-000000000001";
        for conversation in [Conversation::Resume(valid.into()), Conversation::New, Conversation::Continue] {
            assert_eq!(invalid(&conversation), None);
        }
    }
}
