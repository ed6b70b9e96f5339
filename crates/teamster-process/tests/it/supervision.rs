//! Trees whose keeper or supervisor is killed, and trees that are detached.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use teamster_process::{Exit, Frame, Ledger, OutputReader, ProcessTree, Supervisor};

use crate::{LONG, all_die, eventually, is_alive, leads_a_session, numbers, reap, sh, start, stat};

/// Returns a supervisor that the test may kill, and its tree: a leader, and a daemon in its own
/// session.
async fn with_a_daemon() -> (Supervisor, ProcessTree, OutputReader, Vec<u32>) {
    let supervisor = Supervisor::new();
    let script = sh("echo $$; setsid sleep 300 & echo $!; wait");
    let (tree, pipes) = ProcessTree::spawn(&supervisor, &script, None).await.unwrap();
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    let pids = numbers(&mut stdout, 2).await;
    leads_a_session(pids[1]).await;
    let is_sleep = || tree.alive().iter().any(|survivor| survivor.pid == pids[1] && survivor.name == "sleep");
    eventually("the daemon runs its program", is_sleep).await;
    (supervisor, tree, stdout, pids)
}

fn parent(pid: u32) -> u32 {
    stat(pid).unwrap().1
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_tree_whose_keeper_is_killed_dies_and_its_end_is_reported() {
    let (_supervisor, tree, _stdout, pids) = with_a_daemon().await;
    kill(parent(tree.pid()));
    assert_eq!(tree.exited().await, Exit::default());
    assert!(!pids.iter().any(|&pid| is_alive(pid)), "the end was reported while a member was alive");
    assert_eq!(tree.terminate(LONG).await, []);
}

#[tokio::test]
async fn killing_a_keeper_does_not_affect_other_trees() {
    let (supervisor, tree, _stdout, _) = with_a_daemon().await;
    let (other, pipes) = ProcessTree::spawn(&supervisor, &sh("echo $$; sleep 300"), None).await.unwrap();
    let pids = numbers(&mut OutputReader::new(pipes.stdout, 1024), 1).await;
    kill(parent(tree.pid()));
    tree.exited().await;
    assert!(is_alive(pids[0]));
    assert_eq!(other.terminate(LONG).await, []);
    assert_eq!(other.exited().await.signal, Some(15));
}

#[tokio::test]
async fn a_tree_survives_its_supervisor_and_the_next_tree_gets_a_new_one() {
    let (supervisor, tree, _stdout, pids) = with_a_daemon().await;
    let first = parent(parent(tree.pid()));
    kill(first);
    eventually("the supervisor is dead", || !is_alive(first)).await;
    assert!(pids.iter().all(|&pid| is_alive(pid)));

    let (next, _pipes) = ProcessTree::spawn(&supervisor, &sh("sleep 300"), None).await.unwrap();
    assert_ne!(parent(parent(next.pid())), first);
    for tree in [tree, next] {
        assert_eq!(tree.terminate(LONG).await, []);
        assert_eq!(tree.exited().await.signal, Some(15));
    }
    all_die(&pids).await;
}

#[tokio::test]
async fn detached_processes_are_listed_and_survive_the_death_of_another_keeper() {
    let (supervisor, tree, _stdout, pids) = with_a_daemon().await;
    kill(pids[0]);
    assert_eq!(tree.exited().await.signal, Some(9));
    let left = tree.detach().await;
    assert_eq!(left.iter().map(|survivor| (survivor.pid, &*survivor.name)).collect::<Vec<_>>(), [(pids[1], "sleep")]);

    let (other, _pipes) = ProcessTree::spawn(&supervisor, &sh("sleep 300"), None).await.unwrap();
    kill(parent(other.pid()));
    other.exited().await;
    drop(supervisor);
    assert!(is_alive(pids[1]));
    kill(pids[1]);
}

#[tokio::test]
async fn the_leader_has_no_terminal_and_all_its_signals() {
    let script = "if (: </dev/tty) 2>/dev/null; then echo a terminal; else echo none; fi; \
                  sed -n -e 's/^SigBlk:[[:space:]]*//p' -e 's/^SigIgn:[[:space:]]*//p' /proc/self/status";
    let (tree, pipes) = start(script).await;
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    let mut lines = Vec::new();
    while stdout.fill().await.unwrap() > 0 {
        while let Some(Frame::Line(line)) = stdout.next() {
            lines.push(String::from_utf8_lossy(line).into_owned());
        }
    }
    assert_eq!(lines[0], "none");
    for mask in &lines[1..] {
        // The C library ignores two signals, 32 and 33, in the programs that it starts.
        assert_eq!(u64::from_str_radix(mask, 16).unwrap() & 0x7fff_ffff, 0, "{lines:?}");
    }
    assert_eq!(lines.len(), 3);
    assert!(reap(tree).await.success());
}

#[tokio::test]
async fn a_keeper_holds_the_lock_of_its_run_for_as_long_as_it_lives() {
    let place = tempfile::tempdir().unwrap();
    let ledger = Ledger::in_directory(place.path().join("ledger"));
    let run = ledger.register("test").unwrap();
    let lock = fs::File::open(run.path()).unwrap();

    let supervisor = Supervisor::new();
    let (tree, _pipes) = ProcessTree::spawn(&supervisor, &sh("sleep 300"), Some(&run)).await.unwrap();
    // This closes the host's own descriptor and removes the directory's name.
    drop(run);
    assert!(lock.try_lock().is_err());
    tree.terminate(LONG).await;
    eventually("the lock is free", || lock.try_lock().is_ok()).await;
}
