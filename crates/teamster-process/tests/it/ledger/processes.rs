//! The remaining processes of a crashed run are killed, and no others.

use std::fs;

use serde_json::json;

use super::scene::{Running, bearers, scene, start_of, wait_for, wait_until};
use crate::{is_alive, stat};

#[test]
fn the_remaining_processes_of_a_crashed_run_are_killed_and_its_directory_is_removed() {
    let scene = scene();
    let pids = scene.home.path().join("pids");
    let run = scene.crashed();
    fs::create_dir(run.path.join("files")).unwrap();
    fs::write(run.path.join("files/secret"), "x").unwrap();
    // A daemon in its own session whose parents are gone, and a descendant without the marker.
    let script = format!(
        "trap '' TERM HUP; (setsid sh -c 'echo $$ >{0}.daemon; while :; do sleep 1; done' &)
         env -i PATH=$PATH sh -c 'echo $$ >{0}.plain; exec sleep 300' & wait",
        pids.display()
    );
    let leader = Running::marked(&script, &run);
    let daemon = wait_for(&pids.with_extension("daemon"));
    let plain = wait_for(&pids.with_extension("plain"));

    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean(), "{sweep:?}");
    let [removed] = sweep.removed.as_slice() else { panic!("{sweep:?}") };
    assert_eq!(removed.run.path, run.path);
    assert_eq!(removed.run.label.as_deref(), Some("claude"));
    for pid in [leader.pid(), daemon, plain] {
        assert!(!is_alive(pid), "{pid}");
        assert!(removed.killed.iter().any(|one| one.pid == pid), "{pid} is reported");
    }
    assert!(!scene.home.path().join("ledger").exists());
}

#[test]
fn a_stopped_process_of_a_crashed_run_is_killed() {
    let scene = scene();
    let run = scene.crashed();
    let halted = Running::marked("kill -STOP $$; sleep 300", &run);
    wait_until("it halts", || stat(halted.pid()).is_some_and(|(state, ..)| state == "T"));
    assert_eq!(scene.ledger.sweep().removed[0].killed.len(), 1);
    assert!(!halted.is_alive());
}

#[test]
fn a_daemon_that_keeps_replacing_itself_is_killed() {
    let scene = scene();
    let run = scene.crashed();
    let pids = scene.home.path().join("pids");
    let hop = format!("echo $$ >>{}; sleep 0.02; setsid sh -c \"$HOP\" & exit 0", pids.display());
    let _first = Running::sh("eval \"$HOP\"", &[(&run.mark, "1"), ("HOP", &hop)]);
    let hops = || fs::read_to_string(&pids).unwrap_or_default().lines().count();
    wait_until("it has moved on", || hops() > 3);
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.removed.len() == 1, "{sweep:?}");
    assert_eq!(bearers(&run.mark), [0; 0]);
}

#[test]
fn a_leader_that_cleared_its_environment_is_killed_with_its_children() {
    let scene = scene();
    let pids = scene.home.path().join("pids");
    let leader = Running::sh(&format!("sleep 300 & echo $! >{}; wait", pids.display()), &[]);
    let child = wait_for(&pids);
    scene.crashed_with(|entry| entry["leader"] = leader.leader());
    assert_eq!(scene.ledger.sweep().removed[0].killed.len(), 2);
    assert!(!leader.is_alive() && !is_alive(child));
}

#[test]
fn a_process_that_reuses_the_leaders_pid_is_not_killed() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[]);
    for start in [start_of(other.pid()) + 1, start_of(other.pid()) - 1] {
        // The host is older than its leader.
        scene.crashed_with(|entry| {
            entry["host"]["start"] = json!(1);
            entry["leader"] = json!({ "pid": other.pid(), "start": start });
        });
        let sweep = scene.ledger.sweep();
        assert!(sweep.is_clean() && sweep.removed[0].killed.is_empty(), "{sweep:?}");
    }
    assert!(other.is_alive());
    assert!(scene.is_empty());
}

#[test]
fn a_run_of_another_boot_is_removed_and_no_process_is_killed() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_of_another_boot", "1")]);
    scene.crashed_with(|entry| {
        entry["here"]["boot"] = json!("00000000-0000-4000-8000-000000000000");
        entry["mark"] = json!("TEAMSTER_TREE_of_another_boot");
        entry["leader"] = other.leader();
    });
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.removed[0].killed.is_empty(), "{sweep:?}");
    assert!(other.is_alive() && scene.is_empty());
}

#[test]
fn a_run_inside_a_crashed_run_is_killed_and_removed_with_it() {
    let scene = scene();
    let outer = scene.crashed();
    let host = Running::marked("exec sleep 300", &outer);
    let inner = scene.crashed_with(|entry| entry["host"] = host.leader());
    let member = Running::sh("exec sleep 300", &[(&outer.mark, "1"), (&inner.mark, "1")]);
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean(), "{sweep:?}");
    assert_eq!((sweep.removed.len(), sweep.live), (2, 0));
    assert!(!host.is_alive() && !member.is_alive() && scene.is_empty());
}
