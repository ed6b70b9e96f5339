//! Scans all living processes and their environment markers.
//!
//! Processes are read one after another, which takes time. A process that ends before it is read
//! may have started a child too late to be listed, so a daemon that keeps replacing itself could
//! escape every scan. So the scan is repeated until no unread process disappeared. A repeat is
//! quick: the environment of each process is read once.

use std::{collections::HashMap, io, time::Instant};

use crate::{env_marker, stat::Stat, sys};

/// The largest number of passes, on a system where processes start and end all the time.
const MAX_PASSES: usize = 25;

/// A scan of all processes. It caches environment markers between passes.
#[derive(Debug, Default)]
pub(super) struct ProcessScan {
    known: HashMap<i32, CachedProcess>,
    /// Whether the last pass read every process that it listed.
    pub(super) is_complete: bool,
}

#[derive(Debug)]
struct CachedProcess {
    start: u64,
    /// Empty for a dead process.
    markers: Vec<String>,
}

impl ProcessScan {
    /// Returns the living processes. Calls `on_process` with each process and its markers when it
    /// is read. No pass starts after the deadline.
    pub(super) fn run(
        &mut self,
        deadline: Instant,
        mut on_process: impl FnMut(&Stat, &[String]),
    ) -> io::Result<Vec<Stat>> {
        let mut passes = 1;
        loop {
            let (alive, is_complete) = self.pass(&mut on_process)?;
            self.is_complete = is_complete;
            if is_complete || passes == MAX_PASSES || Instant::now() >= deadline {
                return Ok(alive);
            }
            passes += 1;
        }
    }

    /// Returns the living processes, and whether no process disappeared that could belong to a run.
    fn pass(&mut self, on_process: &mut impl FnMut(&Stat, &[String])) -> io::Result<(Vec<Stat>, bool)> {
        let mut now = HashMap::new();
        let mut alive = Vec::new();
        let mut is_complete = true;
        for pid in sys::numbers()? {
            let before = self.known.remove(&pid);
            let Some(stat) = sys::stat_of(pid) else {
                is_complete &= before.is_some_and(|before| before.markers.is_empty());
                continue;
            };
            let before = before.filter(|before| before.start == stat.start);
            if !stat.is_alive() {
                is_complete &= before.is_some_and(|before| before.markers.is_empty());
                now.insert(pid, CachedProcess { start: stat.start, markers: Vec::new() });
                continue;
            }
            let markers = match before {
                Some(before) => before.markers,
                None => match env_marker::markers_of(pid) {
                    Some(markers) => markers,
                    // It has no environment, or hides it, or is dead.
                    None if is_still_alive(&stat) => Vec::new(),
                    None => {
                        is_complete = false;
                        continue;
                    }
                },
            };
            on_process(&stat, &markers);
            now.insert(pid, CachedProcess { start: stat.start, markers });
            alive.push(stat);
        }
        self.known = now;
        Ok((alive, is_complete))
    }

    /// Returns whether a process that was alive in the last pass has this marker.
    pub(super) fn has_marker(&self, stat: &Stat, marker: &str) -> bool {
        let known = self.known.get(&stat.pid).filter(|known| known.start == stat.start);
        known.is_some_and(|known| known.markers.iter().any(|one| one == marker))
    }
}

fn is_still_alive(stat: &Stat) -> bool {
    sys::stat_of(stat.pid).is_some_and(|now| now.start == stat.start && now.is_alive())
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;
    use crate::env_marker::EnvMarker;

    fn far() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[test]
    fn each_living_process_is_reported_with_its_markers() {
        let marker = EnvMarker::unique();
        let name = marker.name();
        let mut child = Command::new("sleep").arg("300").env(name, "1").spawn().unwrap();
        let pid = child.id().cast_signed();
        let mut scan = ProcessScan::default();
        for _ in 0..2 {
            let mut shown = 0;
            let alive =
                scan.run(far(), |stat, markers| shown += usize::from(stat.pid == pid && markers == [name])).unwrap();
            assert!(shown > 0);
            let stat = alive.iter().find(|stat| stat.pid == pid).unwrap();
            assert!(scan.has_marker(stat, name) && !scan.has_marker(stat, "TEAMSTER_TREE_other"));
            assert!(!scan.has_marker(&Stat { start: stat.start + 1, ..stat.clone() }, name));
        }
        child.kill().unwrap();
        // Dead, and not reaped: a zombie.
        let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_raw(pid).unwrap()), dead).unwrap();
        assert!(!scan.run(far(), |_, _| ()).unwrap().iter().any(|stat| stat.pid == pid && stat.is_alive()));
        child.wait().unwrap();
    }
}
