//! A gateway for tests: a store in memory, a clock that a test moves, and a channel that does nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use teamster::Runtime;
use teamster_channel::{Capabilities, Channel, ChannelError, Inbox, Outgoing, SendOutcome};
use teamster_store::{
    AttemptEnd, ChatAddress, ClaimRequest, ConversationId, Delivery, DeliveryFilter, Effects, EndState, Finish, HostId,
    Json, Lease, MemoryStore, NewConversation, PageRequest, Seq, SessionChange, Timestamp, TurnId, WorkerId,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::Config;
use crate::engine::{Gateway, IncomingMessage, MessageTarget, Parts};
use crate::{AcceptedMessage, Clock, GatewayError};

/// The longest time that a test waits for a condition.
pub(crate) const BOUND: Duration = Duration::from_secs(30);

/// A gateway whose tasks do not run.
pub(crate) struct TestGateway {
    pub(crate) gateway: Gateway,
    pub(crate) directory: TempDir,
    clock: Arc<AtomicI64>,
}

/// A channel with this name. Only `test` has threads.
struct TestChannel(&'static str);

#[async_trait]
impl Channel for TestChannel {
    fn name(&self) -> &'static str {
        self.0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { max_file_bytes: 1000, threads: self.0 == "test", ..Capabilities::default() }
    }

    async fn check(&self) -> Result<(), ChannelError> {
        Ok(())
    }

    async fn receive(&self, _inbox: &dyn Inbox, stop: CancellationToken) -> Result<(), ChannelError> {
        stop.cancelled().await;
        Ok(())
    }

    async fn send(&self, _outgoing: &Outgoing) -> SendOutcome {
        SendOutcome::Unknown("the test sends nothing".to_owned())
    }
}

/// Returns the address of a chat in the channel of tests.
pub(crate) fn chat(name: &str) -> ChatAddress {
    ChatAddress { channel: "test".to_owned(), chat: name.to_owned(), thread: String::new() }
}

impl TestGateway {
    /// Creates a gateway. The clock shows the start of 2026.
    pub(crate) fn new(change: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config { data_dir: directory.path().join("data"), ..Config::default() };
        config.turn.directory = directory.path().to_owned();
        change(&mut config);
        let clock = Arc::new(AtomicI64::new(1_767_225_600_000));
        let reads = Arc::clone(&clock);
        let parts = Parts {
            config,
            store: Arc::new(MemoryStore::new()),
            runtime: Arc::new(Runtime::new()),
            channels: vec![Arc::new(TestChannel("test")), Arc::new(TestChannel("flat"))],
            host: HostId::new("test"),
            clock: Clock::new(move || Timestamp::from_millis(reads.load(Ordering::SeqCst))),
        };
        Self { gateway: Gateway::new(parts), directory, clock }
    }

    /// Moves the clock forward.
    pub(crate) fn advance(&self, time: Duration) {
        self.clock.fetch_add(i64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Creates the conversation of a chat.
    pub(crate) async fn conversation(&self, address: ChatAddress) -> ConversationId {
        let id = ConversationId::new(Uuid::now_v7());
        let agent = "claude".to_owned();
        let new = NewConversation { id, address, agent, title: None, settings: Json::empty() };
        self.gateway.store().create_conversation(new, None, self.gateway.now()).await.unwrap();
        id
    }

    /// Accepts a message.
    pub(crate) async fn accept(&self, to: ConversationId, text: &str) -> Result<AcceptedMessage, GatewayError> {
        let message = IncomingMessage {
            target: MessageTarget::Conversation(to),
            channel_ids: Vec::new(),
            idempotency: None,
            author: "ann".to_owned(),
            text: text.to_owned(),
            attachments: Vec::new(),
            mode: teamster_store::MessageMode::Queue,
        };
        self.gateway.accept(message).await
    }

    /// Accepts a message, and returns its turn.
    pub(crate) async fn turn(&self, conversation: ConversationId, text: &str) -> TurnId {
        self.accept(conversation, text).await.unwrap().turn.turn
    }

    /// Claims a turn.
    pub(crate) async fn claim(&self, worker: &str) -> Lease {
        let request = ClaimRequest {
            worker: WorkerId::new(worker),
            host: HostId::new("test"),
            lease_for: Duration::from_mins(1),
            max_running: 100,
            max_running_per_chat: 100,
            affinity: Duration::ZERO,
        };
        self.gateway.store().claim(request, self.gateway.now()).await.unwrap().unwrap().lease
    }

    /// Ends a claimed turn with an answer.
    pub(crate) async fn finish(&self, lease: Lease) {
        let attempt =
            AttemptEnd { session: SessionChange::Keep, usage: None, closings: Vec::new(), effects: Effects::default() };
        let finish = Finish { state: EndState::Done, result: None, error_code: None, attempt };
        self.gateway.store().finish(lease, finish, self.gateway.now()).await.unwrap();
    }

    /// Returns the events of a conversation of one type.
    pub(crate) async fn events(&self, conversation: ConversationId, kind: &str) -> Vec<Value> {
        let page = self.gateway.store().events(conversation, Seq::START, 1000).await.unwrap();
        page.events.iter().filter(|event| event.kind == kind).map(|event| event.body.to().unwrap()).collect()
    }

    /// Returns all deliveries.
    pub(crate) async fn deliveries(&self) -> Vec<Delivery> {
        let page = self.gateway.store().deliveries(DeliveryFilter::default(), PageRequest::first(1000)).await;
        page.unwrap().items
    }
}

/// Waits until a condition holds.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let polls = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, polls).await.expect("the condition must hold in time");
}
