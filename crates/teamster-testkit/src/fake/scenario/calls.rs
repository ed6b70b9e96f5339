//! Ids and figures that all dialects share.

use uuid::Uuid;

/// Counts the model calls. Each message, thinking or tool call of a turn is one model call, and
/// each uses the same number of tokens.
#[derive(Debug, Default)]
pub(super) struct ModelCalls {
    turn: u64,
    process: u64,
}

impl ModelCalls {
    pub(super) fn start_turn(&mut self) {
        self.turn = 0;
    }

    pub(super) fn add(&mut self) {
        self.turn += 1;
        self.process += 1;
    }

    /// Returns the model calls of the current turn.
    pub(super) fn of_turn(&self) -> u64 {
        self.turn
    }

    /// Returns the model calls of the process, including the current turn.
    pub(super) fn of_process(&self) -> u64 {
        self.process
    }
}

/// Returns a new session id in the format of Claude Code and Gemini CLI.
pub(super) fn session() -> String {
    Uuid::new_v4().to_string()
}

/// Returns a new thread id in the format of Codex, which starts with the time.
pub(super) fn thread() -> String {
    Uuid::now_v7().to_string()
}

/// Returns a new session id in OpenCode's format: 12 hexadecimal digits and 14 letters or digits.
pub(super) fn opencode_session() -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let uuid = Uuid::new_v4();
    let hexadecimal = uuid.simple().to_string();
    let bytes = Uuid::new_v4().into_bytes();
    let letters = bytes.iter().take(14).filter_map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
    let letters: String = letters.map(|letter| char::from(*letter)).collect();
    format!("ses_{}{letters}", hexadecimal.get(..12).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opencode_session_ids_have_the_length_of_real_ones_and_are_unique() {
        let (one, other) = (opencode_session(), opencode_session());
        assert_eq!(one.len(), "ses_dff927d83ffeURFKuimpze0qb5".len(), "{one}");
        assert_ne!(one, other);
    }
}
