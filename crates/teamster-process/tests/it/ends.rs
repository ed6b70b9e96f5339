//! The exit of a leader, and the cleanup after it.

use teamster_process::{Exit, ProcessTree, Supervisor};

use crate::{BOUND, children_of, eventually, reap, sh, start, start_and_read, stat};

#[tokio::test]
async fn an_exit_code_is_reported() {
    let (tree, _pipes) = start("exit 3").await;
    assert_eq!(tree.exited().await, Exit { code: Some(3), signal: None });
}

#[tokio::test]
async fn the_signal_that_killed_the_leader_is_reported() {
    let (tree, _pipes) = start("kill -SEGV $$").await;
    let exit = tree.exited().await;
    assert_eq!(exit, Exit { code: None, signal: Some(11) });
    assert_eq!(exit.signal_name().as_deref(), Some("SIGSEGV"));
}

#[tokio::test]
async fn exited_can_be_awaited_repeatedly_and_concurrently() {
    let (tree, _pipes) = start("sleep 0.1; exit 4").await;
    // Dropped at its first await.
    assert!(tokio::time::timeout(std::time::Duration::ZERO, tree.exited()).await.is_err());
    let (first, second) = tokio::join!(tree.exited(), tree.exited());
    assert_eq!((first.code, second.code, tree.exited().await.code), (Some(4), Some(4), Some(4)));
}

#[tokio::test]
async fn an_exited_leader_is_reaped() {
    let (tree, _pipes) = start("exit 0").await;
    tree.exited().await;
    assert_eq!(stat(tree.pid()), None);
    assert!(tree.alive().is_empty());
}

#[tokio::test]
async fn the_keeper_and_the_supervisor_leave_no_zombies() {
    let supervisor = Supervisor::new();
    let (tree, _pipes) = ProcessTree::spawn(&supervisor, &sh("exit 0"), None).await.unwrap();
    reap(tree).await;
    drop(supervisor);
    eventually("this process has no children", || children_of(std::process::id()).is_empty()).await;
}

#[tokio::test]
async fn terminating_kills_processes_that_outlived_the_leader() {
    let (tree, _stdout, pids) = start_and_read("sleep 300 & echo $!", 1).await;
    reap(tree).await;
    crate::all_die(&pids).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_does_not_delay_exited() {
    let (tree, _pipes) = start("sleep 60 & exit 0").await;
    assert!(tokio::time::timeout(BOUND, tree.exited()).await.unwrap().success());
    assert_eq!(tree.alive().len(), 1);
}

#[tokio::test]
async fn dropping_kills_and_leaves_no_zombie() {
    let (tree, _stdout, pids) = start_and_read("sleep 300 & echo $!; wait", 1).await;
    let leader = tree.pid();
    drop(tree);
    crate::all_die(&[pids[0], leader]).await;
    eventually("the leader is reaped", || stat(leader).is_none()).await;
}

#[test]
fn dropping_works_after_the_runtime_is_gone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tree, _stdout, pids) =
        runtime.block_on(start_and_read("trap '' TERM INT; echo $$; while :; do sleep 1; done", 1));
    drop(runtime);
    drop(tree);
    crate::block_until("the leader is reaped", || stat(pids[0]).is_none());
}
