//! Concurrent sweeps and runs.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use teamster_process::ledger::{SkipReason, Sweep};

use super::scene::{Running, scene};
use crate::BOUND;

#[test]
fn concurrent_sweeps_remove_each_crashed_run_once() {
    let scene = scene();
    let runs: Vec<_> = (0..30).map(|_| scene.crashed()).collect();
    let members: Vec<_> = runs.iter().step_by(6).map(|run| Running::marked("exec sleep 300", run)).collect();
    let mut sweeps: Vec<_> = std::thread::scope(|scope| {
        let sweeps: Vec<_> = (0..4).map(|_| scope.spawn(|| scene.ledger.sweep())).collect();
        sweeps.into_iter().map(|sweep| sweep.join().unwrap()).collect()
    });
    // On a busy machine a process may not die in time: it is reported, and the next sweep removes
    // the run.
    let began = Instant::now();
    loop {
        sweeps.push(scene.ledger.sweep());
        if sweeps.last().is_some_and(Sweep::is_clean) {
            break;
        }
        assert!(began.elapsed() < BOUND, "{sweeps:?}");
    }
    let left = sweeps.iter().flat_map(|sweep| &sweep.skipped);
    assert!(left.clone().all(|left| matches!(left.reason, SkipReason::Alive(_))), "{sweeps:?}");
    let mut removed: Vec<_> = sweeps.iter().flat_map(|sweep| &sweep.removed).map(|removed| &removed.run.path).collect();
    assert_eq!(removed.len(), runs.len());
    removed.sort();
    removed.dedup();
    assert_eq!(removed.len(), runs.len());
    let ended = sweeps.iter().flat_map(|sweep| &sweep.removed).map(|removed| removed.killed.len()).sum::<usize>();
    assert!(ended <= members.len() && ended + left.count() >= members.len(), "{sweeps:?}");
    assert!(!members.iter().any(Running::is_alive) && scene.is_empty());
}

#[test]
fn runs_that_start_and_end_while_others_sweep_are_not_touched() {
    let scene = scene();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    scene.ledger.sweep();
                    scene.ledger.survey();
                }
            });
        }
        let runs: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let mut run = scene.ledger.register("claude").unwrap();
                        let files = run.private_dir().unwrap();
                        let file = files.write("file", b"x").unwrap();
                        run.record_tree(std::process::id(), None).unwrap();
                        assert_eq!(fs::read(file).unwrap(), b"x");
                        assert!(run.path().join("entry.json").exists());
                        run.remove().unwrap();
                    }
                })
            })
            .collect();
        let ended: Vec<_> = runs.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    assert!(scene.is_empty());
}
