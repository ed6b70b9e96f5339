//! Puts entries into users' configuration files for a while, and takes them out again without a trace.
//!
//! An agent that reads its servers from a file of the user's alone can be given more of them only there. This crate does
//! it so that nothing is lost, whatever happens: the user's content is saved before the first change, and comes back,
//! byte for byte, with the last who needed the entries; after a crash, with the next [`recover`](RestoreLog::recover).
//!
//! ```
//! use serde_json::json;
//! use teamster_config::document::{Format, Place};
//! use teamster_config::{How, RestoreLog, Merge};
//!
//! # let home = std::env::temp_dir().join(format!("teamster-config-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&home)?;
//! let path = home.join("settings.json");
//! std::fs::write(&path, "{\n  // mine\n  \"theme\": \"dark\"\n}\n")?;
//!
//! let journals = RestoreLog::in_directory(home.join("journals"));
//! let merged = journals.merge(&Merge {
//!     path: path.clone(),
//!     place: Place { format: Format::Jsonc, at: vec!["mcpServers".into()] },
//!     entries: [("calc".into(), json!({"command": "calc-server"}))].into(),
//!     template: String::new(),
//!     by: "a run".into(),
//!     within: None,
//! })?;
//! assert!(std::fs::read_to_string(&path)?.contains("calc-server"));
//!
//! assert_eq!(merged.restore()?.how, How::Exactly);
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
//! - Before a file is changed for the first time, its content is saved and synced. A journal that is not whole means that
//!   nothing was changed.
//! - Users of the same file share it. Each takes out its own entries, and the last one brings the user's content back. What
//!   one of them wrote is never taken for the user's content by another.
//! - What somebody else wrote into the file meanwhile stays. Where it cannot be told apart from ours, the file is left as
//!   it is, and the user's content is kept and named.
//! - An entry of the user's with the same name gives way while ours is needed, and comes back as it was.
//! - No file is followed through a link that came after the merge; none is written in place. In a project
//!   ([`Merge::within`]) only the user's own links are followed, and only to what is in the project.
//! - Directories and files get their modes whatever the umask is.
//! - No environment variable is read. `Debug` and errors show no value of an entry, and nothing of the user's content.
//! - All calls block, for some milliseconds; a lock of others is waited for at most ten seconds.
//!
//! It works among processes that use the same directory for journals, on one machine.

pub mod document;

mod error;
mod file_size;
mod links;
mod merge;
mod modes;
mod settle;
mod state;
mod target;

pub use error::{ConfigError, TargetProblem};
pub use merge::{How, Merge, Merged, Recovery, RestoreLog, Restored, Survey, WhyLeft};

/// The largest file that is edited.
pub const MAX_BYTES: u64 = 16 << 20;
