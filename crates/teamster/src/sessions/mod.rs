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
//! - `files`: stores with one file for each session; `database`: stores in a database.
//!
//! Invariants: no file of a store is changed or created; a file that cannot be read hides no other session; time and memory
//! are bounded, whatever the files contain.

mod database;
mod directory;
mod files;
mod found;
mod list;
mod stored;
#[cfg(test)]
mod tests;

pub use self::stored::{SessionList, SessionQuery, SkippedPath, StoredSession};
pub use teamster_agents::agent::session_store::Exchange;
