//! Promises about running turns.

use std::time::Duration;

use super::suite;
use super::world::{LEASE, WIDE, World, done, plain_end};
use crate::error::StoreError;
use crate::ids::{ConversationId, Day, HostId, Json, Seq, Timestamp, TurnId};
use crate::records::{
    AttemptEnd, BudgetDecision, BudgetLimit, BudgetStatus, CancelOutcome, CancelScope, ConversationPatch,
    ConversationState, Effects, EndState, Finish, HandBack, HandBackKind, JoinedOutcome, Lease, Progress, Session,
    SessionChange, TurnState, Usage, UsageEntry, UsageQuery,
};

suite![
    a_finished_turn_its_answer_its_session_and_its_usage_are_one_transaction,
    a_retried_turn_waits_until_its_time_and_keeps_its_place,
    a_pause_ends_at_its_time_or_by_request,
    a_turn_that_is_handed_back_at_a_shutdown_has_lost_no_attempt,
    progress_never_decreases_within_an_attempt,
    a_turn_knows_that_one_of_its_attempts_has_called_a_tool,
    a_joined_turn_ends_with_the_turn_it_joined,
    a_joined_turn_waits_again_if_the_turn_is_handed_back,
    a_message_that_the_agent_has_not_taken_waits_again_at_the_end_of_the_turn_and_at_the_next_claim,
    a_message_that_cannot_go_into_the_running_turn_waits_or_has_failed,
    an_abort_of_a_message_that_was_not_taken_is_not_lost,
    an_abort_ends_a_pause_that_starts_after_it,
    a_session_belongs_to_its_agent,
    a_session_records_since_when_another_agent_has_worked,
    removed_sessions_stay_removed_after_a_running_turn,
    open_turns_are_those_that_have_not_ended,
    a_budget_counts_costs_and_reservations_of_all_workers,
    usage_is_kept_by_day_agent_conversation_and_author,
];

async fn a_finished_turn_its_answer_its_session_and_its_usage_are_one_transaction(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let claim = world.claim("w").await;
    let (taken, free) = (world.id(), world.id());
    let store = world.store();
    let existing = super::records::delivery(taken, "a", world.now());
    store.enqueue(vec![existing.clone()], world.now()).await.unwrap();

    let mut end = Finish { result: Some(Json::parse("\"answer\"").unwrap()), ..done() };
    end.attempt.session = SessionChange::Set {
        agent: "claude".to_owned(),
        session: Session { id: "s".to_owned(), host: HostId::new("host") },
    };
    end.attempt.effects.events = vec![world.event("turn_finished")];
    // A delivery with a new key and the id of another one cannot be added.
    end.attempt.effects.deliveries = vec![super::records::delivery(free, "a", world.now())];
    end.attempt.effects.deliveries[0].id = existing.id;
    let failed = store.finish(claim.lease, end.clone(), world.now()).await;
    assert!(matches!(failed, Err(StoreError::Exists { .. })), "{failed:?}");
    let turn = store.turn(accepted.turn).await.unwrap().unwrap();
    assert_eq!((turn.state, turn.result), (TurnState::Running, None));
    assert_eq!(world.log(accepted.conversation).await.len(), 1);

    end.attempt.effects.deliveries[0].id = crate::ids::DeliveryId::new(free);
    store.finish(claim.lease, end, world.now()).await.unwrap();
    let turn = store.turn(accepted.turn).await.unwrap().unwrap();
    assert_eq!((turn.state, turn.ended_at), (TurnState::Done, Some(world.now())));
    assert_eq!(turn.result.unwrap().as_str(), "\"answer\"");
    assert_eq!(store.status(world.now()).await.unwrap().pending_deliveries, 2);
    let conversation = store.conversation(accepted.conversation, world.now()).await.unwrap().unwrap();
    assert_eq!((conversation.state, conversation.worker), (ConversationState::Idle, None));
    assert_eq!(world.log(accepted.conversation).await.len(), 2);
}

async fn hand_back(world: &World, lease: Lease, kind: HandBackKind) {
    world.store().hand_back(lease, HandBack { kind, attempt: plain_end() }, world.now()).await.unwrap();
}

async fn state(world: &World, id: ConversationId) -> ConversationState {
    world.store().conversation(id, world.now()).await.unwrap().unwrap().state
}

async fn a_retried_turn_waits_until_its_time_and_keeps_its_place(world: &mut World) {
    let first = world.accept_in("a").await;
    world.accept_in("a").await;
    let claim = world.claim("w").await;
    let (delay, moment) = (Duration::from_secs(5), Duration::from_millis(1));
    hand_back(world, claim.lease, HandBackKind::Retry(world.now().after(delay + moment))).await;
    assert_eq!(state(world, first.conversation).await, ConversationState::Queued);
    world.advance(delay).await;
    assert!(world.try_claim("w").await.is_none());
    world.advance(moment).await;
    let again = world.claim("w").await;
    assert_eq!((again.lease.turn, again.interrupted), (first.turn, false));
}

async fn a_pause_ends_at_its_time_or_by_request(world: &mut World) {
    let id = world.accept_in("a").await.conversation;
    for by_request in [false, true] {
        let claim = world.claim("w").await;
        hand_back(world, claim.lease, HandBackKind::Pause(world.now().after(LEASE))).await;
        assert_eq!(state(world, id).await, ConversationState::Paused);
        assert!(world.try_claim("w").await.is_none());
        if by_request {
            let effects = Effects::events(vec![world.event("resumed")]);
            let resumed = world.store().resume_conversation(id, effects, world.now()).await.unwrap();
            assert_eq!((resumed.state, resumed.paused_until), (ConversationState::Queued, None));
        } else {
            world.advance(LEASE).await;
            assert_eq!(state(world, id).await, ConversationState::Queued);
        }
    }
    world.claim("w").await;
    assert_eq!(state(world, id).await, ConversationState::Running);
    let before = world.store().conversation(id, world.now()).await.unwrap().unwrap().last_seq;
    let effects = Effects::events(vec![world.event("resumed")]);
    let refused = world.store().resume_conversation(id, effects, world.now()).await;
    assert!(matches!(refused, Err(StoreError::WrongState { state: "running", required: "paused", .. })), "{refused:?}");
    let after = world.store().conversation(id, world.now()).await.unwrap().unwrap().last_seq;
    assert_eq!(before, after, "a refusal has no event");
}

async fn a_turn_that_is_handed_back_at_a_shutdown_has_lost_no_attempt(world: &mut World) {
    world.accept_in("a").await;
    for _ in 0..3 {
        let lease = world.claim("w").await.lease;
        let attempt = world.store().start_attempt(lease, Effects::default(), world.now()).await.unwrap();
        assert_eq!(attempt, 1);
        hand_back(world, lease, HandBackKind::Shutdown).await;
    }
    let lease = world.claim("w").await.lease;
    assert_eq!(world.store().start_attempt(lease, Effects::default(), world.now()).await.unwrap(), 1);
    hand_back(world, lease, HandBackKind::Retry(world.now())).await;
    let lease = world.claim("w").await.lease;
    assert_eq!(world.store().start_attempt(lease, Effects::default(), world.now()).await.unwrap(), 2);
}

async fn progress_never_decreases_within_an_attempt(world: &mut World) {
    let turn = world.accept_in("a").await.turn;
    let lease = world.claim("w").await.lease;
    let steps =
        [(Progress::Text, Progress::Text), (Progress::Tools, Progress::Tools), (Progress::Nothing, Progress::Tools)];
    for (progress, expected) in steps {
        world.store().append(lease, progress, Effects::default(), world.now()).await.unwrap();
        assert_eq!(world.store().turn(turn).await.unwrap().unwrap().progress, expected);
    }
    world.store().start_attempt(lease, Effects::default(), world.now()).await.unwrap();
    assert_eq!(world.store().turn(turn).await.unwrap().unwrap().progress, Progress::Nothing);
}

async fn a_turn_knows_that_one_of_its_attempts_has_called_a_tool(world: &mut World) {
    let turn = world.accept_in("a").await.turn;
    let ran_tools = async |world: &World| world.store().turn(turn).await.unwrap().unwrap().ran_tools;
    let lease = world.claim("w").await.lease;
    world.store().append(lease, Progress::Text, Effects::default(), world.now()).await.unwrap();
    assert!(!ran_tools(world).await);
    world.store().append(lease, Progress::Tools, Effects::default(), world.now()).await.unwrap();
    hand_back(world, lease, HandBackKind::Retry(world.now())).await;
    let lease = world.claim("w").await.lease;
    world.store().start_attempt(lease, Effects::default(), world.now()).await.unwrap();
    assert!(ran_tools(world).await);
    let failed = Finish { state: EndState::Failed, ..done() };
    world.store().finish(lease, failed, world.now()).await.unwrap();
    world.store().requeue_turn(turn, WIDE, Effects::default(), world.now()).await.unwrap();
    assert!(!ran_tools(world).await);
}

async fn a_joined_turn_ends_with_the_turn_it_joined(world: &mut World) {
    let lead = world.accept_in("a").await;
    let steered = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    let store = world.store();
    let effects = Effects::events(vec![world.event("turn_joined")]);
    store.join_turn(lease, steered.turn, effects, world.now()).await.unwrap();
    let again = store.join_turn(lease, steered.turn, Effects::default(), world.now()).await;
    assert!(matches!(again, Err(StoreError::WrongState { .. })), "{again:?}");
    resolve(world, lease, steered.turn, JoinedOutcome::Taken).await;
    let failed = Finish { state: EndState::Failed, error_code: Some("TIMEOUT".to_owned()), ..done() };
    store.finish(lease, failed, world.now()).await.unwrap();
    for id in [lead.turn, steered.turn] {
        let turn = store.turn(id).await.unwrap().unwrap();
        assert_eq!((turn.state, turn.error_code.as_deref()), (TurnState::Failed, Some("TIMEOUT")));
    }
    assert!(world.try_claim("w").await.is_none());
}

async fn a_joined_turn_waits_again_if_the_turn_is_handed_back(world: &mut World) {
    let lead = world.accept_in("a").await;
    let steered = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    world.store().join_turn(lease, steered.turn, Effects::default(), world.now()).await.unwrap();
    resolve(world, lease, steered.turn, JoinedOutcome::Taken).await;
    world.advance(LEASE).await;
    let claim = world.claim("v").await;
    assert_eq!(claim.joined, [steered.turn]);
    hand_back(world, claim.lease, HandBackKind::Retry(world.now())).await;
    for turn in [lead.turn, steered.turn] {
        let claim = world.claim("w").await;
        assert_eq!((claim.lease.turn, claim.joined), (turn, Vec::new()));
        world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    }
}

async fn resolve(world: &World, lease: Lease, turn: TurnId, outcome: JoinedOutcome) {
    world.store().resolve_joined(lease, turn, outcome, Effects::default(), world.now()).await.unwrap();
}

async fn a_message_that_the_agent_has_not_taken_waits_again_at_the_end_of_the_turn_and_at_the_next_claim(
    world: &mut World,
) {
    for end in [EndState::Done, EndState::Failed, EndState::Aborted] {
        let lead = world.accept_in("a").await;
        let steered = world.accept_in("a").await;
        let lease = world.claim("w").await.lease;
        world.store().join_turn(lease, steered.turn, Effects::default(), world.now()).await.unwrap();
        world.store().finish(lease, Finish { state: end, ..done() }, world.now()).await.unwrap();
        assert_eq!(world.store().turn(lead.turn).await.unwrap().unwrap().state, end.turn_state());
        let claim = world.claim("w").await;
        assert_eq!((claim.lease.turn, claim.interrupted, claim.turn.joined), (steered.turn, false, None));
        world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    }
    let lead = world.accept_in("a").await;
    let steered = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    world.store().join_turn(lease, steered.turn, Effects::default(), world.now()).await.unwrap();
    world.advance(LEASE).await;
    let claim = world.claim("v").await;
    assert_eq!((claim.lease.turn, claim.interrupted, claim.joined), (lead.turn, true, Vec::new()));
    let waiting = world.store().turn(steered.turn).await.unwrap().unwrap();
    assert_eq!((waiting.state, waiting.joined), (TurnState::Queued, None));
}

async fn a_message_that_cannot_go_into_the_running_turn_waits_or_has_failed(world: &mut World) {
    let lead = world.accept_in("a").await;
    let (waits, failed) = (world.accept_in("a").await, world.accept_in("a").await);
    let lease = world.claim("w").await.lease;
    let store = world.store();
    for turn in [lead.turn, waits.turn] {
        let early = store.resolve_joined(lease, turn, JoinedOutcome::Taken, Effects::default(), world.now()).await;
        assert!(matches!(early, Err(StoreError::WrongState { .. })), "{early:?}");
    }
    for turn in [waits.turn, failed.turn] {
        store.join_turn(lease, turn, Effects::default(), world.now()).await.unwrap();
    }
    resolve(world, lease, waits.turn, JoinedOutcome::Waits).await;
    resolve(world, lease, failed.turn, JoinedOutcome::Failed("INTERRUPTED".to_owned())).await;
    store.finish(lease, done(), world.now()).await.unwrap();
    let ended = store.turn(failed.turn).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
    assert_eq!(world.claim("w").await.lease.turn, waits.turn);
    let late = store.resolve_joined(lease, waits.turn, JoinedOutcome::Taken, Effects::default(), world.now()).await;
    assert!(matches!(late, Err(StoreError::LeaseLost { .. })), "{late:?}");
}

async fn an_abort_of_a_message_that_was_not_taken_is_not_lost(world: &mut World) {
    let lead = world.accept_in("a").await;
    let steered = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    let store = world.store();
    store.join_turn(lease, steered.turn, Effects::default(), world.now()).await.unwrap();
    let outcome = store.cancel_turn(steered.turn, CancelScope::Open, Effects::default(), world.now()).await.unwrap();
    assert_eq!(outcome, CancelOutcome::Requested);
    assert!(store.turn(lead.turn).await.unwrap().unwrap().abort_requested);
    store.finish(lease, Finish { state: EndState::Aborted, ..done() }, world.now()).await.unwrap();
    assert!(world.claim("w").await.turn.abort_requested);
}

async fn an_abort_ends_a_pause_that_starts_after_it(world: &mut World) {
    let turn = world.accept_in("a").await.turn;
    let claim = world.claim("w").await;
    let cancelled = world.store().cancel_turn(turn, CancelScope::Open, Effects::default(), world.now()).await;
    assert_eq!(cancelled.unwrap(), CancelOutcome::Requested);
    hand_back(world, claim.lease, HandBackKind::Pause(world.now().after(LEASE))).await;
    let again = world.claim("w").await.turn;
    assert!(again.id == turn && again.abort_requested, "it does not wait for the end of the pause");
}

async fn a_session_belongs_to_its_agent(world: &mut World) {
    let id = world.accept_in("a").await.conversation;
    let claim = world.claim("w").await;
    let session = Session { id: "s".to_owned(), host: HostId::new("host") };
    // The agent was changed while the turn ran.
    let patch = ConversationPatch { agent: Some("codex".to_owned()), ..Default::default() };
    world.store().update_conversation(id, patch, Effects::default(), world.now()).await.unwrap();
    let mut end = done();
    end.attempt.session = SessionChange::Set { agent: "claude".to_owned(), session: session.clone() };
    world.store().finish(claim.lease, end, world.now()).await.unwrap();
    for (agent, expected) in [("codex", None), ("claude", Some(session))] {
        let patch = ConversationPatch { agent: Some(agent.to_owned()), ..Default::default() };
        let shown = world.store().update_conversation(id, patch, Effects::default(), world.now()).await.unwrap();
        assert_eq!(shown.session_id.as_ref(), expected.as_ref().map(|session: &Session| &session.id));
        world.accept_in("a").await;
        let claim = world.claim("w").await;
        assert_eq!(claim.session, expected);
        world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    }
}

async fn a_session_records_since_when_another_agent_has_worked(world: &mut World) {
    let mut known = Vec::new();
    for agent in ["claude", "claude", "codex", "codex", "claude", "codex", "codex"] {
        let id = world.accept_in("a").await.conversation;
        let patch = ConversationPatch { agent: Some(agent.to_owned()), ..ConversationPatch::default() };
        world.store().update_conversation(id, patch, Effects::default(), world.now()).await.unwrap();
        let claim = world.claim("w").await;
        known.push((claim.session.is_some(), claim.missed_since.map(Seq::get)));
        let mut end = done();
        let session = Session { id: agent.to_owned(), host: HostId::new("host") };
        end.attempt.session = SessionChange::Set { agent: agent.to_owned(), session };
        end.attempt.effects.events = vec![world.event("done")];
        world.store().finish(claim.lease, end, world.now()).await.unwrap();
    }
    // Each turn has two events.
    let expected =
        [(false, None), (true, None), (false, None), (true, None), (true, Some(4)), (true, Some(8)), (true, None)];
    assert_eq!(known, expected);
}

fn usage(cost_micros: u64) -> UsageEntry {
    let usage = Usage { input_tokens: 10, output_tokens: 1, cost_micros };
    UsageEntry { day: Day::new(5), agent: "claude".to_owned(), usage }
}

async fn a_budget_counts_costs_and_reservations_of_all_workers(world: &mut World) {
    for chat in ["a", "b"] {
        world.accept_in(chat).await;
    }
    let (first, second) = (world.claim("w").await.lease, world.claim("v").await.lease);
    let (day, store) = (Day::new(5), world.store());
    let limit = BudgetLimit { scope: "all".to_owned(), limit_micros: 100, reserve_micros: 60 };
    let wide = BudgetLimit { scope: "wide".to_owned(), limit_micros: u64::MAX, reserve_micros: 1 };
    let reserve = async |lease, now: Timestamp| {
        store.reserve_budget(lease, vec![wide.clone(), limit.clone()], day, now).await.unwrap()
    };
    let now = world.now();
    assert_eq!(reserve(first, now).await, BudgetDecision::Reserved);
    assert_eq!(reserve(first, now).await, BudgetDecision::Reserved);
    let status = BudgetStatus { spent_micros: 0, reserved_micros: 60 };
    assert_eq!(reserve(second, now).await, BudgetDecision::Exceeded { scope: "all".to_owned(), status });
    // A refused turn has reserved nothing, not even of the budget with room.
    let wide = store.budget("wide".to_owned(), day).await.unwrap();
    assert_eq!(wide.reserved_micros, 1);
    let mut end = done();
    end.attempt.usage = Some(usage(30));
    store.finish(first, end, now).await.unwrap();
    assert_eq!(reserve(second, now).await, BudgetDecision::Reserved);
    let status = store.budget("all".to_owned(), day).await.unwrap();
    assert_eq!(status, BudgetStatus { spent_micros: 30, reserved_micros: 60 });
    assert_eq!(store.budget("all".to_owned(), Day::new(6)).await.unwrap(), BudgetStatus::default());
}

async fn usage_is_kept_by_day_agent_conversation_and_author(world: &mut World) {
    let accepted = world.accept_in("a").await;
    let lease = world.claim("w").await.lease;
    let mut attempt = plain_end();
    attempt.usage = Some(usage(7));
    let back = HandBack { kind: HandBackKind::Retry(world.now()), attempt: attempt.clone() };
    world.store().hand_back(lease, back, world.now()).await.unwrap();
    let lease = world.claim("w").await.lease;
    world.store().finish(lease, Finish { attempt, ..done() }, world.now()).await.unwrap();
    let sum = Usage { input_tokens: 20, output_tokens: 2, cost_micros: 14 };
    assert_eq!(world.store().turn(accepted.turn).await.unwrap().unwrap().usage, sum);
    world.store().delete_conversation(accepted.conversation, world.now()).await.unwrap();
    let query = UsageQuery { from: Day::new(5), to: Day::new(5), conversation: None };
    let rows = world.store().usage(query).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].author.as_str(), rows[0].conversation, rows[0].usage), ("alice", accepted.conversation, sum));
    let other = UsageQuery { from: Day::new(6), to: Day::new(9), conversation: None };
    assert_eq!(world.store().usage(other).await.unwrap(), []);
}

async fn removed_sessions_stay_removed_after_a_running_turn(world: &mut World) {
    let conversation = world.accept_in("a").await.conversation;
    let claim = world.claim("w").await;
    let events = |world: &World| Effects::events(vec![world.event("session_reset")]);
    let busy = world.store().forget_sessions(conversation, events(world), world.now()).await;
    assert!(matches!(busy, Err(StoreError::ConversationBusy { .. })), "{busy:?}");
    let session = Session { id: "s1".to_owned(), host: HostId::new("host") };
    let set = SessionChange::Set { agent: "claude".to_owned(), session };
    let finish = Finish { attempt: AttemptEnd { session: set, ..plain_end() }, ..done() };
    world.store().finish(claim.lease, finish, world.now()).await.unwrap();
    let log = world.log(conversation).await.len();
    world.store().forget_sessions(conversation, events(world), world.now()).await.unwrap();
    assert_eq!(world.log(conversation).await.len(), log + 1);
    world.accept_in("a").await;
    let next = world.claim("w").await;
    assert_eq!(next.session, None);
    assert!(next.lease.epoch > claim.lease.epoch.next(), "a kept session must not fit the next claim");
}

async fn open_turns_are_those_that_have_not_ended(world: &mut World) {
    let first = world.accept_in("a").await;
    let second = world.accept_in("a").await;
    world.accept_in("b").await;
    let open = async |world: &World| {
        let turns = world.store().open_turns(first.conversation).await.unwrap();
        turns.into_iter().map(|turn| (turn.id, turn.state)).collect::<Vec<_>>()
    };
    let claim = world.claim("w").await;
    assert_eq!(open(world).await, [(first.turn, TurnState::Running), (second.turn, TurnState::Queued)]);
    world.store().finish(claim.lease, done(), world.now()).await.unwrap();
    assert_eq!(open(world).await, [(second.turn, TurnState::Queued)]);
}
