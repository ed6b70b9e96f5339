//! What differs from system to system, and nothing else: each has a file with the same functions.

#[cfg_attr(target_os = "linux", path = "linux.rs")]
#[cfg_attr(target_os = "macos", path = "macos.rs")]
mod system;

pub(crate) use system::*;
