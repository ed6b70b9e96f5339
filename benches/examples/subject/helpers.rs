//! The helper processes of this host: the supervisor and the keepers.

use std::fs;
use std::path::PathBuf;

use teamster_benches::usage::cpu_ns_of;

/// Returns the processes that run this host's file, without the host.
pub(crate) fn pids() -> Vec<i32> {
    let this = std::env::current_exe().expect("this program's file");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id().cast_signed() && program(*pid).as_ref() == Some(&this)).collect()
}

/// Returns the CPU time of live processes, in nanoseconds.
pub(crate) fn cpu_ns(pids: &[i32]) -> u64 {
    pids.iter().filter_map(|pid| cpu_ns_of(*pid)).sum()
}

fn program(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}
