//! The HTTP API: everything below `/v1`, and the probes.
//!
//! | module | contents |
//! |---|---|
//! | `routing` | all routes |
//! | `state` | what the handlers share |
//! | `problem` | errors as problems (RFC 9457) |
//! | `extract`, `wire` | reads requests, and what responses share |
//! | `layers` | the layers of every call: time limit, panics, unknown paths |
//! | `openapi` | the description of the API |
//! | `conversation`, `conversations`, `settings`, `messages`, `history`, `turns`, `permissions` | conversations |
//! | `events`, `sse` | event streams |
//! | `agents`, `inspection` | the agents, and what an inspection finds |
//! | `files`, `schedules`, `usage`, `deliveries`, `operation` | everything else |
//! | `readiness` | whether messages can be accepted |
//! | `tokens` | tokens, sessions of the page, and the audit log |
//! | `audit` | writes the audit log |
//! | `openai` | the OpenAI-compatible API |
//! | `protect` | the checks around all routes: identity, origin, limits |
//! | `server` | connections, TLS, shutdown |
//!
//! A handler reads its caller from the extension [`Identity`](crate::access::Identity), which [`Protection`] inserts.

#![expect(unused_qualifications, reason = "the macro `utoipa::path` qualifies the types of parameters")]

mod agents;
mod audit;
mod conversation;
mod conversations;
mod deliveries;
mod events;
mod extract;
mod files;
mod history;
mod inspection;
mod layers;
mod messages;
mod openai;
mod openapi;
mod operation;
mod permissions;
mod problem;
mod protect;
mod readiness;
mod routing;
mod schedules;
mod server;
mod settings;
mod sse;
mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod turns;
mod usage;
mod wire;

pub use self::audit::audit;
pub use self::problem::{Problem, ProblemCode};
pub use self::protect::{Protection, ProtectionOptions};
pub use self::routing::{Routes, app, router, routes};
pub use self::server::{ServeError, Server, ServerOptions};
