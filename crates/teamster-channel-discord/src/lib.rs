//! The Discord channel: a bot on Discord's gateway, in direct messages, channels and threads, with slash commands and buttons.
//!
//! Wire formats are those of the API, version 10, <https://discord.com/developers/docs/reference>. The gateway's protocol is that
//! of twilight-gateway.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`DiscordConfig`] and the bot's token |
//! | `service` | [`DiscordChannel`]: its state, its commands, and what it checks |
//! | `permissions` | what the bot must be allowed to do |
//! | `channel` | the implementation of [`Channel`](teamster_channel::Channel) |
//! | `api`, `limits` | calls of the REST API, what its errors mean, and its rate limits |
//! | `types` | the objects of the API that are used |
//! | `channels`, `known` | the channels that the bot has found, and the threads that it opens |
//! | `mapping` | what a message or an interaction means |
//! | `connection`, `identify`, `acknowledge` | the connection to the gateway: resume, identify, give up; first answers |
//! | `receive`, `state` | the order of what is received, and what is stored of it |
//! | `handle`, `interactions`, `download`, `history` | what follows an event, its files, and messages that were missed |
//! | `send` | what is sent for a content, and the outcome |
//! | `text` | texts within the limits |
//!
//! Invariant: the token is in headers only. No error, log or debug output has it, or a URL of an interaction.

mod acknowledge;
mod api;
mod channel;
mod channels;
mod config;
mod connection;
mod download;
mod handle;
mod history;
mod identify;
mod interactions;
mod known;
mod limits;
mod mapping;
mod permissions;
mod receive;
mod send;
mod service;
mod state;
mod text;
mod types;

pub use config::{ConfigError, DiscordConfig, Servers, Token};
pub use service::DiscordChannel;
