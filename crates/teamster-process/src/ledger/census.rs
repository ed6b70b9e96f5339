//! Who is alive, and which marks they bear.
//!
//! They are looked at one after the other, and that takes time. One that ends before it is looked at may have left
//! a child that was born too late to be listed: a daemon that moves on to a new process all the time could slip through
//! every look. So it is looked again until nobody vanished unseen. That is quick: whom a process comes from is asked
//! once.

use std::{collections::HashMap, io, time::Instant};

use crate::{mark, process::Stat, sys};

/// How often it is looked at most, on a system where processes come and go all the time.
const LOOKS: usize = 25;

/// What is known of processes from look to look.
#[derive(Debug, Default)]
pub(super) struct Census {
    known: HashMap<i32, Known>,
    /// Whether the last scan read every process that it listed.
    pub(super) is_complete: bool,
}

#[derive(Debug)]
struct Known {
    start: u64,
    /// None for the dead.
    marks: Vec<String>,
}

impl Census {
    /// Who is alive. Each is shown, at the moment when it is looked at, with the marks that it bears. No new scan begins after
    /// the deadline.
    pub(super) fn take(&mut self, deadline: Instant, mut met: impl FnMut(&Stat, &[String])) -> io::Result<Vec<Stat>> {
        let mut looks = 1;
        loop {
            let (alive, is_complete) = self.look(&mut met)?;
            self.is_complete = is_complete;
            if is_complete || looks == LOOKS || Instant::now() >= deadline {
                return Ok(alive);
            }
            looks += 1;
        }
    }

    /// Who is alive, and whether nobody vanished of whom it is not known that he came from no run.
    fn look(&mut self, met: &mut impl FnMut(&Stat, &[String])) -> io::Result<(Vec<Stat>, bool)> {
        let mut now = HashMap::new();
        let mut alive = Vec::new();
        let mut is_complete = true;
        for pid in sys::numbers()? {
            let before = self.known.remove(&pid);
            let Some(stat) = sys::stat_of(pid) else {
                is_complete &= before.is_some_and(|before| before.marks.is_empty());
                continue;
            };
            let before = before.filter(|before| before.start == stat.start);
            if !stat.is_alive() {
                is_complete &= before.is_some_and(|before| before.marks.is_empty());
                now.insert(pid, Known { start: stat.start, marks: Vec::new() });
                continue;
            }
            let marks = match before {
                Some(before) => before.marks,
                None => match mark::borne_by(pid) {
                    Some(marks) => marks,
                    // It has none, or hides it, or died by now.
                    None if lives(&stat) => Vec::new(),
                    None => {
                        is_complete = false;
                        continue;
                    }
                },
            };
            met(&stat, &marks);
            now.insert(pid, Known { start: stat.start, marks });
            alive.push(stat);
        }
        self.known = now;
        Ok((alive, is_complete))
    }

    /// Whether a process that was alive at the last look bears this mark.
    pub(super) fn bears(&self, stat: &Stat, mark: &str) -> bool {
        let known = self.known.get(&stat.pid).filter(|known| known.start == stat.start);
        known.is_some_and(|known| known.marks.iter().any(|one| one == mark))
    }
}

fn lives(stat: &Stat) -> bool {
    sys::stat_of(stat.pid).is_some_and(|now| now.start == stat.start && now.is_alive())
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;
    use crate::mark::Mark;

    fn far() -> Instant {
        Instant::now() + Duration::from_mins(1)
    }

    #[test]
    fn each_living_process_is_shown_with_its_marks_and_asked_once() {
        let mark = Mark::unique();
        let name = mark.name();
        let mut child = Command::new("sleep").arg("300").env(name, "1").spawn().unwrap();
        let pid = child.id().cast_signed();
        let mut census = Census::default();
        for _ in 0..2 {
            let mut shown = 0;
            let alive =
                census.take(far(), |stat, marks| shown += usize::from(stat.pid == pid && marks == [name])).unwrap();
            assert!(shown > 0);
            let stat = alive.iter().find(|stat| stat.pid == pid).unwrap();
            assert!(census.bears(stat, name) && !census.bears(stat, "TEAMSTER_TREE_other"));
            assert!(!census.bears(&Stat { start: stat.start + 1, ..stat.clone() }, name));
        }
        child.kill().unwrap();
        // Dead, and not reaped: a zombie.
        let dead = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_raw(pid).unwrap()), dead).unwrap();
        assert!(!census.take(far(), |_, _| ()).unwrap().iter().any(|stat| stat.pid == pid && stat.is_alive()));
        child.wait().unwrap();
    }
}
