//! Whole trees: which members are found and signaled, and that all of them end.

use std::time::{Duration, Instant};

use rustix::process::{Pid, kill_process};
use teamster_process::{ProcessTree, Signal};

use crate::{LONG, alive_with, all_die, eventually, is_alive, leads_a_session, numbers, start, start_and_read, stat};

/// A leader with a member in its group, and a member in its own session.
const WITH_A_SESSION: &str = "sleep 300 & echo $!; setsid sleep 300 & echo $!; wait";

async fn with_a_session() -> (ProcessTree, Vec<u32>) {
    let (tree, _stdout, pids) = start_and_read(WITH_A_SESSION, 2).await;
    leads_a_session(pids[1]).await;
    (tree, pids)
}

#[tokio::test]
async fn the_living_members_are_listed() {
    let (tree, pids) = with_a_session().await;
    let mut expected = [pids.as_slice(), &[tree.pid()]].concat();
    let mut alive = tree.alive();
    alive.sort_by_key(|survivor| survivor.pid);
    expected.sort_unstable();
    assert_eq!(alive.iter().map(|survivor| survivor.pid).collect::<Vec<_>>(), expected);
    let named_sleep = || tree.alive().iter().filter(|survivor| survivor.name == "sleep").count();
    eventually("the shell's children run their programs", || named_sleep() == 2).await;
}

#[tokio::test]
async fn a_signal_to_the_leader_reaches_no_other_process() {
    let (tree, pids) = with_a_session().await;
    tree.signal(Signal::Terminate);
    assert_eq!(tree.exited().await.signal, Some(15));
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    drop(tree);
    all_die(&pids).await;
}

#[tokio::test]
async fn a_tree_that_handles_sigterm_ends_long_before_the_grace_period() {
    let (tree, pids) = with_a_session().await;
    let began = Instant::now();
    assert!(tree.terminate(LONG).await.is_empty());
    assert!(began.elapsed() < LONG / 2);
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
    assert_eq!(crate::reap(tree).await.signal, Some(15));
}

#[tokio::test]
async fn a_tree_that_has_ended_terminates_at_once() {
    let (tree, _stdout, _) = start_and_read("echo 1", 1).await;
    tree.exited().await;
    let began = Instant::now();
    assert!(tree.terminate(LONG).await.is_empty());
    assert!(began.elapsed() < LONG / 2);
}

#[tokio::test]
async fn members_that_ignore_sigterm_are_killed_after_the_grace_period() {
    let script = "trap '' TERM; setsid sleep 300 & echo $!; echo $$; while :; do sleep 1; done";
    let (tree, _stdout, pids) = start_and_read(script, 2).await;
    leads_a_session(pids[0]).await;
    let grace = Duration::from_millis(300);
    let began = Instant::now();
    assert!(tree.terminate(grace).await.is_empty());
    assert!(began.elapsed() >= grace);
    assert!(!pids.iter().any(|&pid| is_alive(pid)));
    assert_eq!(tree.exited().await.signal, Some(9));
}

#[tokio::test]
async fn a_leader_that_ends_while_a_member_ignores_sigterm_does_not_save_it() {
    let script = "(trap '' TERM; setsid sh -c 'while :; do sleep 1; done') & echo $!; wait";
    let (tree, _stdout, pids) = start_and_read(script, 1).await;
    eventually("setsid", || tree.alive().len() >= 3).await;
    assert!(tree.terminate(Duration::from_millis(200)).await.is_empty());
    assert!(tree.alive().is_empty());
    all_die(&pids).await;
    assert_eq!(tree.exited().await.signal, Some(15));
}

#[tokio::test]
async fn output_that_the_leader_writes_on_sigterm_can_be_read() {
    let script = "trap 'echo 2; exit 7' TERM; echo 1; while :; do sleep 0.01; done";
    let (tree, mut stdout, _) = start_and_read(script, 1).await;
    assert!(tree.terminate(LONG).await.is_empty());
    assert!(stdout.fill_now().unwrap().is_some());
    assert!(stdout.next().is_some());
    assert_eq!(crate::reap(tree).await.code, Some(7));
}

#[tokio::test]
async fn a_member_that_is_born_during_the_grace_period_is_killed_at_its_end() {
    let script = "trap 'setsid sleep 300 & echo $!' TERM; echo $$; while :; do sleep 0.01; done";
    let (tree, mut stdout, _) = start_and_read(script, 1).await;
    assert!(tree.terminate(Duration::from_millis(500)).await.is_empty());
    let born = numbers(&mut stdout, 1).await;
    assert!(!is_alive(born[0]));
}

#[tokio::test]
async fn an_orphan_that_is_born_after_sigterm_receives_sigterm_too() {
    // The shell exits once the new process has executed its own program: between fork and exec, the shell's handler
    // swallows a signal.
    let script = "trap 'setsid sleep 300 & echo $!; until grep -qx sleep /proc/$!/comm; do :; done; exit 7' TERM; \
                   echo $$; while :; do sleep 0.01; done";
    let (tree, mut stdout, _) = start_and_read(script, 1).await;
    let began = Instant::now();
    assert!(tree.terminate(LONG).await.is_empty());
    assert!(began.elapsed() < LONG / 2);
    let born = numbers(&mut stdout, 1).await;
    assert!(!is_alive(born[0]));
    assert_eq!(crate::reap(tree).await.code, Some(7));
}

#[tokio::test]
async fn dropping_kills_members_in_sessions_of_their_own() {
    let (tree, pids) = with_a_session().await;
    drop(tree);
    all_die(&pids).await;
}

/// Starts a daemon without an environment. Its parents and the leader exit before any scan.
async fn with_an_unseen_daemon() -> (ProcessTree, u32) {
    let daemon =
        "setsid env -i /bin/sh -c 'PATH=/usr/bin:/bin; exec setsid env -i /bin/sleep 300 >/dev/null 2>&1 & echo $!'";
    let (tree, _stdout, pids) = start_and_read(daemon, 1).await;
    tree.exited().await;
    leads_a_session(pids[0]).await;
    eventually("the daemon is an orphan", || stat(pids[0]).is_some_and(|stat| stat.1 != tree.pid())).await;
    (tree, pids[0])
}

#[tokio::test]
async fn an_unseen_daemon_is_terminated_with_its_tree() {
    let (tree, daemon) = with_an_unseen_daemon().await;
    assert!(is_alive(daemon));
    assert_eq!(tree.terminate(LONG).await, []);
    assert!(!is_alive(daemon));
}

#[tokio::test]
async fn an_unseen_daemon_dies_with_a_dropped_tree() {
    let (tree, daemon) = with_an_unseen_daemon().await;
    drop(tree);
    all_die(&[daemon]).await;
}

fn stop(pids: &[u32], tree: &ProcessTree) {
    for pid in pids.iter().copied().chain([tree.pid()]) {
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), rustix::process::Signal::STOP).unwrap();
    }
}

#[tokio::test]
async fn a_stopped_tree_ends_on_sigterm() {
    let (tree, pids) = with_a_session().await;
    stop(&pids, &tree);
    let stopped = |pid| stat(pid).is_some_and(|(state, ..)| state == "T");
    eventually("all are stopped", || pids.iter().all(|&pid| stopped(pid)) && stopped(tree.pid())).await;
    assert!(tree.terminate(LONG).await.is_empty());
    assert_eq!(tree.exited().await.signal, Some(15));
}

#[tokio::test]
async fn a_stopped_tree_dies_when_it_is_dropped() {
    let (tree, pids) = with_a_session().await;
    stop(&pids, &tree);
    drop(tree);
    all_die(&pids).await;
}

/// Starts a tree that is about to move a process into its own session. Returns the tree and the
/// variable that its processes have.
async fn just_started(number: usize) -> (ProcessTree, String) {
    let mark = format!("TREE={}-{number}", std::process::id());
    let (tree, _pipes) = start(&format!("export {mark}; exec >/dev/null 2>&1; setsid sleep 300 & wait")).await;
    // Waits between zero and a few milliseconds.
    std::thread::sleep(Duration::from_micros(150) * u32::try_from(number % 30).unwrap());
    (tree, mark)
}

#[tokio::test]
async fn a_tree_that_is_terminated_while_it_grows_leaves_no_process() {
    let began = Instant::now();
    for number in 0..60 {
        let (tree, mark) = just_started(number).await;
        assert!(tree.terminate(LONG).await.is_empty());
        assert!(alive_with(&mark).is_empty());
    }
    assert!(began.elapsed() < LONG, "a member missed SIGTERM");
}

#[tokio::test]
async fn a_tree_that_is_dropped_while_it_grows_leaves_no_process() {
    for number in 100..160 {
        let (tree, mark) = just_started(number).await;
        drop(tree);
        eventually("no process is left", || alive_with(&mark).is_empty()).await;
    }
}

#[tokio::test]
async fn a_tree_that_keeps_starting_processes_dies() {
    let mark = format!("TREE={}-many", std::process::id());
    let script = format!("export {mark}; echo $$; while :; do setsid sleep 300 & sleep 0.02; done");
    let (tree, _stdout, _) = start_and_read(&script, 1).await;
    eventually("some are started", || tree.alive().len() > 5).await;
    assert!(tree.terminate(Duration::ZERO).await.is_empty());
    assert!(alive_with(&mark).is_empty());
}

#[tokio::test]
async fn terminate_can_be_cancelled_and_called_again_while_output_is_read() {
    let script = "trap '' TERM; echo $$; while :; do echo 1; done";
    let (tree, mut stdout, _) = start_and_read(script, 1).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), tree.terminate(LONG)).await.is_err());
    let mut end = std::pin::pin!(tree.terminate(Duration::from_millis(200)));
    let survivors = loop {
        tokio::select! {
            survivors = &mut end => break survivors,
            read = stdout.fill() => {
                read.unwrap();
                while stdout.next().is_some() {}
            }
        }
    };
    assert!(survivors.is_empty());
}

#[tokio::test]
async fn terminating_one_tree_does_not_affect_another() {
    let (one, _) = with_a_session().await;
    let (other, pids) = with_a_session().await;
    assert!(one.terminate(LONG).await.is_empty());
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    assert_eq!(other.alive().len(), 3);
}
