//! The limit on the size of files (`ulimit -f`).

use std::io;

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// Refuses what does not fit in a new file, before it is written: the write itself would send `SIGXFSZ`, which ends a host that
/// does not ignore it.
pub(crate) fn check(bytes: &[u8]) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if bytes.len() as u64 > limit => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}
