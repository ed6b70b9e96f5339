//! Failures while the supervisor is started: its file cannot be loaded, or it is stopped before it
//! is loaded.

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use teamster_process::{ProcessTree, SpawnError, Supervisor};

use crate::{eventually, sh, stat};

/// Selects the signal that the holder of a lease receives. Its default action is to do nothing.
const F_SETSIG: i32 = 10;

/// The longest time that an end may take after a stop, also on a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// A lease on a program's file. While it is held, no other process can open the file: the system
/// waits up to 45 seconds for the holder.
struct Held(File);

impl Held {
    fn new(path: &Path) -> Self {
        let file = File::open(path).unwrap();
        set(&file, F_SETSIG, libc::SIGURG);
        set(&file, libc::F_SETLEASE, libc::F_WRLCK);
        Self(file)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        set(&self.0, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

#[expect(unsafe_code, reason = "no safe call takes a lease")]
fn set(file: &File, command: i32, value: i32) {
    // SAFETY: the descriptor is open, and these commands take a number.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), command, value) }, 0);
}

/// Copies this program, which links the crate, to another path.
fn program(place: &Path) -> PathBuf {
    let path = place.join("supervisor");
    fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    path
}

/// Returns the processes that were forked to start a supervisor and have not executed it yet.
fn unfinished_starts() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let starts =
        tasks.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "teamster-start\n"));
    let children = starts.filter_map(|task| fs::read_to_string(task.join("children")).ok());
    children.flat_map(|list| list.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

#[tokio::test(flavor = "current_thread")]
async fn a_supervisor_that_cannot_be_loaded_blocks_no_other_task_and_its_start_can_be_stopped() {
    let place = tempfile::tempdir().unwrap();
    let path = program(place.path());
    let _held = Held::new(&path);
    let supervisor = Supervisor::program(&path);
    let ticks = AtomicU32::new(0);
    let others = async {
        loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ticks.fetch_add(1, Ordering::Relaxed);
        }
    };
    let began = Instant::now();
    let sleep = sh("sleep 300");
    let stop =
        eventually("the start is under way", || !unfinished_starts().is_empty() && ticks.load(Ordering::Relaxed) > 20);
    let spawned = tokio::select! {
        spawned = ProcessTree::spawn_until(&supervisor, &sleep, None, stop) => spawned,
        () = others => unreachable!(),
    };
    assert!(matches!(spawned, Err(SpawnError::Stopped)), "{spawned:?}");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    eventually("the half-started supervisor is dead", || unfinished_starts().is_empty()).await;
}

#[tokio::test(flavor = "current_thread")]
async fn an_abandoned_start_does_not_delay_the_next_one() {
    let place = tempfile::tempdir().unwrap();
    let path = program(place.path());
    let held = Held::new(&path);
    let supervisor = Supervisor::program(&path);
    let sleep = sh("sleep 300");
    let first = ProcessTree::spawn_until(&supervisor, &sleep, None, tokio::time::sleep(Duration::from_millis(300)));
    let next = async {
        eventually("the first start is under way", || !unfinished_starts().is_empty()).await;
        ProcessTree::spawn(&supervisor, &sleep, None).await
    };
    let release = async {
        let first = first.await;
        drop(held);
        first
    };
    let (first, next) = tokio::time::timeout(SOON, async { tokio::join!(release, next) }).await.unwrap();
    assert!(matches!(first, Err(SpawnError::Stopped)), "{first:?}");
    assert_eq!(next.unwrap().0.terminate(Duration::ZERO).await, []);
}

#[tokio::test(flavor = "current_thread")]
async fn a_supervisor_that_is_stopped_before_it_is_loaded_is_continued() {
    let place = tempfile::tempdir().unwrap();
    let path = program(place.path());
    let held = Held::new(&path);
    let supervisor = Supervisor::program(&path);
    let halt = async {
        eventually("the start is under way", || !unfinished_starts().is_empty()).await;
        let pid = unfinished_starts()[0];
        kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
        eventually("it was stopped", || stat(pid).is_none_or(|stat| stat.0 == "T")).await;
        drop(held);
    };
    let sleep = sh("sleep 300");
    let start = async { tokio::join!(ProcessTree::spawn(&supervisor, &sleep, None), halt).0 };
    let (tree, _pipes) = tokio::time::timeout(SOON, start).await.unwrap().unwrap();
    assert_eq!(tree.terminate(Duration::ZERO).await, []);
}
