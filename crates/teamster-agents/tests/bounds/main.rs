//! Memory limits for data from an agent. Each test runs in its own process, whose memory is measured.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints apply to helpers of tests; the memory of the process is read from /proc"
)]

mod protocols;
mod transcript;

pub(crate) const MIB: usize = 1 << 20;

/// Returns the peak memory of this process in bytes.
pub(crate) fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() * 1024
}

/// Asserts that the peak memory grew by less than this since it was `before`.
pub(crate) fn assert_grew_less_than(before: usize, bytes: usize) {
    let grown = peak().saturating_sub(before);
    assert!(grown < bytes, "{} MiB more", grown / MIB);
}
