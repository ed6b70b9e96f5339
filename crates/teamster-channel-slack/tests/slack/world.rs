//! A server, a channel that uses it, and an inbox.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster_channel::testing::MemoryInbox;
use teamster_channel::{
    Address, Button, ButtonStyle, Channel, ChannelError, Content, Operation, Outgoing, Part, Prompt,
};
use teamster_channel_slack::{SlackChannel, SlackConfig, Token, TokenKind};
use teamster_testkit::slack::{BOT_USER, Person, Post, SlackServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time limit of each condition.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A channel of several people.
pub(crate) const CHANNEL: &str = "C0GENERAL";

pub(crate) struct World {
    pub(crate) server: SlackServer,
    pub(crate) channel: Arc<SlackChannel>,
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

    pub(crate) async fn with(change: impl FnOnce(&mut SlackConfig)) -> Self {
        let server = SlackServer::start().await.unwrap();
        server.create_channel(CHANNEL, "channel");
        let mut config = config(&server);
        change(&mut config);
        let channel = Arc::new(SlackChannel::new(config).unwrap());
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

    /// Waits until a condition of the server is true.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn(&SlackServer) -> bool) {
        assert!(self.server.wait_until(LIMIT, is_true).await, "{what}");
    }

    /// Waits until the bot has acknowledged all envelopes.
    pub(crate) async fn acknowledged(&self) {
        self.until("all envelopes are acknowledged", |server| server.unacknowledged() == 0).await;
        assert_eq!(self.server.lost(), 0);
    }

    /// Waits for a message of the bot whose text contains this one.
    pub(crate) async fn shown(&self, channel: &str, text: &str) -> Value {
        let find = |server: &SlackServer| {
            let messages = server.messages(channel);
            messages.into_iter().find(|message| message["user"] == BOT_USER && text_of(message).contains(text))
        };
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "no {text:?} in {:?}", self.server.messages(channel));
        find(&self.server).unwrap()
    }

    /// Waits for what a person sees after a press, a dialog or a command.
    pub(crate) async fn response(&self, id: &str) -> Vec<Value> {
        self.until("it is acknowledged", |server| server.responses(id).is_some()).await;
        self.server.responses(id).unwrap()
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

pub(crate) fn config(server: &SlackServer) -> SlackConfig {
    let bot = Token::new(TokenKind::Bot, server.bot_token()).unwrap();
    let app = Token::new(TokenKind::App, server.app_token()).unwrap();
    let mut config = SlackConfig::new(bot, app);
    config.api_url = server.url();
    config
}

pub(crate) fn ada() -> Person {
    Person::new("U0ADA", "Ada")
}

/// Returns a text with a mention of the bot.
pub(crate) fn mention(text: &str) -> String {
    format!("<@{BOT_USER}> {text}")
}

pub(crate) fn text_of(message: &Value) -> &str {
    message["text"].as_str().unwrap_or_default()
}

/// Returns the address of Ada's direct messages.
pub(crate) fn direct() -> Address {
    Address { chat: ada().direct(), thread: String::new() }
}

/// A person has written before, so that the channel exists.
pub(crate) fn meet(world: &World) {
    world.server.write(Post::direct(&ada(), "hi"));
}

/// Returns a call for Ada's direct messages.
pub(crate) fn outgoing(operation: Operation, content: Content) -> Outgoing {
    Outgoing {
        key: "turn:answer:0".to_owned(),
        address: direct(),
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
    let button = |label: &str, token: &str, style, takes_text| Button {
        label: label.to_owned(),
        token: token.to_owned(),
        style,
        takes_text,
    };
    let long = "x".repeat(43);
    let buttons = vec![
        button("Allow", &long, ButtonStyle::Positive, false),
        button("Deny", "deny", ButtonStyle::Negative, false),
        button("Answer", "text", ButtonStyle::Plain, true),
    ];
    Content::Prompt(Prompt { id: "p".to_owned(), text: "**May I?**".to_owned(), buttons })
}
