//! Who may do what: tokens, scopes, sessions of the page, limits and the audit log.
//!
//! This module decides; `http::protect` puts its checks around the routers of the gateway.
//!
//! | module | contents |
//! |---|---|
//! | `identity` | scopes, and who makes a request |
//! | `secret` | secrets of tokens: made, hashed, never shown |
//! | `tokens` | tokens in the store, and the first one |
//! | `sessions` | cookies of the page |
//! | `authentication` | authenticates callers by the headers of their requests |
//! | `address` | the address of a client, behind a proxy or not |
//! | `origin` | the checks of `Host` and `Origin` |
//! | `limits` | limits for each token and address |
//! | `denials` | denied requests in the audit log |

mod address;
mod authentication;
mod denials;
mod identity;
mod limits;
mod origin;
mod secret;
mod sessions;
mod tokens;

pub use address::ClientAddress;
pub(crate) use authentication::{Authentication, Denial};
pub(crate) use denials::Denials;
pub(crate) use identity::{Authenticated, Method};
pub use identity::{Identity, Scope};
pub(crate) use limits::{Concurrency, LimitKey, Rate, StreamPermit, StreamPermits, new_sessions, requests};
pub(crate) use origin::{Hosts, WrongOrigin, is_https};
pub use secret::{InvalidSecret, Secret};
pub(crate) use sessions::{create as create_session, no_cookie, remove_ended as remove_ended_sessions};
pub use tokens::{AccessError, FirstToken, NewToken, TokenView, Tokens, first_token};
