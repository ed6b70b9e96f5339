//! How a file is opened.

use std::time::Duration;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// How long an operation waits for another process that writes.
    pub busy_timeout: Duration,
    /// The largest size of the file in bytes. At the limit, writes fail with `DiskFull`, and reads still work.
    pub max_bytes: Option<u64>,
    /// The longest time of a search, which may have to read all messages.
    pub search_limit: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), max_bytes: None, search_limit: Duration::from_secs(2) }
    }
}
