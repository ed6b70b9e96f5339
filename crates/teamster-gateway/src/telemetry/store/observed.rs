//! The operations whose outcome is counted.

use std::time::Duration;

use async_trait::async_trait;
use teamster_store::{
    Accepted, BudgetDecision, BudgetLimit, CancelOutcome, CancelScope, Claim, ClaimRequest, ClaimedDelivery, Day,
    Delivery, DeliveryClaim, DeliveryFilter, DeliveryId, DeliveryLease, DeliveryStep, DeliveryStore, EditOutcome,
    Effects, EndState, Finish, FireOutcome, HandBack, IdempotencyKey, IntakeStore, JoinedOutcome, Lease, MessageEdit,
    NewDelivery, NewMessage, NewSchedule, Page, PageRequest, Progress, QueueLimits, Renewal, Result, Schedule,
    ScheduleFilter, ScheduleFiring, ScheduleId, ScheduleStore, Seq, Timestamp, Turn, TurnId, WorkStore, WorkerId,
};

use super::MeasuredStore;

#[async_trait]
impl IntakeStore for MeasuredStore {
    // The engine counts accepted messages, because it has their channel.
    async fn accept(&self, message: NewMessage, limits: QueueLimits, now: Timestamp) -> Result<Accepted> {
        self.timed("accept", self.inner.accept(message, limits, now)).await
    }

    async fn known_message(
        &self,
        channel: String,
        channel_ids: Vec<String>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<Option<Accepted>> {
        self.inner.known_message(channel, channel_ids, idempotency).await
    }

    async fn edit_message(&self, edit: MessageEdit, now: Timestamp) -> Result<EditOutcome> {
        self.timed("edit_message", self.inner.edit_message(edit, now)).await
    }

    async fn cancel_turn(
        &self,
        id: TurnId,
        scope: CancelScope,
        effects: Effects,
        now: Timestamp,
    ) -> Result<CancelOutcome> {
        self.counted("cancel_turn", self.inner.cancel_turn(id, scope, effects, now), |outcome| {
            if *outcome == CancelOutcome::Aborted {
                self.metrics.turn_ended(None, EndState::Aborted, None, now);
            }
        })
        .await
    }

    async fn requeue_turn(&self, id: TurnId, limits: QueueLimits, effects: Effects, now: Timestamp) -> Result<Turn> {
        self.timed("requeue_turn", self.inner.requeue_turn(id, limits, effects, now)).await
    }
}

#[async_trait]
impl WorkStore for MeasuredStore {
    async fn claim(&self, request: ClaimRequest, now: Timestamp) -> Result<Option<Claim>> {
        self.counted("claim", self.inner.claim(request, now), |claim| {
            if let Some(claim) = claim {
                self.metrics.turn_claimed(claim);
            }
        })
        .await
    }

    async fn renew(&self, leases: Vec<Lease>, lease_for: Duration, now: Timestamp) -> Result<Vec<Renewal>> {
        self.timed("renew", self.inner.renew(leases, lease_for, now)).await
    }

    async fn expire_leases(&self, worker: WorkerId, now: Timestamp) -> Result<u32> {
        self.timed("expire_leases", self.inner.expire_leases(worker, now)).await
    }

    async fn start_attempt(&self, lease: Lease, effects: Effects, now: Timestamp) -> Result<u32> {
        let count = |_: &u32| self.metrics.attempt_started(lease.turn, now);
        self.counted("start_attempt", self.inner.start_attempt(lease, effects, now), count).await
    }

    async fn append(&self, lease: Lease, progress: Progress, effects: Effects, now: Timestamp) -> Result<Seq> {
        let count = |_: &Seq| self.metrics.events_appended(lease.turn, now);
        self.counted("append", self.inner.append(lease, progress, effects, now), count).await
    }

    async fn join_turn(&self, lease: Lease, turn: TurnId, effects: Effects, now: Timestamp) -> Result<()> {
        self.timed("join_turn", self.inner.join_turn(lease, turn, effects, now)).await
    }

    async fn resolve_joined(
        &self,
        lease: Lease,
        turn: TurnId,
        outcome: JoinedOutcome,
        effects: Effects,
        now: Timestamp,
    ) -> Result<()> {
        self.timed("resolve_joined", self.inner.resolve_joined(lease, turn, outcome, effects, now)).await
    }

    async fn reserve_budget(
        &self,
        lease: Lease,
        budgets: Vec<BudgetLimit>,
        day: Day,
        now: Timestamp,
    ) -> Result<BudgetDecision> {
        self.timed("reserve_budget", self.inner.reserve_budget(lease, budgets, day, now)).await
    }

    async fn finish(&self, lease: Lease, finish: Finish, now: Timestamp) -> Result<()> {
        let (state, code) = (finish.state, finish.error_code.clone());
        self.counted("finish", self.inner.finish(lease, finish, now), |()| {
            // A short turn ends before its first batch of events is appended.
            self.metrics.events_appended(lease.turn, now);
            self.metrics.turn_ended(Some(lease.turn), state, code.as_deref(), now);
        })
        .await
    }

    async fn hand_back(&self, lease: Lease, hand_back: HandBack, now: Timestamp) -> Result<()> {
        let kind = hand_back.kind;
        let count = |(): &()| self.metrics.turn_handed_back(kind);
        self.counted("hand_back", self.inner.hand_back(lease, hand_back, now), count).await
    }
}

#[async_trait]
impl DeliveryStore for MeasuredStore {
    async fn enqueue(&self, deliveries: Vec<NewDelivery>, now: Timestamp) -> Result<u32> {
        self.timed("enqueue", self.inner.enqueue(deliveries, now)).await
    }

    async fn claim_deliveries(&self, claim: DeliveryClaim, now: Timestamp) -> Result<Vec<ClaimedDelivery>> {
        self.timed("claim_deliveries", self.inner.claim_deliveries(claim, now)).await
    }

    async fn advance_delivery(
        &self,
        lease: DeliveryLease,
        step: DeliveryStep,
        effects: Effects,
        now: Timestamp,
    ) -> Result<Delivery> {
        let copy = step.clone();
        let count = |delivery: &Delivery| self.metrics.delivery_advanced(&delivery.address.channel, &copy);
        self.counted("advance_delivery", self.inner.advance_delivery(lease, step, effects, now), count).await
    }

    async fn retry_delivery(&self, id: DeliveryId, now: Timestamp) -> Result<Delivery> {
        self.timed("retry_delivery", self.inner.retry_delivery(id, now)).await
    }

    async fn deliveries(&self, filter: DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>> {
        self.inner.deliveries(filter, page).await
    }
}

#[async_trait]
impl ScheduleStore for MeasuredStore {
    async fn put_schedule(&self, schedule: NewSchedule, now: Timestamp) -> Result<Schedule> {
        self.timed("put_schedule", self.inner.put_schedule(schedule, now)).await
    }

    async fn schedule(&self, id: ScheduleId) -> Result<Option<Schedule>> {
        self.inner.schedule(id).await
    }

    async fn delete_schedule(&self, id: ScheduleId) -> Result<bool> {
        self.timed("delete_schedule", self.inner.delete_schedule(id)).await
    }

    async fn schedules(&self, filter: ScheduleFilter, page: PageRequest) -> Result<Page<Schedule>> {
        self.inner.schedules(filter, page).await
    }

    async fn fire_schedule(&self, firing: ScheduleFiring, limits: QueueLimits, now: Timestamp) -> Result<FireOutcome> {
        self.counted("fire_schedule", self.inner.fire_schedule(firing, limits, now), |outcome| {
            if let FireOutcome::Fired(Some(Accepted::New(_))) = outcome {
                self.metrics.message_accepted("schedule", false);
            }
        })
        .await
    }
}
