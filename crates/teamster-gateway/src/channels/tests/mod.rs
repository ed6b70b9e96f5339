//! The inbox and the delivery loop, over a store on disk and a service that fails in each way.

mod crashes;
mod delivery;
mod inbox;
mod live;
mod prompts;
mod service;
mod status;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use teamster::Runtime;
use teamster_channel::Channel;
use teamster_store::{
    AcceptedTurn, ChatAddress, Delivery, DeliveryFilter, DeliveryState, Epoch, Event, HostId, MessageMode, NewDelivery,
    Seq, SqliteOptions, SqliteStore, Store, WorkStore as _,
};
use tempfile::TempDir;

use super::deliveries::Recipient;
use super::failpoint::Failpoint;
use super::pages::all_deliveries;
use super::tasks::{ChannelTasks, start_with};
use crate::clock::Clock;
use crate::config::Config;
use crate::engine::{Gateway, IncomingMessage, MessageTarget, Parts};

/// A limit for what must happen soon.
const SOON: Duration = Duration::from_secs(20);

/// A directory with a store, in which gateways start one after the other.
struct World {
    _directory: TempDir,
    config: Config,
    store: Arc<SqliteStore>,
    channels: Vec<Arc<dyn Channel>>,
}

impl World {
    async fn new(channel: Arc<dyn Channel>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path().join("store.db"), SqliteOptions::default()).await.unwrap();
        let mut config = Config { data_dir: directory.path().to_owned(), ..Config::default() };
        let delivery = &mut config.channels.delivery;
        delivery.first_delay = Duration::from_millis(5);
        delivery.max_delay = Duration::from_millis(20);
        delivery.poll_interval = Duration::from_millis(10);
        delivery.shutdown_timeout = Duration::from_secs(5);
        Self { _directory: directory, config, store: Arc::new(store), channels: vec![channel] }
    }

    fn gateway(&self) -> Gateway {
        Gateway::new(Parts {
            config: self.config.clone(),
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            runtime: Arc::new(Runtime::new()),
            channels: self.channels.clone(),
            host: HostId::new("host"),
            clock: Clock::system(),
        })
    }

    /// Starts a gateway.
    fn start(&self) -> (Gateway, ChannelTasks) {
        self.start_with(Failpoint::none())
    }

    fn start_with(&self, failpoint: Failpoint) -> (Gateway, ChannelTasks) {
        let gateway = self.gateway();
        let tasks = start_with(&gateway, failpoint);
        (gateway, tasks)
    }

    /// Ends a gateway like a crash, and expires its leases, as the next start on the same machine does.
    async fn crash(&self, gateway: &Gateway, tasks: ChannelTasks) {
        drop(tasks);
        // An aborted task ends at its next poll.
        tokio::task::yield_now().await;
        self.store.expire_leases(gateway.worker().clone(), gateway.now()).await.unwrap();
    }

    async fn all(&self) -> Vec<Delivery> {
        all_deliveries(&*self.store, DeliveryFilter::default()).await.unwrap()
    }

    /// Waits until no delivery is pending or being sent, and returns their states in order.
    async fn settled(&self) -> Vec<DeliveryState> {
        let is_open = |state: &DeliveryState| matches!(state, DeliveryState::Pending | DeliveryState::Sending);
        let settled = async {
            loop {
                let states: Vec<_> = self.all().await.iter().map(|delivery| delivery.state).collect();
                if !states.iter().any(is_open) {
                    return states;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(SOON, settled).await.expect("all deliveries end")
    }
}

/// Ends a gateway cleanly.
async fn shut_down(gateway: &Gateway, tasks: &mut ChannelTasks) {
    gateway.stopping().cancel();
    tokio::time::timeout(SOON, tasks.shutdown()).await.expect("a shutdown ends");
}

/// Returns an address in the channel of the tests.
fn address(chat: &str) -> ChatAddress {
    ChatAddress { channel: "double".to_owned(), chat: chat.to_owned(), thread: String::new() }
}

/// Accepts a message, which creates the conversation.
async fn accept(gateway: &Gateway, address: ChatAddress) -> AcceptedTurn {
    let message = IncomingMessage {
        target: MessageTarget::Address(address),
        channel_ids: vec![uuid::Uuid::now_v7().to_string()],
        idempotency: None,
        author: "alice".to_owned(),
        text: "hello".to_owned(),
        attachments: Vec::new(),
        mode: MessageMode::Queue,
    };
    gateway.accept(message).await.unwrap().turn
}

/// Accepts a message and enqueues what `build` returns for its turn.
async fn enqueue(
    gateway: &Gateway,
    chat: &str,
    build: impl FnOnce(&Recipient<'_>) -> Vec<NewDelivery>,
) -> AcceptedTurn {
    let address = address(chat);
    let accepted = accept(gateway, address.clone()).await;
    let turn = Some((accepted.turn, Epoch::new(1)));
    let to = Recipient { conversation: accepted.conversation, address: &address, turn, now: gateway.now() };
    gateway.store().enqueue(build(&to), gateway.now()).await.unwrap();
    gateway.announce_growth(accepted.conversation);
    accepted
}

/// Enqueues an answer.
async fn answer(gateway: &Gateway, chat: &str, text: &str) -> AcceptedTurn {
    enqueue(gateway, chat, |to| super::deliveries::answer(to, text, Some("session")).unwrap()).await
}

/// Returns the events of a kind in the log of a conversation.
async fn events(gateway: &Gateway, accepted: AcceptedTurn, kind: &str) -> Vec<Event> {
    let page = gateway.store().events(accepted.conversation, Seq::START, 1_000).await.unwrap();
    page.events.into_iter().filter(|event| event.kind == kind).collect()
}

/// Waits for a condition.
async fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let waiting = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("{what}"));
}
