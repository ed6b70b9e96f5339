//! A server, a channel that uses it, and an inbox.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster_channel::testing::MemoryInbox;
use teamster_channel::{
    Address, Button, ButtonStyle, Channel, ChannelError, Content, Operation, Outgoing, Part, Prompt, SendOutcome,
};
use teamster_channel_discord::{DiscordChannel, DiscordConfig, Token};
use teamster_testkit::discord::{BOT_ID, DiscordServer, Person, Post};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The time limit of each condition.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A server of Discord, and its channel.
pub(crate) const GUILD: u64 = 500;
pub(crate) const CHANNEL: u64 = 501;

/// The private channel of Ada.
pub(crate) const DIRECT: u64 = 1_000_011;

pub(crate) struct World {
    pub(crate) server: DiscordServer,
    pub(crate) channel: Arc<DiscordChannel>,
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

    pub(crate) async fn with(change: impl FnOnce(&mut DiscordConfig)) -> Self {
        let server = DiscordServer::start().await.unwrap();
        server.create_guild(GUILD, CHANNEL);
        let mut config = config(&server);
        change(&mut config);
        let channel = Arc::new(DiscordChannel::new(config).unwrap());
        Self { server, channel, inbox: Arc::default() }
    }

    /// Receives, without waiting for a connection.
    pub(crate) fn start(&self) -> Receiving {
        let (channel, inbox) = (Arc::clone(&self.channel), Arc::clone(&self.inbox));
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { channel.receive(&*inbox, stopped).await });
        Receiving { stop, task }
    }

    /// Receives, and waits for the connection.
    pub(crate) async fn receive(&self) -> Receiving {
        let receiving = self.start();
        self.connected().await;
        receiving
    }

    /// Waits until there is one connection with a session.
    pub(crate) async fn connected(&self) {
        self.until("a connection", |server| server.connections() == 1).await;
    }

    /// Waits for a condition of the server.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn(&DiscordServer) -> bool) {
        assert!(self.server.wait_until(LIMIT, is_true).await, "{what}: {:?}", self.server.gateway_counts());
    }

    /// Waits until the inbox has this number of messages.
    pub(crate) async fn messages(&self, count: usize) -> Vec<teamster_channel::Message> {
        self.inbox.until("messages", |contents| contents.messages.len() >= count).await;
        self.inbox.with(|contents| contents.messages.clone())
    }

    /// Waits for a message of the bot whose text contains this one.
    pub(crate) async fn shown(&self, channel: u64, text: &str) -> Value {
        let find = |server: &DiscordServer| {
            let mut messages = server.messages(channel).into_iter();
            messages.find(|message| is_own(message) && text_of(message).contains(text))
        };
        let in_time = self.server.wait_until(LIMIT, |server| find(server).is_some()).await;
        assert!(in_time, "no {text:?} in {:?}", self.server.messages(channel));
        find(&self.server).unwrap()
    }

    /// Waits for a text that only the person of an interaction sees.
    pub(crate) async fn shown_to(&self, interaction: u64) -> String {
        self.until("an answer", |server| server.shown_to(interaction).is_some()).await;
        self.server.shown_to(interaction).unwrap()
    }

    /// Ada has written to the bot before, so that there is a private channel.
    pub(crate) fn meet(&self) -> u64 {
        self.server.write(Post::private(&ada(), "hi"))
    }

    /// Sends, and returns the id of the message.
    pub(crate) async fn sent(&self, outgoing: &Outgoing) -> u64 {
        match self.channel.send(outgoing).await {
            SendOutcome::Sent(delivered) => delivered.message_id.unwrap().parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the stored state, once it is stored.
    pub(crate) async fn state(&self) -> Value {
        let key = format!("state:{BOT_ID}");
        self.inbox.until("a state", |contents| contents.states.contains_key(&key)).await;
        self.inbox.with(|contents| contents.states[&key].clone())
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

pub(crate) fn config(server: &DiscordServer) -> DiscordConfig {
    let mut config = DiscordConfig::new(Token::new(server.token()).unwrap());
    config.api_url = server.url();
    config.identify_interval = Duration::from_millis(50);
    config
}

pub(crate) fn ada() -> Person {
    Person::new(11, "Ada")
}

pub(crate) fn mallory() -> Person {
    Person::new(99, "Mallory")
}

pub(crate) fn is_own(message: &Value) -> bool {
    let bot = BOT_ID.to_string();
    message["author"]["id"] == bot.as_str()
}

pub(crate) fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// Returns a call for a channel.
pub(crate) fn to(channel: u64, operation: Operation, content: Content) -> Outgoing {
    Outgoing {
        key: "key".to_owned(),
        address: Address { chat: channel.to_string(), thread: String::new() },
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

/// Returns a call for the channel of the server.
pub(crate) fn outgoing(operation: Operation, content: Content) -> Outgoing {
    to(CHANNEL, operation, content)
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
    let buttons = vec![
        button("Allow", &"x".repeat(64), ButtonStyle::Positive, false),
        button("Deny", "deny", ButtonStyle::Negative, false),
        button("Answer", "text", ButtonStyle::Plain, true),
    ];
    Content::Prompt(Prompt { id: "p".to_owned(), text: "**May I?**".to_owned(), buttons })
}
