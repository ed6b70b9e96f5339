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
    /// When the leader was started.
    born: u64,
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
    pub(crate) fn new(leader: i32, born: u64, host: Host) -> Self {
        Self {
            leader: Some(leader),
            born,
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

    /// Takes in those of a snapshot that are kin to nobody, but came from the tree as `came_from_it` knows. Asked about
    /// are only processes that are not members, and not older than the leader was.
    pub(crate) fn adopt(&mut self, snapshot: &[Stat], mut came_from_it: impl FnMut(&Stat) -> bool) {
        for stat in snapshot {
            let may_be = stat.is_alive() && stat.pid > 1 && stat.pid != self.host.pid && stat.start >= self.born;
            if may_be && self.known.get(&stat.pid) != Some(&stat.start) && came_from_it(stat) {
                self.known.insert(stat.pid, stat.start);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Host = Host { pid: 10, session: 5 };
    const LEADER: i32 = 100;

    /// A process that was started at the time of its number.
    fn process(pid: i32, parent: i32, group: i32, session: i32) -> Stat {
        Stat {
            pid,
            name: "x".into(),
            state: b'S',
            parent,
            group,
            session,
            threads: 1,
            start: pid.unsigned_abs().into(),
        }
    }

    fn host_and(others: &[Stat]) -> Vec<Stat> {
        let mut all = vec![process(1, 0, 1, 1), process(5, 1, 5, 5), process(10, 5, 10, 5), process(11, 10, 11, 5)];
        all.extend_from_slice(others);
        all
    }

    fn family() -> Family {
        Family::new(LEADER, LEADER.unsigned_abs().into(), HOST)
    }

    fn members(family: &mut Family, others: &[Stat]) -> Vec<i32> {
        family.update(host_and(others)).iter().map(|stat| stat.pid).collect()
    }

    fn leader() -> Stat {
        process(LEADER, 10, LEADER, 5)
    }

    #[test]
    fn descendants_in_groups_and_sessions_of_their_own_are_members() {
        let tree = [
            leader(),
            process(101, 100, 100, 5),
            process(102, 101, 102, 5),
            process(103, 101, 103, 103),
            process(104, 103, 104, 103),
        ];
        assert_eq!(members(&mut family(), &tree), [100, 101, 102, 103, 104]);
    }

    #[test]
    fn an_orphan_in_the_group_of_the_leader_is_a_member() {
        let zombie = Stat { state: b'Z', ..leader() };
        assert_eq!(members(&mut family(), &[zombie, process(101, 1, 100, 5)]), [100, 101]);
    }

    #[test]
    fn an_orphan_is_a_member_if_it_was_seen_before() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 101, 101)]);
        assert_eq!(members(&mut family, &[leader(), process(101, 1, 101, 101)]), [100, 101]);
        assert_eq!(members(&mut family, &[process(101, 1, 101, 101)]), [101]);
    }

    #[test]
    fn an_orphan_is_a_member_if_its_session_was_opened_by_one() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 101, 101)]);
        assert_eq!(members(&mut family, &[leader(), process(102, 1, 101, 101)]), [100, 102]);
        assert_eq!(members(&mut family, &[leader(), process(103, 1, 103, 101)]), [100, 103]);
    }

    #[test]
    fn an_orphan_is_a_member_if_a_member_led_its_group() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 101, 5)]);
        assert_eq!(members(&mut family, &[leader(), process(102, 1, 101, 5)]), [100, 102]);
    }

    #[test]
    fn a_stranger_that_came_from_the_tree_is_adopted_with_its_kin() {
        let mut family = family();
        let orphan = process(150, 1, 150, 150);
        let tree = [leader(), orphan.clone(), process(151, 150, 150, 150), process(152, 1, 152, 152)];
        assert_eq!(members(&mut family, &tree), [100]);
        let mut asked = Vec::new();
        family.adopt(&host_and(&tree), |stat| {
            asked.push(stat.pid);
            stat.pid == orphan.pid
        });
        assert_eq!(asked, [150, 151, 152], "nobody older than the leader is asked about");
        assert_eq!(members(&mut family, &tree), [100, 150, 151]);
    }

    #[test]
    fn a_process_that_got_the_number_of_a_dead_member_is_none() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 100, 5)]);
        let other = Stat { start: 999, ..process(101, 11, 11, 5) };
        assert_eq!(members(&mut family, &[leader(), other]), [100]);
    }

    #[test]
    fn a_session_is_forgotten_with_its_last_process() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 101, 101)]);
        members(&mut family, &[leader()]);
        assert_eq!(members(&mut family, &[leader(), process(102, 1, 101, 101)]), [100]);
    }

    #[test]
    fn the_host_and_its_session_and_other_trees_are_never_members() {
        let other_tree = [process(200, 10, 200, 5), process(201, 200, 201, 201)];
        let joined_the_hosts_group = process(101, 100, 10, 5);
        let tree = [other_tree.as_slice(), &[leader(), joined_the_hosts_group]].concat();
        assert_eq!(members(&mut family(), &tree), [100, 101]);
    }

    #[test]
    fn the_group_of_a_leader_that_was_reaped_by_others_is_not_the_trees() {
        let mut family = family();
        members(&mut family, &[leader(), process(101, 100, 100, 5)]);
        family.lose_leader();
        let reused = [Stat { start: 999, ..leader() }, process(102, 1, 100, 5)];
        assert_eq!(members(&mut family, &[reused.as_slice(), &[process(101, 1, 100, 5)]].concat()), [101]);
    }
}
