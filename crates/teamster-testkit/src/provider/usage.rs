//! Token usage.

use std::ops::{Add, AddAssign};

/// The tokens of a reply. The four numbers do not overlap.
///
/// The defaults are chosen so that all their sums differ. A number in the wrong field is therefore
/// detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that were neither read from a cache nor written to it.
    pub input: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_write: u64,
    /// Generated tokens, including thinking.
    pub output: u64,
}

impl Usage {
    /// No usage.
    pub const ZERO: Self = Self { input: 0, cache_read: 0, cache_write: 0, output: 0 };
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 25, cache_read: 50, cache_write: 100, output: 40 }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            output: self.output + other.output,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
