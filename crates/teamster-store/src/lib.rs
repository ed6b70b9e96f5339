//! The gateway's store: conversations, turns, leases, the event log and the delivery queue.
//!
//! The store makes each step of the gateway durable and exclusive. It runs no agent, speaks no protocol, reads no clock
//! and generates no ids. [`Store`] is written for many workers on many machines:
//!
//! - **One transaction per operation.** An operation that returns `Ok` is durable, even after a power loss. One that returns an
//!   error has changed nothing. If a caller drops a future, its operation may still take effect.
//! - **Leases with epochs.** A worker claims a conversation for a time. Each of its writes carries the epoch of its claim, and
//!   fails with [`StoreError::LeaseLost`] after another claim.
//! - **Compare and set.** Answers, edits, schedules and settings apply only to the state that the caller has read.
//! - **A log without gaps.** Each conversation numbers its events. A reader continues after any number.
//!
//! ```
//! use teamster_store::{ChatAddress, ConversationId, ConversationStore, Json, MemoryStore, NewConversation, Timestamp};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = MemoryStore::new();
//! let now = Timestamp::from_millis(1_800_000_000_000);
//! let new = NewConversation {
//!     id: ConversationId::new(uuid::Uuid::from_u128(1)),
//!     address: ChatAddress { channel: "http".into(), chat: "1".into(), thread: String::new() },
//!     agent: "claude".into(),
//!     title: None,
//!     settings: Json::empty(),
//! };
//! let conversation = store.create_conversation(new, None, now).await?;
//! assert_eq!(conversation.last_seq.get(), 0);
//! # Ok::<(), teamster_store::StoreError>(()) }).unwrap();
//! ```
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | `store` | the traits, one for each caller; [`Store`] is all of them |
//! | `records` | the data that goes in and comes out |
//! | `memory` | [`MemoryStore`], the model: the rules as plain code, nothing on disk |
//! | `sqlite` | [`SqliteStore`], one file for the workers of one machine |
//! | `conformance` | the suite that each implementation passes (feature `conformance`) |

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod feed_position;
mod file_names;
mod ids;
mod memory;
mod records;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;

pub use error::{Cause, Entity, Queue, Result, StoreError};
pub use ids::{
    ConversationId, Cursor, Day, DeliveryId, Epoch, FeedCursor, HostId, Json, MessageId, PermissionId, ScheduleId, Seq,
    Timestamp, TokenId, TurnId, WorkerId,
};
pub use memory::MemoryStore;
pub use records::*;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{
    AccessStore, ConversationStore, DeliveryStore, IntakeStore, LogStore, MaintenanceStore, PermissionStore,
    ScheduleStore, Store, WorkStore,
};
