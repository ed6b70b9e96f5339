//! A process that was not killed.

use serde::{Deserialize, Serialize};

/// A living member of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// The pid.
    pub pid: u32,
    /// The beginning of its program's name: 15 bytes on Linux, 31 on macOS.
    pub name: String,
}
