//! What an answer costs.

use std::ops::{Add, AddAssign};

/// Tokens of an answer. The four numbers do not overlap.
///
/// The defaults are such that no two sums of them are equal: a number that ends up in the wrong place is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Prompt tokens that came neither from a cache nor went into one.
    pub input: u64,
    /// Prompt tokens that were read from the cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to the cache.
    pub cache_write: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
}

impl Usage {
    /// Nothing used.
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
