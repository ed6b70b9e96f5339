//! The operations of workers.

use std::time::Duration;

use super::super::world::LEASE;
use super::driver::{Driver, both, host, pick, worker};
use super::operation::{Kind, Operation};
use crate::ids::{Day, Json, PermissionId};
use crate::records::{
    Answer, AttemptEnd, BudgetLimit, CancelScope, ClaimRequest, Decision, DeliveryClaim, DeliveryStep, EndState,
    Finish, HandBack, HandBackKind, JoinedOutcome, Lease, NewPermission, PermissionClosing, PermissionOutcome,
    Progress, QueueLimits, Session, SessionChange, Usage, UsageEntry,
};

impl Driver {
    pub(super) async fn run_work(&mut self, operation: Operation) {
        let Operation { kind, first, second, third } = operation;
        match kind {
            Kind::Claim => {
                let request = ClaimRequest {
                    worker: worker(first),
                    host: host(first),
                    lease_for: LEASE / u32::from(second % 3 + 1),
                    max_running: u32::from(third % 4),
                    max_running_per_chat: u32::from(second % 3),
                    affinity: LEASE / u32::from(third % 5 + 1),
                };
                let claim = both!(self, claim(request, self.now)).flatten();
                self.leases.extend(claim.map(|claim| claim.lease));
            }
            Kind::ExpireLeases => _ = both!(self, expire_leases(worker(first), self.now)),
            Kind::Cancel | Kind::Requeue => {
                let Some(turn) = pick(&self.turns, first) else { return };
                let effects = self.effects(second, None);
                let scope = if third.is_multiple_of(2) { CancelScope::Open } else { CancelScope::Waiting };
                let limits = QueueLimits { chat: u32::from(third % 5), total: u32::from(second % 9) };
                match kind {
                    Kind::Cancel => _ = both!(self, cancel_turn(turn, scope, effects, self.now)),
                    _ => _ = both!(self, requeue_turn(turn, limits, effects, self.now)),
                }
            }
            Kind::Answer => {
                let Some(id) = pick(&self.permissions, first) else { return };
                let decision = [Decision::Allow, Decision::AllowAlways, Decision::Deny][usize::from(second % 3)];
                let effects = self.effects(third, None);
                let answer = Answer { id, decision, by: "bob".to_owned(), message: None, effects };
                both!(self, answer_permission(answer, self.now));
            }
            Kind::Enqueue | Kind::ClaimDeliveries | Kind::AdvanceDelivery | Kind::RetryDelivery => {
                self.deliver(operation).await;
            }
            _ => {
                // The latest lease is the likely choice, an old one the interesting one.
                let recent = self.leases.len().saturating_sub(3);
                let known = if first.is_multiple_of(4) { &self.leases[..] } else { &self.leases[recent..] };
                let Some(lease) = pick(known, first) else { return };
                self.run_leased(kind, lease, second, third).await;
            }
        }
    }

    async fn run_leased(&mut self, kind: Kind, lease: Lease, second: u8, third: u8) {
        match kind {
            Kind::Renew => _ = both!(self, renew(vec![lease], LEASE, self.now)),
            Kind::StartAttempt => {
                let effects = self.effects(second, Some(lease));
                both!(self, start_attempt(lease, effects, self.now));
            }
            Kind::Append => {
                let effects = self.effects(second, Some(lease));
                let progress = [Progress::Nothing, Progress::Text, Progress::Tools][usize::from(third % 3)];
                both!(self, append(lease, progress, effects, self.now));
            }
            Kind::Join => {
                let Some(turn) = pick(&self.turns, third) else { return };
                let effects = self.effects(second, Some(lease));
                both!(self, join_turn(lease, turn, effects, self.now));
            }
            Kind::ResolveJoined => {
                let Some(turn) = pick(&self.turns, third) else { return };
                let effects = self.effects(second, Some(lease));
                let outcome = match second % 4 {
                    0 => JoinedOutcome::Waits,
                    1 => JoinedOutcome::Failed("INTERRUPTED".to_owned()),
                    _ => JoinedOutcome::Taken,
                };
                both!(self, resolve_joined(lease, turn, outcome, effects, self.now));
            }
            Kind::Reserve => {
                let budget = |number: u8| BudgetLimit {
                    scope: format!("scope-{}", number % 2),
                    limit_micros: u64::from(number % 64),
                    reserve_micros: u64::from(number % 16),
                };
                both!(self, reserve_budget(lease, vec![budget(second), budget(third)], day(third), self.now));
            }
            Kind::RequestPermission => {
                let id = self.id_or(&self.permissions.clone(), second, PermissionId::new);
                let deadline = self.now.after(LEASE * u32::from(third % 4));
                let request = NewPermission { id, body: Json::empty(), deadline };
                let effects = self.effects(second, Some(lease));
                self.permissions.push(id);
                both!(self, request_permission(lease, request, effects, self.now));
            }
            Kind::ClosePermissions => {
                let closings = self.closings(second);
                both!(self, close_permissions(lease, closings, self.now));
            }
            Kind::Finish => {
                let state = [EndState::Done, EndState::Failed, EndState::Aborted][usize::from(second % 3)];
                let attempt = self.attempt_end(lease, second, third);
                let error_code = matches!(state, EndState::Failed).then(|| "FAILED".to_owned());
                let finish = Finish { state, result: Some(Json::empty()), error_code, attempt };
                both!(self, finish(lease, finish, self.now));
            }
            _ => {
                let hand_back = self.hand_back(lease, second, third);
                both!(self, hand_back(lease, hand_back, self.now));
            }
        }
    }

    fn hand_back(&mut self, lease: Lease, second: u8, third: u8) -> HandBack {
        let later = self.now.after(Duration::from_secs(u64::from(third % 20)));
        let kind = match second % 3 {
            0 => HandBackKind::Retry(later),
            1 => HandBackKind::Pause(later),
            _ => HandBackKind::Shutdown,
        };
        HandBack { kind, attempt: self.attempt_end(lease, second, third) }
    }

    fn closings(&mut self, number: u8) -> Vec<PermissionClosing> {
        let outcome =
            if number.is_multiple_of(2) { PermissionOutcome::TimedOut } else { PermissionOutcome::WorkerLost };
        let ids = [pick(&self.permissions, number), self.permissions.last().copied()];
        let closing = |id| PermissionClosing { id, outcome, effects: self.effects(number, None) };
        ids.into_iter().flatten().map(closing).collect()
    }

    fn attempt_end(&mut self, lease: Lease, second: u8, third: u8) -> AttemptEnd {
        let agent = ["claude", "codex"][usize::from(third % 2)].to_owned();
        let session = match second % 4 {
            0 => SessionChange::Clear { agent: agent.clone() },
            1 => SessionChange::Keep,
            _ => {
                let session = Session { id: format!("s-{second}"), host: host(third / 2) };
                SessionChange::Set { agent: agent.clone(), session }
            }
        };
        let usage = Usage { input_tokens: 3, output_tokens: 2, cost_micros: u64::from(third) };
        let usage = (!third.is_multiple_of(3)).then_some(UsageEntry { day: day(third), agent, usage });
        let closings = if second.is_multiple_of(2) { self.closings(third) } else { Vec::new() };
        AttemptEnd { session, usage, closings, effects: self.effects(third, Some(lease)) }
    }

    async fn deliver(&mut self, operation: Operation) {
        let Operation { kind, first, second, third } = operation;
        match kind {
            Kind::Enqueue => {
                let conversation = pick(&self.conversations, second).filter(|_| second.is_multiple_of(2));
                let new = vec![self.new_delivery(first, conversation), self.new_delivery(third, None)];
                both!(self, enqueue(new, self.now));
            }
            Kind::ClaimDeliveries => {
                let claim = DeliveryClaim {
                    worker: worker(first),
                    lease_for: LEASE / u32::from(second % 3 + 1),
                    channels: vec!["webhook".to_owned()],
                    limit: u32::from(third % 3),
                };
                let claimed = both!(self, claim_deliveries(claim, self.now)).unwrap_or_default();
                self.delivery_leases.extend(claimed.into_iter().map(|one| one.lease));
            }
            Kind::AdvanceDelivery => {
                let recent = self.delivery_leases.len().saturating_sub(2);
                let known =
                    if first.is_multiple_of(4) { &self.delivery_leases[..] } else { &self.delivery_leases[recent..] };
                let Some(lease) = pick(known, first) else { return };
                let part = u32::from(third % 3);
                let step = match second % 12 {
                    0 => DeliveryStep::Renew(LEASE),
                    1..=3 => DeliveryStep::PartStarted(part),
                    4 | 5 => DeliveryStep::PartSent(part, third.is_multiple_of(2).then(|| "m".to_owned())),
                    6 => DeliveryStep::PartNotSent(part),
                    7 => DeliveryStep::Sent,
                    8 => {
                        let later = self.now.after(Duration::from_secs(u64::from(third % 5)));
                        DeliveryStep::Retry(later, "503".to_owned())
                    }
                    9 => DeliveryStep::Postpone(self.now.after(Duration::from_secs(u64::from(third % 5)))),
                    10 => {
                        let at = self.now.after(Duration::from_secs(u64::from(third % 5)));
                        DeliveryStep::Wait { at, error: "no network".to_owned(), attempts: u32::from(third % 3) }
                    }
                    _ if third.is_multiple_of(2) => DeliveryStep::Failed("403".to_owned()),
                    _ => DeliveryStep::Unknown("timeout".to_owned()),
                };
                let effects = self.effects(third, None);
                both!(self, advance_delivery(lease, step, effects, self.now));
            }
            _ => {
                let Some(id) = pick(&self.deliveries, first) else { return };
                both!(self, retry_delivery(id, self.now));
            }
        }
    }
}

fn day(number: u8) -> Day {
    Day::new(i32::from(number % 2))
}
