//! The end of trees whose keeper or supervisor is stopped or killed.

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

/// The longest time that termination may take beyond its grace period, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// A tree with its own supervisor: a leader, a child in its own session, and a child without an
/// environment.
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
        assert!(!self.members.iter().any(|&pid| is_alive(pid)), "the end was reported while a member was alive");
        tokio::time::timeout(SOON, self.tree.exited()).await.unwrap();
    }
}

fn parent(pid: u32) -> u32 {
    stat(pid).unwrap().1
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Kills both, so that neither can react to the death of the other.
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

/// Repeatedly stops a supervisor and all its keepers, from each keeper's first moment.
struct Stopper {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Stopper {
    fn of(supervisor: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = |pid: u32| _ = kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP);
        let stops = {
            let over = Arc::clone(&over);
            move || {
                while !over.load(Ordering::Relaxed) {
                    let children = std::fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children"));
                    let children = children.unwrap_or_default();
                    children.split_ascii_whitespace().for_each(|pid| stop(pid.parse().unwrap()));
                    if !children.is_empty() {
                        stop(supervisor);
                    }
                }
            }
        };
        Self { over, thread: Some(std::thread::spawn(stops)) }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// Returns a supervisor without a tree, its pid, and a program that writes its pid to a file.
async fn before_a_start(file: &std::path::Path) -> (Supervisor, u32, teamster_process::Spawn) {
    let supervisor = Supervisor::new();
    let (first, _pipes) = ProcessTree::spawn(&supervisor, &sh("sleep 300"), None).await.unwrap();
    let pid = parent(first.keeper());
    first.terminate(Duration::ZERO).await;
    (supervisor, pid, sh(&format!("echo $$ >> {}; exec sleep 300", file.display())))
}

fn started(file: &std::path::Path) -> Vec<u32> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(|line| line.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_start_that_is_stopped_leaves_nothing_though_the_helpers_cannot_report_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pids");
    let (supervisor, pid, program) = before_a_start(&file).await;
    let _stopper = Stopper::of(pid);
    let stop = tokio::time::sleep(Duration::from_millis(500));
    let spawned =
        tokio::time::timeout(SOON, ProcessTree::spawn_until(&supervisor, &program, None, stop)).await.unwrap();
    if let Ok((tree, _pipes)) = spawned {
        assert_eq!(tree.terminate(Duration::ZERO).await, []);
    }
    assert!(!started(&file).into_iter().any(is_alive), "its end was reported while it was alive");
}

#[tokio::test]
async fn a_start_that_is_dropped_leaves_nothing_though_the_helpers_cannot_report_it() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pids");
    let (supervisor, pid, program) = before_a_start(&file).await;
    let _stopper = Stopper::of(pid);
    _ = tokio::time::timeout(Duration::from_millis(500), ProcessTree::spawn(&supervisor, &program, None)).await;
    all_die(&started(&file)).await;
}

#[tokio::test]
async fn a_leader_whose_keeper_is_killed_before_it_reports_the_start_is_ended() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pids");
    let (supervisor, pid, _) = before_a_start(&file).await;
    // It outlives the supervisor and the keeper, whether or not the keeper reported it.
    let script = format!("echo $$ >> {}; kill -STOP {pid}; kill -KILL $PPID {pid}; exec sleep 300", file.display());
    let spawned = tokio::time::timeout(SOON, ProcessTree::spawn(&supervisor, &sh(&script), None)).await.unwrap();
    if let Ok((tree, _pipes)) = spawned {
        eventually("the leader runs", || !started(&file).is_empty()).await;
        all_die(&[tree.keeper()]).await;
        assert_eq!(tree.terminate(Duration::ZERO).await, []);
    }
    assert!(!started(&file).into_iter().any(is_alive), "its end was reported while it was alive");
}

#[tokio::test]
async fn a_tree_whose_keeper_and_supervisor_are_killed_is_ended_by_this_program() {
    let scene = Scene::new(None).await;
    kill_both(scene.keeper(), scene.supervisor()).await;
    assert!(scene.members.iter().all(|&pid| is_alive(pid)), "nothing else may kill them");
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
    assert!(entry.exists(), "the entry was removed while the tree was alive");
    scene.ends_soon().await;
    eventually("the entry is removed", || !entry.exists()).await;
}

#[tokio::test]
async fn the_process_names_of_the_helpers_contain_neither_this_program_nor_an_agent() {
    let scene = Scene::new(None).await;
    for pid in [scene.keeper(), scene.supervisor()] {
        let shown = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap();
        assert_eq!(shown("cmdline").trim_end_matches('\0'), "tree-reaper");
        assert!(shown("comm").starts_with("tree-reaper"));
    }
    scene.ends_soon().await;
}
