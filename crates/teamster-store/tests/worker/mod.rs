//! The process that is killed: it accepts messages, runs their turns, and prints what the store has acknowledged.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use teamster_store::{
    AttemptEnd, ChatAddress, ClaimRequest, ConversationId, DeliveryId, Effects, EndState, Finish, HostId,
    IntakeStore as _, Json, MessageId, MessageMode, NewConversation, NewDelivery, NewEvent, NewMessage, Progress,
    QueueLimits, SessionChange, SqliteOptions, SqliteStore, StoreError, Target, Timestamp, TurnId, WorkStore as _,
    WorkerId,
};
use uuid::Uuid;

/// The length of a lease.
const LEASE: Duration = Duration::from_millis(500);

/// The steps of a worker. The test kills it long before the last one.
const STEPS: u64 = 1_000_000;

pub(crate) fn now() -> Timestamp {
    let elapsed = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_millis(i64::try_from(elapsed.as_millis()).unwrap())
}

/// Runs steps. Several tasks use the store, so that operations share transactions.
pub(crate) async fn run(number: u64, file: PathBuf) {
    let options = SqliteOptions { busy_timeout: Duration::from_secs(30), ..SqliteOptions::default() };
    let store = SqliteStore::open(file, options).await.unwrap();
    let accepting = tokio::spawn(accept_all(store.clone(), number));
    for step in 0..STEPS {
        if let Err(error) = turn(&store, number, step, now()).await {
            assert!(matches!(error, StoreError::LeaseLost { .. }), "{error:?}");
        }
        tokio::task::yield_now().await;
    }
    accepting.await.unwrap();
}

fn print(what: &str, turn: TurnId) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{what} {turn}").unwrap();
    output.flush().unwrap();
}

fn id(number: u64, kind: u64, step: u64) -> Uuid {
    Uuid::from_u64_pair(number * 16 + kind, step)
}

async fn accept_all(store: SqliteStore, number: u64) {
    for step in 0..STEPS {
        let now = now();
        let turn = TurnId::new(id(number, 1, step));
        let chat = (step % 5).to_string();
        let conversation = NewConversation {
            id: ConversationId::new(id(number, 2, step)),
            address: ChatAddress { channel: "http".to_owned(), chat, thread: String::new() },
            agent: "claude".to_owned(),
            title: None,
            settings: Json::empty(),
        };
        let message = NewMessage {
            id: MessageId::new(id(number, 3, step)),
            turn,
            target: Target::Address(conversation),
            channel_ids: vec![format!("{number}-{step}")],
            idempotency: None,
            author: "alice".to_owned(),
            text: "text ".repeat(20),
            details: Json::empty(),
            mode: MessageMode::Queue,
            event: event("turn_queued", turn, now),
        };
        match store.accept(message, QueueLimits { chat: 20, total: 50 }, now).await {
            Ok(_) => print("accepted", turn),
            Err(StoreError::QueueFull { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

fn event(kind: &str, turn: TurnId, at: Timestamp) -> NewEvent {
    NewEvent { kind: kind.to_owned(), turn: Some(turn), at, body: Json::empty() }
}

/// Runs a turn, if one waits.
async fn turn(store: &SqliteStore, number: u64, step: u64, now: Timestamp) -> Result<(), StoreError> {
    let request = ClaimRequest {
        worker: WorkerId::new(format!("worker-{number}")),
        host: HostId::new("host"),
        lease_for: LEASE,
        max_running: 10,
        max_running_per_chat: 10,
        affinity: Duration::ZERO,
    };
    let Some(claim) = store.claim(request, now).await? else { return Ok(()) };
    let lease = claim.lease;
    let effects = |kind| Effects::events(vec![event(kind, lease.turn, now)]);
    store.start_attempt(lease, effects("turn_started"), now).await?;
    store.append(lease, Progress::Text, effects("text"), now).await?;
    let delivery = NewDelivery {
        id: DeliveryId::new(id(number, 4, step)),
        key: format!("{}/answer", lease.turn),
        address: claim.conversation.address,
        conversation: Some(lease.conversation),
        turn: Some(lease.turn),
        body: Json::empty(),
        not_before: now,
    };
    let effects = Effects { deliveries: vec![delivery], ..effects("turn_finished") };
    let attempt = AttemptEnd { session: SessionChange::Keep, usage: None, closings: Vec::new(), effects };
    let finish = Finish { state: EndState::Done, result: None, error_code: None, attempt };
    store.finish(lease, finish, now).await?;
    print("finished", lease.turn);
    Ok(())
}
