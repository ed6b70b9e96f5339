//! Faults of files: what the store refuses, and what its errors advise.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use teamster_store::{
    Accepted, AccessStore as _, ChatAddress, ConversationFilter, ConversationId, ConversationStore as _, Fork,
    IntakeStore as _, Json, LogStore as _, MaintenanceStore as _, MessageId, MessageMode, NewAuditEntry,
    NewConversation, NewEvent, NewMessage, PageRequest, QueueLimits, SqliteOptions, SqliteStore, StoreError, Target,
    Timestamp, TurnId,
};
use uuid::Uuid;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LIMITS: QueueLimits = QueueLimits { chat: 100_000, total: 100_000 };

fn message(number: u128, text: &str) -> NewMessage {
    let turn = TurnId::new(Uuid::from_u128(number));
    let address = ChatAddress { channel: "http".to_owned(), chat: (number % 4).to_string(), thread: String::new() };
    let conversation = NewConversation {
        id: ConversationId::new(Uuid::from_u128(number)),
        address,
        agent: "claude".to_owned(),
        title: None,
        settings: Json::empty(),
    };
    NewMessage {
        id: MessageId::new(Uuid::from_u128(number)),
        turn,
        target: Target::Address(conversation),
        channel_ids: vec![number.to_string()],
        idempotency: None,
        author: "alice".to_owned(),
        text: text.to_owned(),
        details: Json::empty(),
        mode: MessageMode::Queue,
        event: NewEvent { kind: "turn_queued".to_owned(), turn: Some(turn), at: NOW, body: Json::empty() },
    }
}

async fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, SqliteOptions::default()).await
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(&text, "These are notes and no database, but they are long enough to have a header.".repeat(20)).unwrap();
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (a TEXT)").unwrap();
    for path in [text, other] {
        let before = fs::read(&path).unwrap();
        let refused = open(&path).await.unwrap_err();
        assert!(matches!(refused, StoreError::ForeignFile { .. }), "{refused:?}");
        assert!(refused.to_string().contains("choose another file"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[tokio::test]
async fn a_store_of_a_newer_release_is_refused_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    open(&path).await.unwrap().close().await;
    Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = open(&path).await.unwrap_err();
    assert!(matches!(refused, StoreError::NewerSchema { found: 99, supported: 2, .. }), "{refused:?}");
    assert!(refused.to_string().contains("use the newer release"), "{refused}");
    let version: u32 =
        Connection::open(&path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[tokio::test]
async fn a_damaged_store_is_reported_with_the_way_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await.unwrap();
    for number in 0..400 {
        store.accept(message(number, &"text ".repeat(100)), LIMITS, NOW).await.unwrap();
    }
    store.check().await.unwrap();
    store.close().await;
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    for byte in bytes.iter_mut().skip(8192).take(length - 8192) {
        *byte = 0x5a;
    }
    fs::write(&path, bytes).unwrap();
    let error = match open(&path).await {
        Ok(store) => store.check().await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[tokio::test]
async fn a_full_store_refuses_messages_keeps_the_accepted_ones_and_recovers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let options = SqliteOptions { max_bytes: Some(512 * 1024), ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options).await.unwrap();
    let mut accepted = Vec::new();
    let error = loop {
        // Several calls at a time share a transaction, and the store must not lose any of them.
        let number = u128::try_from(accepted.len()).unwrap();
        let first = message(number, &"x".repeat(8000));
        let second = message(number + 100_000, "short");
        let (first, second) = tokio::join!(store.accept(first, LIMITS, NOW), store.accept(second, LIMITS, NOW));
        match first {
            Ok(Accepted::New(new)) => accepted.push(new.turn),
            Ok(other) => unreachable!("{other:?}"),
            Err(error) => break error,
        }
        drop(second);
        assert!(accepted.len() < 1000, "the store has no limit");
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error:?}");
    assert!(error.to_string().contains("free space"), "{error}");
    for turn in &accepted {
        assert!(store.turn(*turn).await.unwrap().is_some());
    }
    store.close().await;
    let store = open(&path).await.unwrap();
    store.check().await.unwrap();
    let number = u128::try_from(accepted.len()).unwrap();
    let again = store.accept(message(number, &"x".repeat(8000)), LIMITS, NOW).await.unwrap();
    assert!(matches!(again, Accepted::New(_)), "{again:?}");
}

#[tokio::test]
async fn a_store_that_another_process_has_locked_is_reported_after_the_time_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let options = SqliteOptions { busy_timeout: Duration::from_millis(50), ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options).await.unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.accept(message(1, "a"), LIMITS, NOW).await.unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }) && error.is_transient(), "{error:?}");
    // Reads still work.
    assert_eq!(store.status(NOW).await.unwrap().conversations, 0);
    other.execute_batch("COMMIT").unwrap();
    store.accept(message(1, "a"), LIMITS, NOW).await.unwrap();
}

#[tokio::test]
async fn a_search_is_stopped_at_its_limit_and_other_reads_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await.unwrap();
    for number in 0..200 {
        store.accept(message(number, "hello"), LIMITS, NOW).await.unwrap();
    }
    store.close().await;
    let options = SqliteOptions { search_limit: Duration::ZERO, ..SqliteOptions::default() };
    let store = SqliteStore::open(&path, options).await.unwrap();
    let filter = |text: Option<&str>| ConversationFilter { text: text.map(str::to_owned), ..Default::default() };
    let stopped = store.conversations(filter(Some("nothing")), PageRequest::first(9), NOW).await.unwrap_err();
    assert!(matches!(stopped, StoreError::SearchLimit { .. }), "{stopped:?}");
    assert_eq!(store.conversations(filter(None), PageRequest::first(9), NOW).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn a_history_beyond_the_limit_is_not_copied() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).await.unwrap();
    let mut large = message(1, "hello");
    large.event.body = Json::of(&serde_json::json!({ "text": "x".repeat(65 << 20) })).unwrap();
    let Accepted::New(turn) = store.accept(large, LIMITS, NOW).await.unwrap() else { panic!("it is new") };
    let Target::Address(new) = message(2, "").target else { panic!("it has an address") };
    let fork = Fork { from: turn.conversation, after: turn.seq };
    let refused = store.create_conversation(new, Some(fork), NOW).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid { .. }), "{refused:?}");
    assert!(refused.to_string().contains("fork after an earlier event"), "{refused}");
}

#[tokio::test]
async fn a_page_of_large_conversations_ends_early_and_no_conversation_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).await.unwrap();
    let settings = Json::of(&serde_json::json!({ "instructions": "x".repeat(1 << 20) })).unwrap();
    for number in 0..12 {
        let Target::Address(new) = message(number, "").target else { panic!("it has an address") };
        let address = ChatAddress { chat: number.to_string(), ..new.address };
        let new = NewConversation { address, settings: settings.clone(), ..new };
        store.create_conversation(new, None, NOW).await.unwrap();
    }
    let (mut request, mut sizes) = (PageRequest::first(500), Vec::new());
    loop {
        let page = store.conversations(ConversationFilter::default(), request, NOW).await.unwrap();
        sizes.push(page.items.len());
        let Some(cursor) = page.next else { break };
        request = PageRequest { limit: 500, cursor: Some(cursor) };
    }
    assert_eq!(sizes.iter().sum::<usize>(), 12);
    assert!(sizes.iter().all(|size| *size <= 5), "{sizes:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_store_that_others_can_read_becomes_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    open(&path).await.unwrap().close().await;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(&path).await.unwrap();
    store.accept(message(1, "hello"), LIMITS, NOW).await.unwrap();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?}", entry.path());
    }
    let copy = directory.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_missing_directory_is_an_error_with_its_cause() {
    let directory = tempfile::tempdir().unwrap();
    let error = open(&directory.path().join("missing/store.db")).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot create the store");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("No such file or directory"), "{cause}");
}

#[tokio::test]
async fn a_closed_store_refuses_calls() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await.unwrap();
    store.close().await;
    assert!(matches!(store.accept(message(1, "a"), LIMITS, NOW).await, Err(StoreError::Closed)));
    assert!(matches!(store.status(NOW).await, Err(StoreError::Closed)));
    store.close().await;
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["store.db"], "the write-ahead log is left behind");
}

#[tokio::test]
async fn a_backup_is_consistent_while_messages_arrive_and_can_be_restored() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&directory.path().join("store.db")).await.unwrap();
    for number in 0..50 {
        store.accept(message(number, "before"), LIMITS, NOW).await.unwrap();
    }
    let copy = directory.path().join("copy.db");
    let arriving = async {
        for number in 50..100 {
            store.accept(message(number, "during"), LIMITS, NOW).await.unwrap();
        }
    };
    let (copied, ()) = tokio::join!(store.backup(&copy), arriving);
    copied.unwrap();
    let restored = open(&copy).await.unwrap();
    restored.check().await.unwrap();
    let queued = restored.status(NOW).await.unwrap().queued_turns;
    assert!((50..=100).contains(&queued), "{queued}");
    for number in 0..u128::from(queued) {
        let again = restored.accept(message(number, "again"), LIMITS, NOW).await.unwrap();
        assert!(matches!(again, Accepted::Duplicate(_)), "{again:?}");
    }
    let twice = store.backup(&copy).await.unwrap_err();
    assert_eq!(twice.to_string(), "cannot back up the store");
    assert!(!directory.path().join("copy.db.partial").exists());
}

#[tokio::test]
async fn the_audit_log_cannot_be_changed_by_sql() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let store = open(&path).await.unwrap();
    let entry = NewAuditEntry {
        actor: "alice".to_owned(),
        action: "revoke".to_owned(),
        subject: "token".to_owned(),
        origin: "127.0.0.1".to_owned(),
        details: Json::empty(),
    };
    store.record_audit(entry, NOW).await.unwrap();
    let other = Connection::open(&path).unwrap();
    for sql in ["DELETE FROM audit", "UPDATE audit SET actor = 'bob'"] {
        let refused = other.execute_batch(sql).unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{refused}");
    }
}
