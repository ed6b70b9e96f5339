//! Reads the stores in which the agents' CLIs keep their sessions.
//!
//! - `search`: finds files of sessions; `content`: reads one; `database`: reads a database.
//! - `lookup`: finds one session, by its id or as the newest of a directory.
//! - `directory`: a working directory, in the forms in which CLIs store it.
//!
//! Invariants: no file of a store is changed or created; a file that cannot be read hides no other session; time and memory
//! are bounded, whatever the files contain.

pub(crate) mod content;
#[cfg(feature = "sessions")]
pub(crate) mod database;
pub(crate) mod directory;
pub(crate) mod lookup;
pub(crate) mod search;
#[cfg(test)]
mod tests;
