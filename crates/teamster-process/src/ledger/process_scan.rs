//! Who is alive, and which markers they bear.
//!
//! They are looked at one after the other, and that takes time. One that ends before it is looked at may have left
//! a child that was born too late to be listed: a daemon that moves on to a new process all the time could slip through
//! every look. So it is looked again until nobody vanished unseen. That is quick: whom a process comes from is asked
//! once.

use std::{collections::HashMap, io, time::Instant};

use crate::{env_marker, process::Stat, sys};

/// How often it is looked at most, on a system where processes come and go all the time.
const MAX_PASSES: usize = 25;

/// What is known of processes from look to look.
#[derive(Debug, Default)]
pub(super) struct ProcessScan {
    known: HashMap<i32, CachedProcess>,
    /// Whether the last scan read every process that it listed.
    pub(super) is_complete: bool,
}

#[derive(Debug)]
struct CachedProcess {
    start: u64,
    /// None for the dead.
    markers: Vec<String>,
}

impl ProcessScan {
    /// Who is alive. Each is shown, at the moment when it is looked at, with the markers that it has_marker. No new scan begins after
    /// the deadline.
    pub(super) fn run(&mut self, deadline: Instant, mut on_process: impl FnMut(&Stat, &[String])) -> io::Result<Vec<Stat>> {
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

    /// Who is alive, and whether nobody vanished of whom it is not known that he came from no run.
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
                    // It has none, or hides it, or died by now.
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

    /// Whether a process that was alive at the last look has_marker this marker.
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
    fn each_living_process_is_shown_with_its_marks_and_asked_once() {
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
