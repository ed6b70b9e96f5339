//! The Slack channel: an app that receives by Socket Mode, and answers in direct messages, channels and threads.
//!
//! Formats are those of Slack's Web API (<https://docs.slack.dev/apis/web-api/>) and of Socket Mode
//! (<https://docs.slack.dev/apis/events-api/using-socket-mode/>).
//!
//! # Why calls of our own
//!
//! About fifteen methods are used. slack-morphism 2.31 has them, but the URL of the Web API is a constant in it
//! (`SlackClientHttpApiUri`), so that no test server can be under it. It brings a second WebSocket client with a TLS set-up of its
//! own. Before a refresh, it closes the old connection and then opens the new one. The HTTP client that the gateway has anyway
//! (reqwest) makes the handshake of the WebSocket, so that proxies and TLS are those of all other calls. tokio-websockets frames
//! the messages.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `config` | [`SlackConfig`] and the tokens |
//! | `service` | [`SlackChannel`]: its state |
//! | `check` | what is verified with the service |
//! | `channel` | the implementation of [`Channel`](teamster_channel::Channel) |
//! | `api`, `error` | calls of the Web API, and what their errors mean |
//! | `handshake`, `socket` | a WebSocket, and the task that owns it |
//! | `types`, `envelope` | the objects of the Web API and of Socket Mode that are used |
//! | `receive`, `connections`, `lanes` | what happens with envelopes, on which connection, and in which order |
//! | `mapping`, `plain` | what an envelope means; the text of a message |
//! | `handler`, `handle`, `interact`, `download`, `people`, `threads` | what follows a message, a command or a press; files, names, threads |
//! | `send`, `outcome`, `find` | what is sent for a content, the outcome, and the search for an unknown one |
//! | `blocks` | Markdown and prompts as blocks |
//!
//! Invariants: an envelope is acknowledged after its content was stored. The tokens are sent to Slack's hosts only, and are in no
//! error, log or debug output.

mod api;
mod blocks;
mod channel;
mod check;
mod config;
mod connections;
mod download;
mod envelope;
mod error;
mod find;
mod handle;
mod handler;
mod handshake;
mod interact;
mod lanes;
mod mapping;
mod outcome;
mod people;
mod plain;
mod receive;
mod send;
mod service;
mod socket;
mod threads;
mod types;

pub use config::{Channels, ConfigError, Replies, SlackConfig, Token, TokenKind};
pub use service::SlackChannel;
