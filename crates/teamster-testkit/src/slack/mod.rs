//! A server that speaks Slack's Web API (<https://docs.slack.dev/apis/web-api/>) and Socket Mode
//! (<https://docs.slack.dev/apis/events-api/using-socket-mode/>), with people who write to the bot.
//!
//! It has one app in one workspace. A test writes, edits, presses buttons and sends commands as people, reads the channels, and
//! chooses what fails. Programs in other languages do the same through `/control` ([`SlackServer::control_url`]), with the process
//! `teamster-slack-server`.
//!
//! ```
//! use teamster_testkit::slack::{Person, Post, SlackServer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = SlackServer::start().await?;
//! let ada = Person::new("U0ADA", "Ada");
//! server.write(Post::direct(&ada, "hello"));
//! // Start the bot with this URL and these tokens, then read its answers.
//! println!("{} {} {}", server.url(), server.bot_token(), server.app_token());
//! assert_eq!(server.messages(&ada.direct()).len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! What is as documented: greetings, URLs that are valid once, envelopes that come again without an acknowledgment and over any
//! connection, announced ends of connections, two events for a mention, events of the bot's own messages, the kinds of tokens,
//! scopes, and the limits of texts and blocks. What is not: the times between repeated envelopes, several workspaces, and the
//! methods that a bot of this kind does not need.

mod acts;
mod blocks;
mod chats;
mod control;
mod envelopes;
mod error;
mod faults;
mod files;
mod http;
mod ids;
mod methods;
mod people;
mod sockets;
mod uploads;
mod world;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::envelopes::Order;
pub use self::faults::Fault;
pub use self::files::Upload;
use self::ids::{APP_TOKEN, BOT_TOKEN};
pub use self::ids::{BOT_USER, TEAM};
pub use self::people::{Person, Post};
use self::sockets::SocketServer;
pub use self::world::Call;
use self::world::Shared;
use crate::server::LocalServer;

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct SlackServer {
    shared: Arc<Shared>,
    server: LocalServer,
    sockets: SocketServer,
}

impl SlackServer {
    /// Starts a server on free ports.
    pub async fn start() -> io::Result<Self> {
        let listener = SocketServer::bind().await?;
        let shared = Arc::new(Shared::new(format!("ws://{}", listener.local_addr()?)));
        let server = LocalServer::start(http::router(Arc::clone(&shared))).await?;
        shared.change(|world| world.base = format!("http://{}", server.address()));
        let sockets = SocketServer::start(listener, &shared);
        Ok(Self { shared, server, sockets })
    }

    /// Returns the URL of the Web API.
    pub fn url(&self) -> String {
        format!("http://{}/api", self.server.address())
    }

    /// Returns the URL of the calls for programs in other languages.
    pub fn control_url(&self) -> String {
        format!("http://{}/control", self.server.address())
    }

    /// Returns the token of the bot.
    pub fn bot_token(&self) -> &'static str {
        BOT_TOKEN
    }

    /// Returns the token of the app.
    pub fn app_token(&self) -> &'static str {
        APP_TOKEN
    }

    /// Creates a channel. `kind` is `channel`, `group` or `mpim`.
    pub fn create_channel(&self, id: &str, kind: &str) {
        self.shared.change(|world| world.create_channel(id, kind, true));
    }

    /// Creates a channel without the bot.
    pub fn create_channel_without_bot(&self, id: &str) {
        self.shared.change(|world| world.create_channel(id, "channel", false));
    }

    /// Makes another token of the bot the valid one.
    pub fn revoke_bot_token(&self) {
        self.shared.change(|world| "xoxb-another".clone_into(&mut world.bot_token));
    }

    /// Makes another token of the app the valid one.
    pub fn revoke_app_token(&self) {
        self.shared.change(|world| "xapp-another".clone_into(&mut world.app_token));
    }

    /// Takes a scope from the bot.
    pub fn remove_scope(&self, scope: &str) {
        self.shared.change(|world| world.scopes.remove(scope));
    }

    /// Makes the bot one of another app than the app-level token.
    pub fn mix_apps(&self) {
        self.shared.change(|world| "A0OTHER".clone_into(&mut world.bot_app));
    }

    /// Turns Socket Mode on or off. Off ends all connections.
    pub fn set_socket_mode(&self, is_on: bool) {
        self.shared.change(|world| {
            world.has_socket_mode = is_on;
            if !is_on {
                world.envelopes.announce_end("link_disabled");
                world.envelopes.order_all(|| Order::Close);
            }
        });
    }

    /// Sets how long the app may take to acknowledge an envelope.
    pub fn set_ack_within(&self, limit: Duration) {
        self.shared.change(|world| world.envelopes.ack_within = limit);
    }

    /// Sets how often an envelope is sent until it is acknowledged. Slack sends one 4 times within 6 minutes.
    pub fn set_attempts(&self, attempts: u32) {
        self.shared.change(|world| world.envelopes.max_attempts = attempts);
    }

    /// A person writes. Returns the time of the message, which is its id.
    pub fn write(&self, post: Post) -> String {
        self.shared.change(|world| world.write(post))
    }

    /// The author changes a text.
    pub fn edit(&self, channel: &str, ts: &str, text: &str) {
        self.shared.change(|world| world.edit(channel, ts, text));
    }

    /// The author removes a message.
    pub fn delete(&self, channel: &str, ts: &str) {
        self.shared.change(|world| world.remove(channel, ts));
    }

    /// A person presses the button with this value, or the first one whose text contains it. Returns the id of the press.
    pub fn press(&self, channel: &str, ts: &str, button: &str, by: &Person) -> String {
        self.shared.change(|world| world.press(channel, ts, button, by))
    }

    /// A person sends the dialog that a press has opened. Returns the id of the submission.
    pub fn submit(&self, press: &str, text: &str, by: &Person) -> String {
        self.shared.change(|world| world.submit(press, text, by))
    }

    /// A person uses the slash command. Returns its id.
    pub fn command(&self, channel: &str, by: &Person, text: &str) -> String {
        self.shared.change(|world| world.command(channel, by, text))
    }

    /// Sends all events once more.
    pub fn repeat_events(&self) {
        self.shared.change(|world| world.envelopes.repeat_events());
    }

    /// Sends an event of any form, such as one that the documentation does not have.
    pub fn raw_event(&self, event: &Value) {
        self.shared.change(|world| world.add_event(event));
    }

    /// Sends an envelope of any kind and form.
    pub fn raw_envelope(&self, kind: &'static str, payload: Value) {
        self.shared.change(|world| world.envelopes.add(kind, payload, false));
    }

    /// Announces the end of all connections, for example with `warning` or `refresh_requested`.
    pub fn announce_end(&self, reason: &str) {
        self.shared.change(|world| world.envelopes.announce_end(reason));
    }

    /// Closes all connections as the protocol demands.
    pub fn close_connections(&self) {
        self.shared.change(|world| world.envelopes.order_all(|| Order::Close));
    }

    /// Breaks off all connections.
    pub fn cut_connections(&self) {
        self.shared.change(|world| world.envelopes.order_all(|| Order::Cut));
    }

    /// Makes the next `times` calls of a method fail. `upload` and `download` are those of files.
    pub fn fail(&self, method: &str, fault: &Fault, times: u32) {
        self.shared.change(|world| world.faults.add(method, fault, times));
    }

    /// Permits this number of messages in a channel within a time. More are answered with 429.
    pub fn limit_channels(&self, messages: usize, within: Duration) {
        self.shared.change(|world| world.channel_limit = Some((messages, within)));
    }

    /// Returns the messages of a channel, in order.
    pub fn messages(&self, channel: &str) -> Vec<Value> {
        self.shared.world().messages(channel)
    }

    /// Returns the content of a file.
    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.shared.world().files.content(id).map(|(bytes, _)| bytes)
    }

    /// Returns what a person saw after a press, a dialog or a command. `None`: it is not acknowledged.
    pub fn responses(&self, id: &str) -> Option<Vec<Value>> {
        self.shared.world().responses.get(id).cloned()
    }

    /// Returns the dialog that a press has opened.
    pub fn view(&self, press: &str) -> Option<Value> {
        self.shared.world().views.get(press).cloned()
    }

    /// Returns the calls of the bot, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.world().calls.clone()
    }

    /// Returns the number of envelopes that are not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.shared.world().envelopes.unacknowledged()
    }

    /// Returns the number of envelopes that were never acknowledged, and are not sent any more.
    pub fn lost(&self) -> usize {
        self.shared.world().envelopes.lost
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.world().envelopes.connections()
    }

    /// Returns the number of connections that the service closes, and the app has not closed yet.
    pub fn closing(&self) -> usize {
        self.shared.world().envelopes.closing()
    }

    /// Waits until a condition is true. Returns whether that was in time.
    pub async fn wait_until(&self, limit: Duration, is_true: impl Fn(&Self) -> bool) -> bool {
        let mut changes = self.shared.changes();
        let wait = async {
            while !is_true(self) {
                if changes.changed().await.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout(limit, wait).await.unwrap_or(false)
    }

    /// Stops the server. Returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.sockets.stop().await;
        self.server.stop().await;
    }
}
