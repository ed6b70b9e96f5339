//! How a leader ends, and that nothing is left of it.

use teamster_process::{Exit, Signal};

use crate::{BOUND, LONG, is_our_child, start, start_and_read, stat};

#[tokio::test]
async fn an_exit_code_is_told() {
    let (tree, _pipes) = start("exit 3");
    assert_eq!(tree.exited().await, Exit { code: Some(3), signal: None });
}

#[tokio::test]
async fn a_signal_that_ended_the_leader_is_told() {
    let (tree, _pipes) = start("kill -SEGV $$");
    let exit = tree.exited().await;
    assert_eq!(exit, Exit { code: None, signal: Some(11) });
    assert_eq!(exit.signal_name().as_deref(), Some("SIGSEGV"));
}

#[tokio::test]
async fn the_end_can_be_asked_for_again_and_by_several_at_once() {
    let (tree, _pipes) = start("sleep 0.1; exit 4");
    // Dropped at its first await.
    assert!(tokio::time::timeout(std::time::Duration::ZERO, tree.exited()).await.is_err());
    let (first, second) = tokio::join!(tree.exited(), tree.exited());
    assert_eq!((first.code, second.code, tree.exited().await.code), (Some(4), Some(4), Some(4)));
}

#[tokio::test]
async fn the_leader_stays_a_zombie_until_it_is_reaped_and_not_longer() {
    let (tree, _pipes) = start("exit 0");
    let pid = tree.pid();
    tree.exited().await;
    assert_eq!(stat(pid).unwrap().0, "Z");
    assert!(tree.alive().is_empty());
    assert!(tree.reap().await.success());
    assert!(!is_our_child(pid));
}

#[tokio::test]
async fn reaping_kills_whoever_outlived_the_leader() {
    let (tree, _stdout, pids) = start_and_read("sleep 300 & echo $!", 1).await;
    tree.reap().await;
    crate::all_die(&pids).await;
}

#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_does_not_delay_exited() {
    let (tree, _pipes) = start("sleep 60 & exit 0");
    assert!(tokio::time::timeout(BOUND, tree.exited()).await.unwrap().success());
    assert_eq!(tree.alive().len(), 1);
}

#[tokio::test]
async fn dropping_kills_and_leaves_no_zombie() {
    let (tree, _stdout, pids) = start_and_read("sleep 300 & echo $!; wait", 1).await;
    let leader = tree.pid();
    drop(tree);
    crate::all_die(&pids).await;
    crate::eventually("the leader is reaped", || !is_our_child(leader)).await;
}

#[test]
fn dropping_works_after_the_runtime_is_gone() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tree, _stdout, pids) =
        runtime.block_on(start_and_read("trap '' TERM INT; echo $$; while :; do sleep 1; done", 1));
    drop(runtime);
    drop(tree);
    assert!(!is_our_child(pids[0]));
}

#[tokio::test]
async fn a_leader_that_was_reaped_by_others_ends_in_an_unknown_way_and_is_not_signalled() {
    let (tree, _pipes) = start("exit 3");
    tree.exited().await;
    let leader = rustix::process::Pid::from_raw(tree.pid().cast_signed()).unwrap();
    rustix::process::waitpid(Some(leader), rustix::process::WaitOptions::empty()).unwrap();
    assert_eq!(tree.exited().await, Exit::default());
    tree.signal(Signal::Kill);
    assert!(tree.terminate(LONG).await.is_empty());
    assert_eq!(tree.reap().await, Exit::default());
}
