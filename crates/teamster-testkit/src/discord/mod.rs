//! A server that speaks Discord's gateway and REST API, version 10, with people who write to the bot.
//!
//! It has one bot. A test writes, edits, presses buttons and uses commands as people, reads the channels, and chooses what fails.
//! Programs in other languages do the same through `/control` ([`DiscordServer::control_url`]), with the process
//! `teamster-discord-server`.
//!
//! ```
//! use teamster_testkit::discord::{DiscordServer, Person, Post};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let server = DiscordServer::start().await?;
//! server.create_guild(500, 501);
//! let ada = Person::new(11, "Ada");
//! server.write(Post::mention(501, &ada, "hello"));
//! // Start the bot with this URL and this token, then read its answers.
//! println!("{} {}", server.url(), server.token());
//! assert_eq!(server.messages(501).len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! What is as documented (<https://discord.com/developers/docs>): hello, identify, resume with replay, heartbeats and their
//! acknowledgments, reconnects, invalid sessions, close codes, intents and the contents that they hide; messages with limits of
//! texts, nonces, files and buttons, threads, interactions with their 3 seconds, commands, rate limits with their headers, and the
//! codes of errors. What is not: compression, several shards, voice, permissions of single channels, and everything of servers that
//! a bot for chats does not need.

mod body;
mod bot;
mod clock;
mod control;
mod error;
mod faults;
mod files;
mod gateway;
mod guilds;
mod http;
mod interactions;
mod messages;
mod pending;
mod people;
mod person;
mod routes;
mod server;
mod sessions;
mod values;
mod world;

pub use self::bot::{BOT_ID, BOT_NAME};
pub use self::faults::Fault;
pub use self::files::Upload;
pub use self::person::{Person, Post};
pub use self::server::DiscordServer;
pub use self::world::Call;
