//! What workers do.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{Day, Seq, Timestamp, TurnId, WorkerId};
use crate::records::{
    BudgetDecision, BudgetLimit, Claim, ClaimRequest, Effects, Finish, HandBack, JoinedOutcome, Lease, Progress,
    Renewal,
};

/// Claims conversations and runs their turns.
///
/// A method with a [`Lease`] fails with `LeaseLost` if the epoch is not that of the last claim, or if the turn is not running.
/// An expired lease that no worker has claimed still permits writes, so that a finished turn is not lost, but no renewal.
#[async_trait]
pub trait WorkStore: Send + Sync {
    /// Claims the conversation whose next turn has been ready to run for the longest time. Those of an author with
    /// [`FAIR_SHARE`](crate::FAIR_SHARE) running turns wait behind those of others.
    ///
    /// A conversation is claimable if a turn waits and none runs, or if the lease of its running turn has expired. A
    /// time that was set by a clock that was ahead delays a turn for at most
    /// [`LONGEST_RETRY_DELAY`](crate::LONGEST_RETRY_DELAY). Conversations whose turn waits for a person do not count
    /// against the limit of their chat. Returns `None` if there is none within the limits of the request.
    async fn claim(&self, request: ClaimRequest, now: Timestamp) -> Result<Option<Claim>>;

    /// Renews leases, and reports which are lost. The outcomes have the order of the leases.
    async fn renew(&self, leases: Vec<Lease>, lease_for: Duration, now: Timestamp) -> Result<Vec<Renewal>>;

    /// Expires the leases of a worker now: those of turns and those of deliveries. Returns their number.
    ///
    /// Call it only if the worker and its agents are known to be dead.
    async fn expire_leases(&self, worker: WorkerId, now: Timestamp) -> Result<u32>;

    /// Counts an attempt before it starts, and returns its number. The first attempt is 1.
    async fn start_attempt(&self, lease: Lease, effects: Effects, now: Timestamp) -> Result<u32>;

    /// Appends to the log, and returns the number of the last event.
    async fn append(&self, lease: Lease, progress: Progress, effects: Effects, now: Timestamp) -> Result<Seq>;

    /// Records that the message of a waiting turn is being sent into the running turn.
    ///
    /// Until the agent has taken it ([`resolve_joined`](Self::resolve_joined)), the end of the running turn, or the claim after
    /// the death of its worker, makes the turn wait again. Fails with `WrongState` if the turn does not wait.
    async fn join_turn(&self, lease: Lease, turn: TurnId, effects: Effects, now: Timestamp) -> Result<()>;

    /// Records the outcome of the message of a turn that has joined the running turn.
    ///
    /// Fails with `WrongState` if the turn has not joined it.
    async fn resolve_joined(
        &self,
        lease: Lease,
        turn: TurnId,
        outcome: JoinedOutcome,
        effects: Effects,
        now: Timestamp,
    ) -> Result<()>;

    /// Reserves a part of each budget for the running turn, or of none. An earlier reservation of the turn is replaced.
    async fn reserve_budget(
        &self,
        lease: Lease,
        budgets: Vec<BudgetLimit>,
        day: Day,
        now: Timestamp,
    ) -> Result<BudgetDecision>;

    /// Ends the running turn, together with those whose messages the agent has taken, and releases the conversation.
    async fn finish(&self, lease: Lease, finish: Finish, now: Timestamp) -> Result<()>;

    /// Puts the running turn back into its queue and releases the conversation. Joined turns wait for their own turn again.
    async fn hand_back(&self, lease: Lease, hand_back: HandBack, now: Timestamp) -> Result<()>;
}
