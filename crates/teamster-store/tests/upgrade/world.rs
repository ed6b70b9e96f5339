//! What the stores of the fixtures contain: a row of each kind, in the states that matter after a restart.

use std::time::Duration;

use teamster_store::{
    Accepted, AcceptedTurn, AccessStore as _, AttemptEnd, ChatAddress, Claim, ClaimRequest, ConversationId, Day,
    DeliveryFilter, DeliveryId, DeliveryStore as _, Effects, EndState, Finish, HostId, IdempotencyKey,
    IntakeStore as _, Json, LogStore as _, MaintenanceStore as _, MessageId, MessageMode, NewAuditEntry,
    NewConversation, NewDelivery, NewEvent, NewMessage, NewPermission, NewSchedule, PageRequest, PermissionId,
    PermissionStore as _, Progress, QueueLimits, ScheduleId, ScheduleStore as _, Seq, Session, SessionChange,
    SqliteStore, Target, Timestamp, Token, TokenId, TurnId, TurnState, Usage, UsageEntry, WorkStore as _, WorkerId,
};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LIMITS: QueueLimits = QueueLimits { chat: 100, total: 100 };
/// The turn that has ended, and those that run and wait in another conversation.
const ENDED: u128 = 1;
const RUNNING: u128 = 2;
const QUEUED: u128 = 3;

fn event(kind: &str, turn: u128) -> NewEvent {
    let body = Json::parse(r#"{"text":"grüß 👋 'quoted'"}"#).unwrap();
    NewEvent { kind: kind.to_owned(), turn: Some(TurnId::new(Uuid::from_u128(turn))), at: NOW, body }
}

fn address(chat: &str) -> ChatAddress {
    ChatAddress { channel: "http".to_owned(), chat: chat.to_owned(), thread: String::new() }
}

fn message(number: u128, chat: &str) -> NewMessage {
    let conversation = NewConversation {
        id: ConversationId::new(Uuid::from_u128(100 + number)),
        address: address(chat),
        agent: "claude".to_owned(),
        title: Some("A title".to_owned()),
        settings: Json::parse(r#"{"model":"m"}"#).unwrap(),
    };
    NewMessage {
        id: MessageId::new(Uuid::from_u128(200 + number)),
        turn: TurnId::new(Uuid::from_u128(number)),
        target: Target::Address(conversation),
        channel_ids: vec![number.to_string()],
        idempotency: Some(IdempotencyKey { scope: "t".to_owned(), key: number.to_string(), body_hash: [7; 32] }),
        author: "alice".to_owned(),
        text: "it's a message".to_owned(),
        details: Json::empty(),
        mode: MessageMode::Queue,
        event: event("turn_queued", number),
    }
}

async fn claim(store: &SqliteStore) -> Claim {
    let request = ClaimRequest {
        worker: WorkerId::new("worker"),
        host: HostId::new("host"),
        lease_for: Duration::from_secs(30),
        max_running: 10,
        max_running_per_chat: 10,
        affinity: Duration::ZERO,
    };
    store.claim(request, NOW).await.unwrap().unwrap()
}

fn delivery() -> NewDelivery {
    NewDelivery {
        id: DeliveryId::new(Uuid::from_u128(300)),
        key: "answer".to_owned(),
        address: address("ended"),
        conversation: Some(ConversationId::new(Uuid::from_u128(101))),
        turn: Some(TurnId::new(Uuid::from_u128(ENDED))),
        body: Json::empty(),
        not_before: NOW,
    }
}

fn finish() -> Finish {
    let session = Session { id: "session".to_owned(), host: HostId::new("host") };
    let usage = Usage { input_tokens: 10, output_tokens: 5, cost_micros: 1234 };
    Finish {
        state: EndState::Done,
        result: Some(Json::parse(r#"{"text":"answer"}"#).unwrap()),
        error_code: None,
        attempt: AttemptEnd {
            session: SessionChange::Set { agent: "claude".to_owned(), session },
            usage: Some(UsageEntry { day: Day::new(20_000), agent: "claude".to_owned(), usage }),
            closings: Vec::new(),
            effects: Effects { events: vec![event("turn_finished", ENDED)], deliveries: vec![delivery()] },
        },
    }
}

/// Fills a new store.
pub(crate) async fn write(store: &SqliteStore) {
    store.accept(message(ENDED, "ended"), LIMITS, NOW).await.unwrap();
    let ended = claim(store).await;
    store.start_attempt(ended.lease, Effects::events(vec![event("turn_started", ENDED)]), NOW).await.unwrap();
    store.append(ended.lease, Progress::Tools, Effects::events(vec![event("text", ENDED)]), NOW).await.unwrap();
    store.finish(ended.lease, finish(), NOW).await.unwrap();

    store.accept(message(RUNNING, "running"), LIMITS, NOW).await.unwrap();
    store.accept(message(QUEUED, "running"), LIMITS, NOW).await.unwrap();
    let running = claim(store).await;
    store.start_attempt(running.lease, Effects::events(vec![event("turn_started", RUNNING)]), NOW).await.unwrap();
    let id = PermissionId::new(Uuid::from_u128(400));
    let deadline = Timestamp::from_millis(NOW.as_millis() + 3_600_000);
    let request = NewPermission { id, body: Json::empty(), deadline };
    let effects = Effects::events(vec![event("permission_request", RUNNING)]);
    store.request_permission(running.lease, request, effects, NOW).await.unwrap();

    let (id, conversation) = (ScheduleId::new(Uuid::from_u128(500)), ended.conversation.id);
    let schedule = NewSchedule { id, conversation, body: Json::empty(), next_at: Some(NOW) };
    store.put_schedule(schedule, NOW).await.unwrap();
    let token = Token {
        id: TokenId::new(Uuid::from_u128(600)),
        hash: [9; 32],
        owner: "alice".to_owned(),
        scopes: Json::parse(r#"["read"]"#).unwrap(),
        created_at: NOW,
        revoked_at: None,
    };
    store.add_token(token).await.unwrap();
    let entry = NewAuditEntry {
        actor: "alice".to_owned(),
        action: "token_created".to_owned(),
        subject: "600".to_owned(),
        origin: "127.0.0.1".to_owned(),
        details: Json::empty(),
    };
    store.record_audit(entry, NOW).await.unwrap();
    store.set_channel_state("worker:host".to_owned(), Json::parse(r#""worker""#).unwrap()).await.unwrap();
}

/// Checks that a store has what [`write`] has written, and works.
pub(crate) async fn check(store: &SqliteStore) {
    let status = store.status(NOW).await.unwrap();
    assert_eq!((status.conversations, status.queued_turns, status.running_turns), (2, 1, 1));
    assert_eq!((status.open_permissions, status.pending_deliveries), (1, 1));
    let turn = store.turn(TurnId::new(Uuid::from_u128(ENDED))).await.unwrap().unwrap();
    assert_eq!((turn.state, turn.attempts, turn.progress), (TurnState::Done, 1, Progress::Tools));
    assert_eq!((turn.message.text.as_str(), turn.usage.cost_micros), ("it's a message", 1234));
    let log = store.events(turn.conversation, Seq::START, 100).await.unwrap().events;
    let kinds: Vec<_> = log.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["turn_queued", "turn_started", "text", "turn_finished"]);
    assert_eq!(log[2].body.as_str(), r#"{"text":"grüß 👋 'quoted'"}"#);
    let deliveries = store.deliveries(DeliveryFilter::default(), PageRequest::first(10)).await.unwrap();
    assert_eq!(deliveries.items[0].key, "answer");
    assert!(store.token_by_hash([9; 32]).await.unwrap().is_some());
    assert_eq!(store.audit_log(PageRequest::first(10)).await.unwrap().items.len(), 1);
    assert!(store.schedule(ScheduleId::new(Uuid::from_u128(500))).await.unwrap().is_some());
    assert!(store.channel_state("worker:host".to_owned()).await.unwrap().is_some());

    // A repeated message is still known, and the work of the old process continues.
    for number in [ENDED, RUNNING, QUEUED] {
        let again = store.accept(message(number, "other"), LIMITS, NOW).await.unwrap();
        let Accepted::Duplicate(AcceptedTurn { turn, .. }) = again else { panic!("{again:?}") };
        assert_eq!(turn, TurnId::new(Uuid::from_u128(number)));
    }
    assert_eq!(store.expire_leases(WorkerId::new("worker"), NOW).await.unwrap(), 1);
    let running = claim(store).await;
    assert_eq!(running.turn.id, TurnId::new(Uuid::from_u128(RUNNING)));
    assert!(running.interrupted && running.open_permissions.len() == 1);
    let next = Finish { attempt: AttemptEnd { usage: None, ..empty_end() }, ..finish() };
    store.finish(running.lease, next, NOW).await.unwrap();
    assert_eq!(claim(store).await.turn.id, TurnId::new(Uuid::from_u128(QUEUED)));
}

fn empty_end() -> AttemptEnd {
    AttemptEnd { session: SessionChange::Keep, usage: None, closings: Vec::new(), effects: Effects::default() }
}
