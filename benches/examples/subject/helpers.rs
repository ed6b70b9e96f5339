//! The helper processes of this host: the supervisor and the keepers.

use teamster_benches::usage::{cpu_ns_of, processes_of};

/// Returns the processes that run this host's file, without the host.
pub(crate) fn pids() -> Vec<i32> {
    let this = std::env::current_exe().expect("this program's file");
    processes_of(&this).filter(|pid| *pid != std::process::id().cast_signed()).collect()
}

/// Returns the CPU time of live processes, in nanoseconds.
pub(crate) fn cpu_ns(pids: &[i32]) -> u64 {
    pids.iter().filter_map(|pid| cpu_ns_of(*pid)).sum()
}
