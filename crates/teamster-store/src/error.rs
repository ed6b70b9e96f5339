//! The errors of a store.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ids::{ConversationId, DeliveryId, Epoch, FeedCursor, Seq};

/// Why a fork is refused.
pub(crate) const TOO_LARGE_FORK: &str =
    "the history has more than 50,000 events or 64 MiB, which a fork may copy; fork after an earlier event";

/// Why an operation had no effect. An operation that returns an error has changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The record does not exist, or it was deleted.
    #[error("{entity} {id} does not exist")]
    NotFound {
        /// What was requested.
        entity: Entity,
        /// Its id.
        id: String,
    },
    /// A record with this id or address exists.
    #[error("{entity} {id} exists already")]
    Exists {
        /// What was to be created.
        entity: Entity,
        /// Its id or address.
        id: String,
    },
    /// The caller does not hold the conversation: the lease has expired, or another worker has claimed it.
    #[error("the lease of conversation {conversation} with epoch {epoch} is lost; stop its turn")]
    LeaseLost {
        /// The conversation.
        conversation: ConversationId,
        /// The epoch of the caller.
        epoch: Epoch,
    },
    /// The caller does not hold the delivery.
    #[error("the lease of delivery {delivery} with epoch {epoch} is lost; do not send it")]
    DeliveryLeaseLost {
        /// The delivery.
        delivery: DeliveryId,
        /// The epoch of the caller.
        epoch: Epoch,
    },
    /// The idempotency key was used with another body.
    #[error("the idempotency key {key:?} was used with another body; use a new key for a new message")]
    IdempotencyMismatch {
        /// The key.
        key: String,
    },
    /// A queue is full.
    #[error("{queue} has {limit} waiting turns, its limit; send the message later")]
    QueueFull {
        /// Which queue.
        queue: Queue,
        /// Its limit.
        limit: u32,
    },
    /// The record has changed since the caller read it.
    #[error("the record has changed, its version is {current}; read it again")]
    VersionConflict {
        /// The version in the store.
        current: u64,
    },
    /// Retention has deleted the requested events.
    #[error("the events before number {oldest} are deleted; read from this number on")]
    EventsPruned {
        /// The oldest event that can be read.
        oldest: Seq,
    },
    /// Retention has deleted events of the feed that the reader does not have, or the position is after the end, because an older
    /// copy of the store was restored.
    #[error(
        "the log does not continue at this position: events are deleted, or an older copy of the store was restored; to \
         continue, read after {}",
        resume.as_str()
    )]
    FeedPruned {
        /// The position with which the reader accepts the gap.
        resume: FeedCursor,
    },
    /// The operation is not possible while a turn of the conversation runs.
    #[error("a turn of conversation {conversation} is running; abort it first")]
    ConversationBusy {
        /// The conversation.
        conversation: ConversationId,
    },
    /// The record's state does not permit the operation.
    #[error("{entity} {id} is {state}; it must be {required}")]
    WrongState {
        /// What was to be changed.
        entity: Entity,
        /// Its id.
        id: String,
        /// Its state.
        state: &'static str,
        /// The state that the operation needs.
        required: &'static str,
    },
    /// A search has reached its time limit.
    #[error("the search was stopped after {limit:?}; search for less, for example in one state, agent or channel")]
    SearchLimit {
        /// The longest time of a search.
        limit: Duration,
    },
    /// An argument is invalid.
    #[error("invalid argument: {reason}")]
    Invalid {
        /// What is wrong.
        reason: &'static str,
    },
    /// The disk is full, or the store has reached its own limit of size.
    #[error(
        "no space for {path:?}: free space on its disk or raise the size limit of the store; accepted messages are safe"
    )]
    DiskFull {
        /// The file of the store.
        path: PathBuf,
    },
    /// The file or its directory cannot be written.
    #[error("cannot write {path:?}: this user needs permission to write the file and its directory")]
    ReadOnly {
        /// The file of the store.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("{path:?} is damaged: stop all gateways that use it, move the file to another place and restore a backup")]
    Corrupt {
        /// The file of the store.
        path: PathBuf,
        /// The error of the database.
        source: Cause,
    },
    /// A newer release has written the store.
    #[error("{path:?} has schema {found}, this release knows {supported}: use the newer release, or restore a backup")]
    NewerSchema {
        /// The file of the store.
        path: PathBuf,
        /// The version in the file.
        found: u32,
        /// The newest version that this release knows.
        supported: u32,
    },
    /// The file belongs to another program.
    #[error("{path:?} is not a store of Teamster: choose another file")]
    ForeignFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is on a network file system, where the locks of SQLite are not reliable.
    #[error("{path:?} is on {kind}, where files can be damaged: use a local directory, or PostgreSQL")]
    NetworkFileSystem {
        /// The file.
        path: PathBuf,
        /// The type of the file system.
        kind: &'static str,
    },
    /// Another process has held the store for too long.
    #[error("another process has locked {path:?} for {waited:?}: check which process uses it; retry later")]
    Locked {
        /// The file of the store.
        path: PathBuf,
        /// The time limit.
        waited: Duration,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
    /// Any other failure of the database.
    #[error("cannot {action} the store")]
    Database {
        /// What was being done.
        action: &'static str,
        /// The error of the database.
        source: Cause,
    },
}

/// The cause of an error. It is shared because one commit may fail for several callers.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// The kinds of records that errors name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entity {
    /// A conversation.
    Conversation,
    /// A message.
    Message,
    /// A turn.
    Turn,
    /// A permission request.
    Permission,
    /// A delivery.
    Delivery,
    /// A schedule.
    Schedule,
    /// An API token.
    Token,
}

impl std::fmt::Display for Entity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Conversation => "conversation",
            Self::Message => "message",
            Self::Turn => "turn",
            Self::Permission => "permission request",
            Self::Delivery => "delivery",
            Self::Schedule => "schedule",
            Self::Token => "token",
        })
    }
}

/// The queues that have a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The waiting turns of one chat, in all of its threads.
    Chat,
    /// The waiting turns of all conversations.
    Total,
    /// The waiting turns of one author of the API.
    Author,
}

impl std::fmt::Display for Queue {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Chat => "the queue of this chat",
            Self::Total => "the queue of the gateway",
            Self::Author => "the part of the queue for one author",
        })
    }
}

impl StoreError {
    /// Returns an error about the content of a file with the path of another file, which has the same content.
    #[must_use]
    pub fn in_file(mut self, file: &std::path::Path) -> Self {
        if let Self::Corrupt { path, .. } | Self::NewerSchema { path, .. } | Self::ForeignFile { path } = &mut self {
            file.clone_into(path);
        }
        self
    }

    pub(crate) fn not_found(entity: Entity, id: impl std::fmt::Display) -> Self {
        Self::NotFound { entity, id: id.to_string() }
    }

    pub(crate) fn exists(entity: Entity, id: impl std::fmt::Display) -> Self {
        Self::Exists { entity, id: id.to_string() }
    }

    /// Returns whether the same call may succeed later, without a change by the operator.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Locked { .. } | Self::QueueFull { .. })
    }

    /// Returns whether the store cannot be written now, so that the same call succeeds when the cause has ended.
    pub const fn is_outage(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Locked { .. } | Self::Database { .. })
    }
}

/// The result of an operation.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
