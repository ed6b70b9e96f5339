//! Adds entries to users' configuration files for a time, and removes them without a trace.
//!
//! Some agents read their servers only from a file of the user. This crate edits such a file so that nothing is lost: the
//! user's content is saved before the first change. It is restored byte for byte when the last holder no longer needs its
//! entries, or after a crash by the next [`recover`](RestoreLog::recover).
//!
//! ```
//! use serde_json::json;
//! use teamster_config::document::{Format, Location};
//! use teamster_config::{RestoreOutcome, RestoreLog, Merge};
//!
//! # let home = std::env::temp_dir().join(format!("teamster-config-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&home)?;
//! let path = home.join("settings.json");
//! std::fs::write(&path, "{\n  // mine\n  \"theme\": \"dark\"\n}\n")?;
//!
//! let journals = RestoreLog::in_directory(home.join("journals"));
//! let merged = journals.merge(&Merge {
//!     path: path.clone(),
//!     location: Location { format: Format::Jsonc, at: vec!["mcpServers".into()] },
//!     entries: [("calc".into(), json!({"command": "calc-server"}))].into(),
//!     template: String::new(),
//!     by: "a run".into(),
//!     within: None,
//! })?;
//! assert!(std::fs::read_to_string(&path)?.contains("calc-server"));
//!
//! assert_eq!(merged.restore()?.how, RestoreOutcome::Exactly);
//! assert_eq!(std::fs::read_to_string(&path)?, "{\n  // mine\n  \"theme\": \"dark\"\n}\n");
//! # std::fs::remove_dir_all(home)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`document`] | entries in TOML and in JSON with comments, as text alone |
//! | [`RestoreLog`] | merges and their end: files, locks, journals |
//!
//! # Invariants
//!
//! - Before a file is changed for the first time, its content is saved and synced. An incomplete journal means that
//!   nothing was changed.
//! - Holders of entries in the same file share it. Each removes its own entries, and the last one restores the user's
//!   content. The entries of one holder are never taken for the user's content.
//! - Changes by others are kept. If they cannot be distinguished from the entries, the file is not changed, and the user's
//!   content is kept in a file that the result names.
//! - A user's entry with the same name is replaced while the entry is needed, and restored afterwards.
//! - No link that was created after the merge is followed, and no file is written in location. In a project
//!   ([`Merge::within`]) only the user's own links are followed, and only to targets in the project.
//! - Directories and files get their modes whatever the umask is.
//! - No environment variable is read. `Debug` and errors show no value of an entry, and no content of the user's files.
//! - All calls block for some milliseconds. They wait for a lock for at most ten seconds.
//!
//! Processes must use the same directory for journals, on one machine.

pub mod document;

mod error;
mod file_size;
mod links;
mod merge;
mod modes;
mod restored;
mod settle;
mod state;
mod target;

pub use error::{ConfigError, TargetProblem};
pub use merge::{Merge, Merged, Recovery, RestoreLog, Survey};
pub use restored::{NotRestoredReason, RestoreOutcome, Restored};

/// The maximum size of an edited file.
pub const MAX_BYTES: u64 = 16 << 20;
