//! The machine and its processes.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use crate::command::{output, program as command};

/// Returns the processor, the number of cores, the kernel and the versions of the interpreters.
pub(crate) fn description() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, model)| model));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    let version = |name: &str| output(command(name, &["--version"])).unwrap_or_else(|| "absent".to_owned());
    format!(
        "{cores} cores of {}, Linux {kernel}, {}, Node.js {}, {}",
        model.unwrap_or("an unknown processor"),
        version("rustc").split(" (").next().unwrap_or_default(),
        version("node"),
        version("python3"),
    )
}

/// Returns a process and all its descendants.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut children = HashMap::<u32, Vec<u32>>::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        children.entry(parent(pid).unwrap_or_default()).or_default().push(pid);
    }
    let (mut found, mut open) = (vec![of], vec![of]);
    while let Some(pid) = open.pop() {
        let born = children.remove(&pid).unwrap_or_default();
        open.extend(&born);
        found.extend(born);
    }
    found
}

pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

pub(crate) fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// Returns a process's share of memory.
pub(crate) fn pss_kib(pid: u32) -> u32 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
    pss.unwrap_or_default()
}
