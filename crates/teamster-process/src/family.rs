//! Decides who belongs to a process tree, from what `/proc` shows.
//!
//! Pure: snapshots come in, members go out. The parent's number alone does not find everybody, since a process that
//! outlives its parent gets another one; groups, sessions and earlier snapshots tell whom it came from.

use std::collections::{HashMap, HashSet};

use crate::procfs::Stat;

/// What is known of a tree's members.
#[derive(Debug)]
pub(crate) struct Family {
    /// `None` when it was reaped, so that its number may belong to others.
    leader: Option<i32>,
    host: Host,
    /// Members of the last snapshot: number and start time.
    known: HashMap<i32, u64>,
    /// Sessions that members have opened, and groups that they lead. A number is forgotten with the last process that
    /// has it: until then the system does not give it to others.
    sessions: HashSet<i32>,
    groups: HashSet<i32>,
}

/// The process that started the tree: what is never a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    pub(crate) pid: i32,
    pub(crate) session: i32,
}

impl Family {
    pub(crate) fn new(leader: i32, host: Host) -> Self {
        Self {
            leader: Some(leader),
            host,
            known: HashMap::new(),
            sessions: HashSet::new(),
            groups: HashSet::from([leader]),
        }
    }

    pub(crate) fn lose_leader(&mut self) {
        if let Some(leader) = self.leader.take() {
            self.groups.remove(&leader);
        }
    }

    /// Learns from a snapshot, and returns the members in it, dead ones included.
    pub(crate) fn update(&mut self, snapshot: Vec<Stat>) -> Vec<Stat> {
        let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
        let mut by_session: HashMap<i32, Vec<usize>> = HashMap::new();
        let mut by_group: HashMap<i32, Vec<usize>> = HashMap::new();
        for (index, stat) in snapshot.iter().enumerate() {
            children.entry(stat.parent).or_default().push(index);
            by_session.entry(stat.session).or_default().push(index);
            by_group.entry(stat.group).or_default().push(index);
        }

        let mut waiting: Vec<usize> = Vec::new();
        for (index, stat) in snapshot.iter().enumerate() {
            if Some(stat.pid) == self.leader
                || self.known.get(&stat.pid) == Some(&stat.start)
                || self.sessions.contains(&stat.session)
                || self.groups.contains(&stat.group)
            {
                waiting.push(index);
            }
        }

        self.known.clear();
        self.sessions.clear();
        self.groups = self.leader.into_iter().collect();
        let mut found = HashSet::new();
        while let Some(index) = waiting.pop() {
            let Some(stat) = snapshot.get(index) else {
                continue;
            };
            if stat.pid == self.host.pid || stat.pid <= 1 || !found.insert(index) {
                continue;
            }
            self.known.insert(stat.pid, stat.start);
            waiting.extend(children.get(&stat.pid).into_iter().flatten());
            // Nobody can join a session: one that is not the host's was opened by a member.
            if stat.session > 0 && stat.session != self.host.session && self.sessions.insert(stat.session) {
                waiting.extend(by_session.get(&stat.session).into_iter().flatten());
            }
            // A group can be joined, so only those that a member leads are the tree's own.
            if stat.group == stat.pid && self.groups.insert(stat.group) {
                waiting.extend(by_group.get(&stat.group).into_iter().flatten());
            }
        }
        snapshot.into_iter().enumerate().filter(|(index, _)| found.contains(index)).map(|(_, stat)| stat).collect()
    }
}
