//! A server, a channel that uses it, and an inbox.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster_channel::testing::MemoryInbox;
use teamster_channel::{
    Address, Button, ButtonStyle, Channel, ChannelError, Content, Operation, Outgoing, Part, Prompt,
};
use teamster_channel_telegram::{Groups, TelegramChannel, TelegramConfig, Token};
use teamster_testkit::telegram::{Person, Post, TelegramServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time limit of each condition.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A group.
pub(crate) const GROUP: i64 = -500;

pub(crate) struct World {
    pub(crate) server: TelegramServer,
    pub(crate) channel: Arc<TelegramChannel>,
    pub(crate) inbox: Arc<MemoryInbox>,
}

/// A receiving side that runs.
pub(crate) struct Receiving {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ChannelError>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut TelegramConfig)) -> Self {
        let server = TelegramServer::start().await.unwrap();
        let mut config = config(&server);
        change(&mut config);
        let channel = Arc::new(TelegramChannel::new(config).unwrap());
        Self { server, channel, inbox: Arc::default() }
    }

    pub(crate) fn receive(&self) -> Receiving {
        let (channel, inbox) = (Arc::clone(&self.channel), Arc::clone(&self.inbox));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { channel.receive(&*inbox, stopped).await });
        Receiving { stop, task }
    }

    /// Waits until the inbox has this number of messages.
    pub(crate) async fn messages(&self, count: usize) -> Vec<teamster_channel::Message> {
        self.inbox.until("messages", |contents| contents.messages.len() >= count).await;
        self.inbox.with(|contents| contents.messages.clone())
    }

    /// Waits until the bot has confirmed all updates.
    pub(crate) async fn confirmed(&self) {
        let in_time = self.server.wait_until(LIMIT, |server| server.unconfirmed() == 0).await;
        assert!(in_time, "all updates are confirmed");
    }

    /// Waits for a message of the bot whose text contains this one.
    pub(crate) async fn shown(&self, chat: i64, text: &str) -> Value {
        let find = |server: &TelegramServer| {
            let messages = server.messages(chat);
            messages.into_iter().find(|message| message["from"]["is_bot"] == true && text_of(message).contains(text))
        };
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "no {text:?} in {:?}", self.server.messages(chat));
        find(&self.server).unwrap()
    }

    /// A person has written to the bot before, so that the bot can write.
    pub(crate) fn meet(&self) -> Person {
        let ada = ada();
        self.server.write(Post::private(&ada, "hi"));
        ada
    }
}

impl Receiving {
    /// Stops receiving, and waits for its end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(LIMIT, self.task).await.expect("it ends in time");
        ended.unwrap().unwrap();
    }

    /// Waits for the error that ends it.
    pub(crate) async fn error(self) -> ChannelError {
        let ended = tokio::time::timeout(LIMIT, self.task).await.expect("it ends in time");
        ended.unwrap().unwrap_err()
    }

    /// Ends it like a crash.
    pub(crate) async fn crash(self) {
        self.task.abort();
        _ = self.task.await;
    }
}

pub(crate) fn config(server: &TelegramServer) -> TelegramConfig {
    let mut config = TelegramConfig::new(Token::new(server.token()).unwrap());
    config.api_url = server.url();
    config.groups = Groups::Mentions;
    config
}

pub(crate) fn ada() -> Person {
    Person::new(11, "Ada")
}

pub(crate) fn text_of(message: &Value) -> &str {
    message["text"].as_str().or_else(|| message["caption"].as_str()).unwrap_or_default()
}

/// Returns a call for Ada's chat.
pub(crate) fn outgoing(operation: Operation, content: Content) -> Outgoing {
    Outgoing {
        key: "key".to_owned(),
        address: Address { chat: "11".to_owned(), thread: String::new() },
        conversation: None,
        turn: None,
        operation,
        content,
        part: Part::ONLY,
        bytes: Arc::from([]),
        may_be_repeat: false,
        created_at_ms: 0,
    }
}

pub(crate) fn answer(text: &str) -> Content {
    Content::Answer { text: text.to_owned(), session_id: None }
}

pub(crate) fn prompt() -> Content {
    let button = |label: &str, token: &str, takes_text| Button {
        label: label.to_owned(),
        token: token.to_owned(),
        style: ButtonStyle::Plain,
        takes_text,
    };
    let long = "x".repeat(43);
    let buttons = vec![button("Allow", &long, false), button("Deny", "deny", false), button("Answer", "text", true)];
    Content::Prompt(Prompt { id: "p".to_owned(), text: "**May I?**".to_owned(), buttons })
}
