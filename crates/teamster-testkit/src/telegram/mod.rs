//! A server that speaks the Bot API of Telegram over HTTP, <https://core.telegram.org/bots/api>, with people who write to the bot.
//!
//! It has one bot. A test writes, edits and presses buttons as people, reads the chats, and chooses what fails. Programs in other
//! languages do the same through `/control` ([`TelegramServer::control_url`]), with the process `teamster-telegram-server`.
//!
//! ```
//! use teamster_testkit::telegram::{Person, Post, TelegramServer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = TelegramServer::start().await?;
//! let ada = Person::new(11, "Ada");
//! server.write(Post::private(&ada, "hello"));
//! // Start the bot with this URL and this token, then read its answers.
//! println!("{} {}", server.url(), server.token());
//! assert_eq!(server.messages(11).len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! What is as documented: offsets, limits and conflicts of polls, the kinds of updates that are remembered, the length of texts
//! in UTF-16 units, bounds of entities, sizes of files and button data, topics, groups that become supergroups, and the texts of
//! errors. What is not: parse modes, webhooks that are called, business accounts, payments.

mod chats;
mod control;
mod edits;
mod error;
mod faults;
mod files;
mod http;
mod methods;
mod people;
mod polls;
mod texts;
mod world;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::faults::Fault;
pub use self::files::Upload;
pub use self::people::{Person, Post};
pub use self::world::{BOT_NAME, Call};
use self::world::{Shared, TOKEN, World};
use crate::server::LocalServer;

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct TelegramServer {
    shared: Arc<Shared>,
    server: LocalServer,
}

impl TelegramServer {
    /// Starts a server on a free port.
    pub async fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::new());
        let server = LocalServer::start(http::router(Arc::clone(&shared))).await?;
        Ok(Self { shared, server })
    }

    /// Returns the URL of the Bot API, without the token.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns the URL of the calls for programs in other languages.
    pub fn control_url(&self) -> String {
        format!("{}/control", self.url())
    }

    /// Returns the token of the bot.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Creates a group. `topics` are the ids of its topics; with any, it is a forum.
    pub fn create_group(&self, id: i64, topics: &[i64]) {
        self.shared.change(|world| world.create_group(id, topics));
    }

    /// Gives a group another id, as it happens when it becomes a supergroup.
    pub fn migrate(&self, from: i64, to: i64) {
        self.shared.change(|world| world.migrate(from, to));
    }

    /// Sets whether the bot gets all messages of groups.
    pub fn set_privacy(&self, has_privacy: bool) {
        self.shared.change(|world| world.has_privacy = has_privacy);
    }

    /// Sets the URL of a webhook; an empty one removes it.
    pub fn set_webhook(&self, url: &str) {
        self.shared.change(|world| url.clone_into(&mut world.webhook));
    }

    /// Makes another token the valid one.
    pub fn revoke_token(&self) {
        self.shared.change(|world| "4242:another".clone_into(&mut world.token));
    }

    /// A person writes. Returns the id of the message.
    pub fn write(&self, post: Post) -> i64 {
        self.shared.change(|world| world.write(post))
    }

    /// A person changes a text or a caption.
    pub fn edit(&self, chat: i64, message: i64, text: &str) {
        self.shared.change(|world| world.edit(chat, message, text));
    }

    /// A person deletes a message.
    pub fn delete(&self, chat: i64, message: i64) {
        self.shared.change(|world| world.remove(chat, message));
    }

    /// A person presses the button with this data, or the first one whose text contains it. Returns the id of the query.
    pub fn press(&self, chat: i64, message: i64, button: &str, by: &Person) -> String {
        self.shared.change(|world| world.press(chat, message, button, by))
    }

    /// Sends an update again, with a new number, as after an error of the service.
    pub fn repeat_updates(&self) {
        self.shared.change(World::repeat_updates);
    }

    /// Sends an update of any form, such as one that the documentation does not have.
    pub fn raw_update(&self, kind: &str, content: Value) {
        self.shared.change(|world| world.add_update(kind, content));
    }

    /// Makes the next `times` calls of a method fail. The method `file` is a download.
    pub fn fail(&self, method: &str, fault: &Fault, times: u32) {
        self.shared.change(|world| world.faults.add(method, fault, times));
    }

    /// Permits this number of messages in a chat within a time. More are answered with 429.
    pub fn limit_chats(&self, messages: usize, within: Duration) {
        self.shared.change(|world| world.chat_limit = Some((messages, within)));
    }

    /// Returns the messages of a chat, as objects of the Bot API.
    pub fn messages(&self, chat: i64) -> Vec<Value> {
        self.shared.world().messages(chat)
    }

    /// Returns the content of a file that the bot has sent.
    pub fn file(&self, id: &str) -> Option<Vec<u8>> {
        self.shared.world().files.content(id)
    }

    /// Returns what the bot answered to a press.
    pub fn answer_to(&self, query: &str) -> Option<String> {
        self.shared.world().queries.get(query).cloned().flatten()
    }

    /// Returns the calls of the bot, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.world().calls.clone()
    }

    /// Returns the number of updates that the bot has not confirmed.
    pub fn unconfirmed(&self) -> usize {
        self.shared.world().updates.len()
    }

    /// Returns the commands that the bot has registered.
    pub fn commands(&self) -> Value {
        self.shared.world().commands.clone()
    }

    /// Waits until a condition is true. Returns whether that was in time.
    pub async fn wait_until(&self, limit: Duration, is_true: impl Fn(&Self) -> bool) -> bool {
        let mut changes = self.shared.changes();
        let wait = async {
            while !is_true(self) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }

    /// Stops the server. Returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
    }
}
