//! The turns that run in this process, and the commands of clients for them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use teamster_store::{ConversationId, PermissionId, TurnId};
use tokio::sync::mpsc;

/// A command to a running turn. It may be lost: the turn reads the store as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnCommand {
    /// Its abort was requested.
    Abort,
    /// This request was answered.
    Answered(PermissionId),
    /// This turn waits and may be steered into the running one.
    Steer(TurnId),
}

/// The turns that run in this process.
#[derive(Debug, Default)]
pub(super) struct RunningTurns {
    turns: Mutex<HashMap<TurnId, (ConversationId, mpsc::Sender<TurnCommand>)>>,
}

impl RunningTurns {
    /// Adds a turn, and returns its commands.
    pub(super) fn add(&self, conversation: ConversationId, turn: TurnId) -> mpsc::Receiver<TurnCommand> {
        let (sender, receiver) = mpsc::channel(64);
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).insert(turn, (conversation, sender));
        receiver
    }

    /// Returns the turn that runs in a conversation.
    pub(super) fn of_conversation(&self, conversation: ConversationId) -> Option<TurnId> {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.iter().find(|(_, (of, _))| *of == conversation).map(|(turn, _)| *turn)
    }

    /// Removes a turn.
    pub(super) fn remove(&self, turn: TurnId) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&turn);
    }

    /// Sends a command, if the turn runs here.
    pub(super) fn send(&self, turn: TurnId, command: TurnCommand) {
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, sender)) = turns.get(&turn) {
            // A full queue loses it; the turn checks the store once a second.
            _ = sender.try_send(command);
        }
    }
}
