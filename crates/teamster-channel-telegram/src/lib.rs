//! The Telegram channel: a bot that receives by long polling, and answers in direct messages, groups and topics.
//!
//! Wire formats are those of the Bot API, <https://core.telegram.org/bots/api>.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`TelegramConfig`] and the bot's token |
//! | `service` | [`TelegramChannel`]: its state, and what it checks |
//! | `channel` | the implementation of [`Channel`](teamster_channel::Channel) |
//! | `api` | calls of the Bot API, and what its errors mean |
//! | `types` | the objects of the Bot API that are used |
//! | `mapping`, `groups` | what an update means; which updates are one message |
//! | `receive`, `handle`, `download` | the poll, what follows an update, and its files |
//! | `send` | what is sent for a content, and the outcome |
//! | `text` | Markdown as text with entities |
//! | `aliases`, `limits` | chats that got another id; whose rate limit an error is |
//!
//! Invariant: the token is a part of each URL. No error, log or debug output has a URL.

mod aliases;
mod api;
mod channel;
mod config;
mod download;
mod groups;
mod handle;
mod limits;
mod mapping;
mod receive;
mod send;
mod service;
mod text;
mod types;

pub use config::{ConfigError, Groups, TelegramConfig, Token};
pub use service::TelegramChannel;
