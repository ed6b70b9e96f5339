//! The gateway: it connects people and programs to agents, and keeps their conversations.
//!
//! Each conversation keeps its order, its agent session and its log, whatever crashes. The engine decides with pure functions
//! over plain data; the store ([`teamster_store`]) makes each step durable; the library ([`teamster`]) runs the agents.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `config` | the configuration as data |
//! | `engine` | accept, claim, run, retry, finish, permission requests: [`Gateway`] |
//! | `channels` | the inbox of channels, and the delivery of what they show |
//! | `http` | the API, its event streams, and the OpenAI-compatible API |
//! | `access` | tokens, scopes and the audit log |
//! | `hooks` | commands and webhooks of the operator |
//! | `tools` | the MCP tools that the gateway offers to agents |
//! | `schedules` | when schedules fire |
//! | `telemetry` | metrics, spans and JSON logs |
//! | `web` | the files of the web page |

pub mod access;
pub mod attachments;
pub mod channels;
mod clock;
pub mod config;
mod duration;
mod engine;
mod error;
pub mod event;
mod event_log;
mod failpoints;
pub mod hooks;
pub mod http;
pub mod instructions;
pub mod schedules;
mod session_request;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod tools;
pub mod web;

pub use clock::Clock;
pub use engine::{
    AcceptedMessage, Activity, AnswerResult, Caller, ConversationChange, EventStream, FeedStream, Gateway,
    IncomingMessage, MessageTarget, NewConversationRequest, Parts, Running, StreamError,
};
pub use error::GatewayError;
pub use event_log::EventLog;
pub use failpoints::FAILPOINTS;
pub use session_request::{Omission, omissions};
