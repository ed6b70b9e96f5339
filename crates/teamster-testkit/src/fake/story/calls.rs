//! Ids and figures that all forms share.

use uuid::Uuid;

/// Counts the calls of the model. Each step of a turn that the model takes is one, and each uses the same tokens.
#[derive(Debug, Default)]
pub(super) struct ModelCalls {
    turn: u64,
    process: u64,
}

impl ModelCalls {
    pub(super) fn begin_turn(&mut self) {
        self.turn = 0;
    }

    pub(super) fn add(&mut self) {
        self.turn += 1;
        self.process += 1;
    }

    /// Those of the turn that runs.
    pub(super) fn of_turn(&self) -> u64 {
        self.turn
    }

    /// Those of the process, this turn's included.
    pub(super) fn of_process(&self) -> u64 {
        self.process
    }
}

/// A new session, as Claude Code and Gemini CLI name it.
pub(super) fn session() -> String {
    Uuid::new_v4().to_string()
}

/// A new thread, as Codex names it: its id begins with the time.
pub(super) fn thread() -> String {
    Uuid::now_v7().to_string()
}

/// A new session, as OpenCode names it: 12 hexadecimal digits and 14 letters or digits.
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
    fn an_opencode_session_has_the_length_of_a_real_one_and_no_two_are_alike() {
        let (one, other) = (opencode_session(), opencode_session());
        assert_eq!(one.len(), "ses_dff927d83ffeURFKuimpze0qb5".len(), "{one}");
        assert_ne!(one, other);
    }
}
