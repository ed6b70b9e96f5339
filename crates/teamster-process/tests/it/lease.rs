//! Trees that run under a lease of this program.

use std::{
    fs,
    time::{Duration, Instant},
};

use teamster_process::{Exit, HostLease, Keeper, LeaseTime, OutputReader, ProcessTree, SpawnError};

use crate::{LONG, SUPERVISOR, eventually, is_alive, leads_a_session, numbers, sh};

/// How long killing a tree may take after the deadline, on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// Starts a script under this lease and reads the first `count` pids that it prints.
async fn start(lease: &HostLease, script: &str, count: usize) -> (ProcessTree, OutputReader, Vec<u32>) {
    let keeper = Keeper::request(&SUPERVISOR).await.unwrap().with_lease(Some(lease));
    let (tree, pipes) = keeper.spawn_until(&sh(script), None, std::future::pending()).await.unwrap();
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    let pids = numbers(&mut stdout, count).await;
    (tree, stdout, pids)
}

fn lease_for(duration: Duration) -> HostLease {
    let lease = HostLease::new().unwrap();
    lease.renew(LeaseTime::now() + duration);
    lease
}

/// Returns how often a process has waited for an event.
fn waits(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_tree_whose_lease_is_not_renewed_is_killed_at_the_deadline() {
    let limit = Duration::from_millis(1500);
    let began = Instant::now();
    let lease = lease_for(limit);
    let script = "trap '' TERM; echo $$; setsid sleep 300 & echo $!; wait";
    let (tree, _stdout, pids) = start(&lease, script, 2).await;
    leads_a_session(pids[1]).await;
    assert!(!tree.lease_expired());
    assert_eq!(tree.exited().await.signal, Some(9));
    assert!(began.elapsed() >= limit && began.elapsed() < limit + SOON, "{:?}", began.elapsed());
    assert!(tree.lease_expired());
    assert_eq!(tree.terminate(LONG).await, []);
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
}

#[tokio::test]
async fn a_renewed_lease_keeps_the_tree() {
    let lease = lease_for(SOON);
    let (tree, _stdout, pids) = start(&lease, "echo $$; sleep 300", 1).await;
    let first_deadline = LeaseTime::now() + SOON;
    while LeaseTime::now() <= first_deadline {
        assert!(lease.renew(LeaseTime::now() + SOON));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_alive(pids[0]) && !tree.lease_expired());
    assert_eq!(tree.terminate(LONG).await, []);
    assert!(!tree.lease_expired());
}

#[tokio::test]
async fn a_renewal_after_the_deadline_keeps_later_trees_only() {
    let lease = lease_for(LONG);
    let (old, _stdout, pids) = start(&lease, "echo $$; sleep 300", 1).await;
    lease.renew(LeaseTime::now());
    let keeper = Keeper::request(&SUPERVISOR).await.unwrap().with_lease(Some(&lease));
    let refused = keeper.spawn_until(&sh("echo started"), None, std::future::pending()).await;
    assert!(matches!(refused, Err(SpawnError::LeaseExpired)), "{refused:?}");
    assert!(!lease.renew(LeaseTime::now() + LONG), "it had expired");
    let (new, _new_stdout, new_pids) = start(&lease, "echo $$; sleep 300", 1).await;
    eventually("the tree of the old term is dead", || !is_alive(pids[0])).await;
    assert_eq!(old.exited().await.signal, Some(9));
    assert!(old.lease_expired());
    assert!(is_alive(new_pids[0]) && !new.lease_expired());
    assert_eq!(new.terminate(LONG).await, []);
}

#[tokio::test]
async fn renewals_wake_no_keeper_and_a_keeper_without_a_lease_has_no_timer() {
    let lease = lease_for(Duration::from_secs(1));
    let (leased, _stdout, _) = start(&lease, "echo $$; sleep 300", 1).await;
    let (free, _free_stdout, _) = start_without_lease("echo $$; sleep 300").await;
    eventually("the keeper waits", || crate::stat(free.keeper()).unwrap().0 == "S").await;
    let (before_free, before_leased) = (waits(free.keeper()), waits(leased.keeper()));
    for _ in 0..10_000 {
        lease.renew(LeaseTime::now() + Duration::from_secs(1));
    }
    assert!(waits(leased.keeper()) <= before_leased + 3, "a renewal is no message");
    eventually("the keeper has read the deadline twice", || {
        lease.renew(LeaseTime::now() + Duration::from_millis(300));
        waits(leased.keeper()) >= before_leased + 4
    })
    .await;
    assert_eq!(waits(free.keeper()), before_free);
    for tree in [leased, free] {
        assert_eq!(tree.terminate(LONG).await, []);
    }
}

async fn start_without_lease(script: &str) -> (ProcessTree, OutputReader, Vec<u32>) {
    crate::start_and_read(script, 1).await
}

#[tokio::test]
async fn a_tree_that_ends_by_itself_is_not_reported_as_expired() {
    let lease = lease_for(LONG);
    let keeper = Keeper::request(&SUPERVISOR).await.unwrap().with_lease(Some(&lease));
    let (tree, _pipes) = keeper.spawn_until(&sh("exit 3"), None, std::future::pending()).await.unwrap();
    assert_eq!(tree.exited().await, Exit { code: Some(3), signal: None });
    lease.renew(LeaseTime::now());
    assert_eq!(tree.terminate(LONG).await, []);
    assert!(!tree.lease_expired());
}
