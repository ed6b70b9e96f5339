//! Claims and turns in the model.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use super::state::{Held, Room, State};
use crate::error::{Entity, Result, StoreError};
use crate::ids::{ConversationId, Day, Seq, Timestamp, TurnId, WorkerId};
use crate::records::{
    AttemptEnd, BudgetDecision, BudgetLimit, Claim, ClaimRequest, Effects, FAIR_SHARE, Finish, HandBack, HandBackKind,
    JoinedOutcome, LONGEST_RETRY_DELAY, Lease, PermissionOutcome, Progress, Renewal, SessionChange, Turn, TurnState,
    Usage, UsageEntry,
};
use crate::store::WorkStore;

#[async_trait]
impl WorkStore for MemoryStore {
    async fn claim(&self, request: ClaimRequest, now: Timestamp) -> Result<Option<Claim>> {
        self.with(|state| {
            let own = state.held(now).filter(|(_, held)| held.worker == request.worker).count();
            let is_at = |limit: u32| own >= usize::try_from(limit).unwrap_or(usize::MAX);
            if is_at(request.max_running) {
                return Ok(None);
            }
            let mut ready: Vec<_> = (state.conversations.iter())
                .filter_map(|(id, room)| Some((state.ready_at(*id, room, now)?, room.key, *id)))
                .filter(|(at, _, id)| state.is_ready(*id, *at, now))
                .collect();
            ready.sort_unstable();
            ready.retain(|(at, _, id)| state.may_claim(*id, *at, &request, now));
            let busy = state.busy_authors(now);
            let is_others = |id: ConversationId| state.next_author(id).is_none_or(|next| !busy.contains(&next));
            let of_others = ready.iter().find(|(_, _, id)| is_others(*id));
            let is_reserved = is_at(request.max_of_busy_authors()) && !busy.is_empty();
            let first = of_others.or(ready.first().filter(|_| !is_reserved)).copied();
            first.map(|(_, _, id)| state.take(id, request, now)).transpose()
        })
    }

    async fn renew(&self, leases: Vec<Lease>, lease_for: Duration, now: Timestamp) -> Result<Vec<Renewal>> {
        self.with(|state| Ok(leases.into_iter().map(|lease| state.renew(lease, lease_for, now)).collect()))
    }

    async fn expire_leases(&self, worker: WorkerId, now: Timestamp) -> Result<u32> {
        self.with(|state| {
            let rooms = state.conversations.values_mut().filter_map(|room| room.held.as_mut());
            let rooms = rooms.filter(|held| held.worker == worker).map(|held| &mut held.until);
            let deliveries = state.deliveries.values_mut().filter_map(|one| one.held.as_mut());
            let deliveries = deliveries.filter(|(sender, _)| *sender == worker).map(|(_, until)| until);
            let mut expired = 0;
            for until in rooms.chain(deliveries).filter(|until| **until > now) {
                *until = now;
                expired += 1;
            }
            Ok(expired)
        })
    }

    async fn start_attempt(&self, lease: Lease, effects: Effects, now: Timestamp) -> Result<u32> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let turn = state.turn_mut(lease.turn)?;
            turn.attempts += 1;
            turn.progress = Progress::Nothing;
            turn.started_at = turn.started_at.or(Some(now));
            let attempt = turn.attempts;
            state.apply(lease.conversation, effects, now)?;
            Ok(attempt)
        })
    }

    async fn append(&self, lease: Lease, progress: Progress, effects: Effects, now: Timestamp) -> Result<Seq> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let turn = state.turn_mut(lease.turn)?;
            turn.progress = turn.progress.max(progress);
            turn.ran_tools |= progress == Progress::Tools;
            state.apply(lease.conversation, effects, now)
        })
    }

    async fn join_turn(&self, lease: Lease, id: TurnId, effects: Effects, now: Timestamp) -> Result<()> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let turn = state.turn_mut(id)?;
            if turn.conversation != lease.conversation {
                return Err(StoreError::not_found(Entity::Turn, id));
            }
            if turn.state != TurnState::Queued {
                let (state, required) = (turn.state.name(), TurnState::Queued.name());
                return Err(StoreError::WrongState { entity: Entity::Turn, id: id.to_string(), state, required });
            }
            turn.state = TurnState::Running;
            turn.joined = Some(lease.turn);
            turn.started_at = turn.started_at.or(Some(now));
            state.apply(lease.conversation, effects, now)?;
            Ok(())
        })
    }

    async fn resolve_joined(
        &self,
        lease: Lease,
        id: TurnId,
        outcome: JoinedOutcome,
        effects: Effects,
        now: Timestamp,
    ) -> Result<()> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_deliveries(&effects.deliveries)?;
            let turn = state.turn_mut(id)?;
            if turn.joined != Some(lease.turn) || turn.state != TurnState::Running {
                let (state, required) = (turn.state.name(), "sent into the running turn");
                return Err(StoreError::WrongState { entity: Entity::Turn, id: id.to_string(), state, required });
            }
            match outcome {
                JoinedOutcome::Taken => turn.taken = true,
                JoinedOutcome::Waits => turn.wait_again(),
                JoinedOutcome::Failed(code) => {
                    turn.state = TurnState::Failed;
                    turn.error_code = Some(code);
                    turn.ended_at = Some(now);
                }
            }
            state.apply(lease.conversation, effects, now)?;
            Ok(())
        })
    }

    async fn reserve_budget(
        &self,
        lease: Lease,
        budgets: Vec<BudgetLimit>,
        day: Day,
        _now: Timestamp,
    ) -> Result<BudgetDecision> {
        self.with(|state| {
            state.check_lease(lease)?;
            for budget in &budgets {
                let status = state.budget_without(&budget.scope, day, Some(lease.turn));
                let taken = status.spent_micros.saturating_add(status.reserved_micros);
                if taken >= budget.limit_micros || taken.saturating_add(budget.reserve_micros) > budget.limit_micros {
                    return Ok(BudgetDecision::Exceeded { scope: budget.scope.clone(), status });
                }
            }
            state.reserved.retain(|(turn, _), _| *turn != lease.turn);
            for budget in budgets {
                state.reserved.insert((lease.turn, budget.scope), (day, budget.reserve_micros));
            }
            Ok(BudgetDecision::Reserved)
        })
    }

    async fn finish(&self, lease: Lease, finish: Finish, now: Timestamp) -> Result<()> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_closings(lease, &finish.attempt.closings, &finish.attempt.effects)?;
            let Finish { state: end, result, error_code, attempt } = finish;
            state.release_joined(lease.turn)?;
            for joined in state.joined(lease.turn) {
                let turn = state.turn_mut(joined)?;
                turn.state = end.turn_state();
                turn.error_code.clone_from(&error_code);
                turn.ended_at = Some(now);
            }
            let turn = state.turn_mut(lease.turn)?;
            turn.state = end.turn_state();
            turn.result = result;
            turn.error_code = error_code;
            turn.ended_at = Some(now);
            state.end_attempt(lease, attempt, now)
        })
    }

    async fn hand_back(&self, lease: Lease, hand_back: HandBack, now: Timestamp) -> Result<()> {
        self.with(|state| {
            state.check_lease(lease)?;
            state.check_closings(lease, &hand_back.attempt.closings, &hand_back.attempt.effects)?;
            for joined in state.joined(lease.turn) {
                state.turn_mut(joined)?.wait_again();
            }
            let turn = state.turn_mut(lease.turn)?;
            turn.state = TurnState::Queued;
            match hand_back.kind {
                HandBackKind::Retry(at) => turn.not_before = at,
                HandBackKind::Pause(until) => state.room_mut(lease.conversation)?.paused_until = Some(until),
                HandBackKind::Shutdown => turn.attempts = turn.attempts.saturating_sub(1),
            }
            state.end_attempt(lease, hand_back.attempt, now)
        })
    }
}

impl Turn {
    /// Makes a turn that has joined another one wait for its own run.
    fn wait_again(&mut self) {
        self.state = TurnState::Queued;
        self.joined = None;
        self.taken = false;
    }
}

impl State {
    /// Returns the conversations whose lease is valid.
    fn held(&self, now: Timestamp) -> impl Iterator<Item = (&Room, &Held)> {
        let held = self.conversations.values().filter_map(|room| Some((room, room.held.as_ref()?)));
        held.filter(move |(_, held)| held.until > now)
    }

    /// Returns the authors with their share of running turns, each with its channel.
    fn busy_authors(&self, now: Timestamp) -> Vec<(String, String)> {
        let mut running: BTreeMap<_, u32> = BTreeMap::new();
        for (room, held) in self.held(now) {
            if let Some((_, turn)) = self.turns.get(&held.turn) {
                *running.entry((room.address.channel.clone(), turn.message.author.clone())).or_default() += 1;
            }
        }
        running.into_iter().filter(|(_, count)| *count >= FAIR_SHARE).map(|(author, _)| author).collect()
    }

    /// Returns the author of the next turn of a conversation, with its channel.
    fn next_author(&self, id: ConversationId) -> Option<(String, String)> {
        let room = self.conversations.get(&id)?;
        let turns = self.turns_of(id);
        let running = room.held.as_ref().and_then(|held| self.turns.get(&held.turn)).map(|(_, turn)| turn);
        let queued = || turns.iter().map(|(_, turn)| *turn).find(|turn| turn.state == TurnState::Queued);
        let next = running.or_else(queued)?;
        Some((room.address.channel.clone(), next.message.author.clone()))
    }

    /// Returns whether the time has passed, or was set by a wrong clock.
    fn is_ready(&self, id: ConversationId, at: Timestamp, now: Timestamp) -> bool {
        let is_wrong = |room: &Room| {
            at > now.after(LONGEST_RETRY_DELAY)
                && room.held.is_none()
                && room.paused_until.is_none_or(|until| until <= now)
        };
        at <= now || self.conversations.get(&id).is_some_and(is_wrong)
    }

    fn may_claim(&self, id: ConversationId, ready_at: Timestamp, request: &ClaimRequest, now: Timestamp) -> bool {
        let Some(room) = self.conversations.get(&id) else { return false };
        let is_same_chat =
            |other: &Room| other.address.channel == room.address.channel && other.address.chat == room.address.chat;
        let of_chat = self.held(now).filter(|(other, held)| is_same_chat(other) && !self.waits(held)).count();
        let is_elsewhere = room.sessions.get(&room.agent).is_some_and(|(session, _)| session.host != request.host);
        of_chat < usize::try_from(request.max_running_per_chat).unwrap_or(usize::MAX)
            && !(is_elsewhere && now < ready_at.after(request.affinity))
    }

    fn take(&mut self, id: ConversationId, request: ClaimRequest, now: Timestamp) -> Result<Claim> {
        let head = self.turns_of(id).into_iter().find(|(_, turn)| turn.state == TurnState::Queued);
        let head = head.map(|(_, turn)| turn.id);
        let expires_at = now.after(request.lease_for);
        let room = self.room_mut(id)?;
        let before = room.held.take();
        let interrupted = before.is_some();
        let id_of_turn = before.map(|held| held.turn).or(head);
        let turn = id_of_turn.ok_or_else(|| StoreError::not_found(Entity::Conversation, id))?;
        room.epoch = room.epoch.next();
        room.held = Some(Held { worker: request.worker, until: expires_at, turn });
        let lease = Lease { conversation: id, turn, epoch: room.epoch };
        let (session, used) = room.sessions.get(&room.agent).cloned().unzip();
        let last = room.sessions.values().map(|(_, used)| *used).max();
        let missed_since = used.filter(|used| last.is_some_and(|last| last > *used));
        self.turn_mut(turn)?.state = TurnState::Running;
        self.release_joined(turn)?;
        let open = self.permissions.values().filter(|one| one.turn == turn && one.closing.is_none());
        Ok(Claim {
            lease,
            expires_at,
            conversation: self.conversation(id, now)?,
            turn: self.turn(turn)?.clone(),
            session,
            missed_since,
            interrupted,
            open_permissions: open.cloned().collect(),
            joined: self.joined(turn),
        })
    }

    fn renew(&mut self, lease: Lease, lease_for: Duration, now: Timestamp) -> Renewal {
        if self.check_lease(lease).is_err() {
            return Renewal::Lost;
        }
        let abort_requested = self.turns.get(&lease.turn).is_some_and(|(_, turn)| turn.abort_requested);
        let held = self.conversations.get_mut(&lease.conversation).and_then(|room| room.held.as_mut());
        match held.filter(|held| held.until > now) {
            Some(held) => {
                held.until = now.after(lease_for);
                Renewal::Renewed { expires_at: held.until, abort_requested }
            }
            None => Renewal::Lost,
        }
    }

    /// Returns the turns whose messages went into a turn, in order.
    fn joined(&self, lead: TurnId) -> Vec<TurnId> {
        let mut joined: Vec<_> = (self.turns.values())
            .filter(|(_, turn)| turn.joined == Some(lead) && turn.state == TurnState::Running)
            .map(|(key, turn)| (*key, turn.id))
            .collect();
        joined.sort_unstable();
        joined.into_iter().map(|(_, id)| id).collect()
    }

    /// Makes the turns wait again whose messages the agent has not taken.
    fn release_joined(&mut self, lead: TurnId) -> Result<()> {
        for joined in self.joined(lead) {
            let turn = self.turn_mut(joined)?;
            if !turn.taken {
                turn.wait_again();
            }
        }
        Ok(())
    }

    /// Ends the attempt of a running turn and releases its conversation.
    fn end_attempt(&mut self, lease: Lease, attempt: AttemptEnd, now: Timestamp) -> Result<()> {
        let AttemptEnd { session, usage, closings, effects } = attempt;
        self.close(lease, closings, now)?;
        self.close_rest(lease, PermissionOutcome::TurnEnded, now);
        let cost = usage.as_ref().map_or(0, |entry| entry.usage.cost_micros);
        if let Some(entry) = usage {
            self.add_usage(lease, entry)?;
        }
        self.settle(lease.turn, cost);
        let last = self.apply(lease.conversation, effects, now)?;
        let room = self.room_mut(lease.conversation)?;
        match session {
            SessionChange::Keep => {}
            SessionChange::Set { agent, session } => _ = room.sessions.insert(agent, (session, last)),
            SessionChange::Clear { agent } => _ = room.sessions.remove(&agent),
        }
        room.held = None;
        room.free_since = now;
        Ok(())
    }

    fn add_usage(&mut self, lease: Lease, entry: UsageEntry) -> Result<()> {
        let UsageEntry { day, agent, usage } = entry;
        let turn = self.turn_mut(lease.turn)?;
        turn.usage = turn.usage.plus(usage);
        let author = turn.message.author.clone();
        let row: &mut Usage = self.usage.entry((day, agent, lease.conversation, author)).or_default();
        *row = row.plus(usage);
        Ok(())
    }

    /// Replaces the reservations of a turn by its cost.
    fn settle(&mut self, turn: TurnId, cost: u64) {
        let own: Vec<_> = self.reserved.keys().filter(|(one, _)| *one == turn).cloned().collect();
        for key in own {
            if let Some((day, _)) = self.reserved.remove(&key) {
                let spent = self.spent.entry((key.1, day)).or_default();
                *spent = spent.saturating_add(cost);
            }
        }
    }
}
