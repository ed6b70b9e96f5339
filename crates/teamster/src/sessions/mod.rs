//! The sessions that the agents' CLIs store, also those that were started without Teamster. The stores are only read, never changed.
//!
//! ```no_run
//! use teamster::Runtime;
//! use teamster::sessions::SessionQuery;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut query = SessionQuery::default();
//! query.directory = Some(std::env::current_dir()?);
//! for session in Runtime::new().sessions(&query)?.sessions {
//!     println!("{} {}", session.agent, session.id.escaped());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - `list`: the list; `stored`: what it contains; `found`: collects it.
//! - `files`: stores with one file for each session. The module `stores` reads files and databases.

mod files;
mod found;
mod list;
mod stored;
#[cfg(test)]
mod tests;

pub use self::stored::{SessionList, SessionQuery, SkippedPath, StoredSession};
pub use teamster_agents::agent::session_store::Exchange;
