//! The input of clients and channels.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{Timestamp, TurnId};
use crate::records::{
    Accepted, CancelOutcome, CancelScope, EditOutcome, Effects, IdempotencyKey, MessageEdit, NewMessage, QueueLimits,
    Turn,
};

/// Accepts messages, and changes turns at a client's request.
#[async_trait]
pub trait IntakeStore: Send + Sync {
    /// Returns the first outcome of a message that was accepted before, by its idempotency key or by one of its channel ids.
    /// `None`: it is new.
    ///
    /// Fails with `IdempotencyMismatch` if the key was used with another body.
    async fn known_message(
        &self,
        channel: String,
        channel_ids: Vec<String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<Accepted>>;

    /// Accepts a message once: finds or creates the conversation, stores the message with its turn, and appends its event.
    ///
    /// A message whose idempotency key or channel id is known is a duplicate and changes nothing, even if a queue is full.
    /// Fails with `IdempotencyMismatch` if the key was used with another body, and with `QueueFull`.
    async fn accept(&self, message: NewMessage, limits: QueueLimits, now: Timestamp) -> Result<Accepted>;

    /// Replaces a message that waits.
    async fn edit_message(&self, edit: MessageEdit, now: Timestamp) -> Result<EditOutcome>;

    /// Aborts a turn that waits, or requests the abort of one that runs.
    ///
    /// The effects are applied only if the outcome is `Aborted`. A paused turn waits, so it is aborted at once.
    async fn cancel_turn(
        &self,
        id: TurnId,
        scope: CancelScope,
        effects: Effects,
        now: Timestamp,
    ) -> Result<CancelOutcome>;

    /// Queues a failed or aborted turn again, at its old position, with no attempts counted.
    ///
    /// Fails with `WrongState` for other turns, and with `QueueFull`.
    async fn requeue_turn(&self, id: TurnId, limits: QueueLimits, effects: Effects, now: Timestamp) -> Result<Turn>;
}
