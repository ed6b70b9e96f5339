//! The limit on the size of files (`ulimit -f`).

use std::io;

use rustix::{
    io::Errno,
    process::{Resource, getrlimit},
};

/// Rejects content that does not fit in a new file, before it is written. The write itself would send `SIGXFSZ`, which kills a
/// host that does not ignore it.
pub(crate) fn check(bytes: &[u8]) -> io::Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if bytes.len() as u64 > limit => Err(Errno::FBIG.into()),
        _ => Ok(()),
    }
}
