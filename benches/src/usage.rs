//! Clocks and memory of processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::time::{ClockId, clock_gettime};

/// Returns the monotonic clock, which is the same in all processes, in nanoseconds.
#[must_use]
pub fn now_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Returns the CPU time of this process and all its threads, in nanoseconds.
#[must_use]
pub fn cpu_ns() -> u64 {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// Returns the CPU time of another process and all its threads, in nanoseconds. The process may have exited, if its status
/// was not read yet. Its children do not count.
#[cfg(target_os = "linux")]
#[must_use]
pub fn cpu_ns_of(pid: i32) -> Option<u64> {
    let clock = ClockId::pid_cpu_clock_id(nix::unistd::Pid::from_raw(pid)).ok()?;
    clock_gettime(clock).ok().map(nanoseconds)
}

/// Returns the largest resident memory that this process ever had, in KiB.
#[must_use]
pub fn peak_rss_kib() -> u64 {
    status_kib("VmHWM:").unwrap_or_default()
}

/// Returns the resident memory of this process, in KiB.
#[must_use]
pub fn rss_kib() -> u64 {
    status_kib("VmRSS:").unwrap_or_default()
}

/// Returns the largest resident memory of a child whose status was read, in KiB.
#[must_use]
pub fn peak_rss_kib_of_children() -> u64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0, |usage| usage.max_rss().unsigned_abs())
}

/// Waits until no process runs this program.
pub fn wait_until_gone(program: &Path) {
    while processes_of(program).next().is_some() {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Returns the processes that run this program.
pub fn processes_of(program: &Path) -> impl Iterator<Item = i32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(move |pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
}

/// Sleeps until the monotonic clock reads `ns`.
pub fn sleep_until(ns: u64) {
    if let Some(left) = ns.checked_sub(now_ns()) {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

fn read(clock: ClockId) -> u64 {
    clock_gettime(clock).map(nanoseconds).unwrap_or_default()
}

fn nanoseconds(time: nix::sys::time::TimeSpec) -> u64 {
    time.num_nanoseconds().unsigned_abs()
}

fn status_kib(field: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    text.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse().ok())
}
