//! What becomes of a tree when the processes that supervise it are stopped, or all killed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use teamster_process::{Ledger, OutputReader, ProcessTree, RunDir, Supervisor};

use crate::{all_die, eventually, is_alive, leads_a_session, numbers, sh, stat};

/// The longest that an end may take beyond its grace period, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// A tree with a supervisor of its own: a leader, a child in a session of its own, and a child without an environment.
struct Scene {
    supervisor: Supervisor,
    tree: ProcessTree,
    _stdout: OutputReader,
    members: Vec<u32>,
}

impl Scene {
    async fn new(run: Option<&RunDir>) -> Self {
        let supervisor = Supervisor::new();
        let script = sh("echo $$; setsid sleep 300 & echo $!; env -i /bin/sleep 300 & echo $!; wait");
        let (tree, pipes) = ProcessTree::spawn(&supervisor, &script, run).await.unwrap();
        let mut stdout = OutputReader::new(pipes.stdout, 1024);
        let members = numbers(&mut stdout, 3).await;
        leads_a_session(members[1]).await;
        let are_asleep = || tree.alive().iter().filter(|member| member.name == "sleep").count() == 2;
        eventually("the children run their programs", are_asleep).await;
        Self { supervisor, tree, _stdout: stdout, members }
    }

    fn keeper(&self) -> u32 {
        parent(self.tree.pid())
    }

    fn supervisor(&self) -> u32 {
        parent(self.keeper())
    }

    async fn ends_soon(self) {
        let began = Instant::now();
        assert_eq!(self.tree.terminate(Duration::from_millis(300)).await, []);
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
        assert!(!self.members.iter().any(|&pid| is_alive(pid)), "the end was reported while a member lived");
        tokio::time::timeout(SOON, self.tree.exited()).await.unwrap();
    }
}

fn parent(pid: u32) -> u32 {
    stat(pid).unwrap().1
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Kills both, so that neither can do anything about the death of the other.
async fn kill_both(keeper: u32, supervisor: u32) {
    send(supervisor, Signal::STOP);
    eventually("the supervisor is stopped", || stat(supervisor).unwrap().0 == "T").await;
    send(keeper, Signal::KILL);
    send(supervisor, Signal::KILL);
    all_die(&[keeper, supervisor]).await;
}

#[tokio::test]
async fn a_tree_with_a_stopped_keeper_ends_soon() {
    let scene = Scene::new(None).await;
    send(scene.keeper(), Signal::STOP);
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_tree_with_a_stopped_keeper_and_a_stopped_supervisor_ends_soon() {
    let scene = Scene::new(None).await;
    send(scene.supervisor(), Signal::STOP);
    send(scene.keeper(), Signal::STOP);
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_tree_with_a_stopped_keeper_and_a_killed_supervisor_ends_soon() {
    let scene = Scene::new(None).await;
    let supervisor = scene.supervisor();
    send(supervisor, Signal::KILL);
    all_die(&[supervisor]).await;
    send(scene.keeper(), Signal::STOP);
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_tree_with_a_killed_keeper_and_a_stopped_supervisor_ends_soon() {
    let scene = Scene::new(None).await;
    send(scene.supervisor(), Signal::STOP);
    send(scene.keeper(), Signal::KILL);
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_tree_whose_keeper_is_stopped_again_and_again_ends_soon() {
    let scene = Scene::new(None).await;
    let keeper = scene.keeper();
    let over = Arc::new(AtomicBool::new(false));
    let stopper = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            while !over.load(Ordering::Relaxed) {
                _ = kill_process(Pid::from_raw(keeper.cast_signed()).unwrap(), Signal::STOP);
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    scene.ends_soon().await;
    over.store(true, Ordering::Relaxed);
    stopper.join().unwrap();
}

#[tokio::test]
async fn the_exit_of_a_leader_is_reported_though_both_helpers_were_stopped() {
    let scene = Scene::new(None).await;
    send(scene.supervisor(), Signal::STOP);
    send(scene.keeper(), Signal::STOP);
    send(scene.tree.pid(), Signal::KILL);
    let exit = tokio::time::timeout(SOON, scene.tree.exited()).await.unwrap();
    assert_eq!(exit.signal, Some(9));
}

#[tokio::test]
async fn a_tree_starts_and_ends_soon_though_the_supervisor_is_stopped() {
    let scene = Scene::new(None).await;
    let supervisor = scene.supervisor();
    send(supervisor, Signal::STOP);
    eventually("the supervisor is stopped", || stat(supervisor).unwrap().0 == "T").await;
    let program = sh("sleep 300");
    let next = ProcessTree::spawn(&scene.supervisor, &program, None);
    let (next, _pipes) = tokio::time::timeout(SOON, next).await.unwrap().unwrap();
    assert_eq!(next.terminate(Duration::from_millis(300)).await, []);
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_tree_whose_keeper_and_supervisor_are_killed_is_ended_by_this_program() {
    let scene = Scene::new(None).await;
    kill_both(scene.keeper(), scene.supervisor()).await;
    assert!(scene.members.iter().all(|&pid| is_alive(pid)), "nothing else may end them");
    let alive: Vec<_> = scene.tree.alive().iter().map(|member| member.pid).collect();
    assert!(scene.members.iter().all(|pid| alive.contains(pid)), "{alive:?}");
    scene.ends_soon().await;
}

#[tokio::test]
async fn a_dropped_tree_whose_keeper_and_supervisor_are_killed_dies() {
    let scene = Scene::new(None).await;
    kill_both(scene.keeper(), scene.supervisor()).await;
    drop(scene.tree);
    all_die(&scene.members).await;
}

#[tokio::test]
async fn a_dropped_tree_whose_keeper_is_stopped_and_whose_supervisor_is_killed_dies() {
    let scene = Scene::new(None).await;
    let (keeper, supervisor) = (scene.keeper(), scene.supervisor());
    send(supervisor, Signal::KILL);
    all_die(&[supervisor]).await;
    send(keeper, Signal::STOP);
    eventually("the keeper is stopped", || stat(keeper).unwrap().0 == "T").await;
    drop(scene.tree);
    all_die(&scene.members).await;
    all_die(&[keeper]).await;
}

#[tokio::test]
async fn the_entry_of_a_run_stays_until_its_tree_is_known_to_be_gone() {
    let place = tempfile::tempdir().unwrap();
    let run = Ledger::in_directory(place.path().join("ledger")).register("test").unwrap();
    let entry = run.path().join("entry.json");
    let scene = Scene::new(Some(&run)).await;
    kill_both(scene.keeper(), scene.supervisor()).await;
    drop(run);
    assert!(entry.exists(), "the entry was removed while the tree lived");
    scene.ends_soon().await;
    eventually("the entry is removed", || !entry.exists()).await;
}

#[tokio::test]
async fn the_helpers_have_names_that_name_neither_this_program_nor_an_agent() {
    let scene = Scene::new(None).await;
    for pid in [scene.keeper(), scene.supervisor()] {
        let shown = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        assert_eq!(shown("cmdline").trim_end_matches('\0'), "tree-reaper");
        assert!(shown("comm").starts_with("tree-reaper"));
    }
    scene.ends_soon().await;
}
