//! Positions in the feed, as stores with numbers write them.

use crate::error::{Result, StoreError};
use crate::ids::FeedCursor;

/// A position in the feed, as a store with numbers writes it: `NUMBER`, or `NUMBER.PRUNED` if the reader knows that events up to
/// the second number may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedPosition {
    /// The number of the last event that the reader has.
    pub(crate) after: u64,
    /// Gaps up to this number are known.
    pub(crate) known_gap: u64,
}

impl FeedPosition {
    /// Reads a cursor. Events up to the number `pruned` may be deleted. `last` is the number of the last event of the feed. At the
    /// start, the reader is not missing any event.
    ///
    /// A cursor after the end is from before a restore of an older copy: the reader has events that are not in the log.
    pub(crate) fn read(cursor: Option<&FeedCursor>, pruned: u64, last: u64) -> Result<Self> {
        let Some(cursor) = cursor else { return Ok(Self { after: 0, known_gap: pruned }) };
        let (after, known_gap) = cursor.as_str().split_once('.').unwrap_or((cursor.as_str(), "0"));
        let position = after.parse().ok().zip(known_gap.parse().ok());
        let (after, known_gap) = position.ok_or(StoreError::Invalid { reason: "the cursor is not one of the feed" })?;
        if after > last {
            return Err(StoreError::FeedPruned { resume: Self { after: last, known_gap: pruned }.cursor() });
        }
        if after < pruned && known_gap < pruned {
            return Err(StoreError::FeedPruned { resume: Self { after, known_gap: pruned }.cursor() });
        }
        Ok(Self { after, known_gap })
    }

    /// Returns the cursor after an event.
    pub(crate) fn at(self, after: u64) -> FeedCursor {
        Self { after, ..self }.cursor()
    }

    fn cursor(self) -> FeedCursor {
        let Self { after, known_gap } = self;
        FeedCursor::new(if after < known_gap { format!("{after}.{known_gap}") } else { after.to_string() })
    }
}
