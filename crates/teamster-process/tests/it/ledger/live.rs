//! Live runs are listed, private and not touched; and the directories that may hold the ledger.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    process::Command,
};

use serde_json::json;
use teamster_process::ledger::{Ledger, LedgerError, Refusal};

use super::scene::{Running, lock, mode, scene, start_of, wait_until};
use crate::{BOUND, children_of, stat};

#[test]
fn a_run_is_listed_while_it_is_live_and_removed_when_it_has_ended() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    let survey = scene.ledger.survey();
    assert_eq!(survey.live.len(), 1);
    assert_eq!(survey.live[0].path, run.path());
    assert_eq!(survey.live[0].label.as_deref(), Some("claude"));
    assert!(survey.live[0].began.unwrap().elapsed().unwrap() < BOUND);
    assert!(survey.leftovers.is_empty() && survey.skipped.is_empty() && survey.problems.is_empty());
    drop(run);
    assert!(scene.is_empty());
    assert!(scene.ledger.survey().live.is_empty());
}

#[test]
fn the_directory_and_files_of_a_run_are_private_and_removed_with_it() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    let files = run.private_dir().unwrap();
    let file = files.write("secret", b"x").unwrap();
    for path in [&scene.runs(), run.path(), files.path()] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    assert_eq!([mode(&file), mode(&run.path().join("entry.json"))], [0o600; 2]);
    assert!(files.path().starts_with(run.path()));
    run.remove().unwrap();
    assert!(scene.is_empty());
}

#[test]
fn a_live_run_is_not_swept() {
    let scene = scene();
    let mut run = scene.ledger.register("claude").unwrap();
    let leader = Running::sh("exec sleep 300", &[]);
    run.record_tree(leader.pid(), None).unwrap();
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.removed.len(), sweep.is_clean()), (1, 0, true));
    assert!(leader.is_alive() && run.path().join("entry.json").exists());
}

#[test]
fn a_run_is_live_while_a_process_that_inherited_its_lock_is_alive() {
    let scene = scene();
    let run = scene.crashed();
    let keeper = Command::new("sleep").arg("300").stdin(lock(&run.path)).process_group(0).spawn();
    let keeper = Running(keeper.unwrap());
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.removed.len()), (1, 0));
    assert!(run.path.exists());
    drop(keeper);
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.removed.len()), (0, 1));
    assert!(scene.is_empty());
}

#[test]
fn a_run_without_a_host_is_killed_though_a_stopped_keeper_holds_its_lock() {
    let scene = scene();
    let keeper = Running::sh("kill -STOP $$; sleep 300", &[]);
    let run = scene.crashed_with(|entry| entry["keeper"] = keeper.leader());
    let member = Running::marked("exec sleep 300", &run);
    let holder = lock(&run.path);
    wait_until("it is stopped", || stat(keeper.pid()).is_some_and(|(state, ..)| state == "T"));
    assert_eq!(scene.ledger.survey().leftovers.len(), 1);
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.live, sweep.removed.len()), (0, 1), "{sweep:?}");
    assert!(!keeper.is_alive() && !member.is_alive() && !run.path.exists());
    drop(holder);
}

#[test]
fn a_stopped_supervisor_of_a_dead_host_is_continued_so_that_it_ends() {
    let scene = scene();
    let supervisor = Running::sh("printf tree-reaper-all > /proc/$$/comm; sleep 300 & kill -STOP $$; wait", &[]);
    wait_until("it is stopped", || stat(supervisor.pid()).is_some_and(|(state, ..)| state == "T"));
    let keeper = children_of(supervisor.pid())[0];
    let run = scene.crashed_with(|entry| entry["keeper"] = json!({ "pid": keeper, "start": start_of(keeper) }));
    assert_eq!(scene.ledger.sweep().removed.len(), 1);
    wait_until("it has ended with its last keeper", || !supervisor.is_alive());
    assert!(!run.path.exists());
}

#[test]
fn the_lock_of_a_run_is_the_one_that_sweeps_check() {
    let scene = scene();
    let run = scene.ledger.register("claude").unwrap();
    assert!(fs::File::open(run.path()).unwrap().try_lock().is_err());
    // Duplicates are the same lock.
    fs::File::from(run.lock().try_clone_to_owned().unwrap()).unlock().unwrap();
    assert!(fs::File::open(run.path()).unwrap().try_lock().is_ok());
}

#[test]
fn a_run_is_live_while_its_host_is_alive_even_without_the_lock() {
    let scene = scene();
    let host = Running::sh("exec sleep 300", &[]);
    let run = scene.crashed_with(|entry| entry["host"] = host.leader());
    let member = Running::marked("exec sleep 300", &run);
    assert_eq!(scene.ledger.sweep().live, 1);
    assert!(member.is_alive());
    drop(host);
    assert_eq!(scene.ledger.sweep().removed.len(), 1);
    assert!(!member.is_alive());
}

#[test]
fn a_directory_that_other_users_could_use_is_rejected() {
    let scene = scene();
    let ledger = scene.home.path().join("ledger");
    let elsewhere = scene.home.path().join("elsewhere");
    let refusal = || match scene.ledger.register("claude") {
        Err(LedgerError::Refused { path, reason }) if path == ledger => reason,
        other => panic!("{other:?}"),
    };
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &ledger).unwrap();
    assert_eq!(refusal(), Refusal::NotADirectory);
    fs::remove_file(&ledger).unwrap();

    fs::create_dir(&ledger).unwrap();
    fs::set_permissions(&ledger, fs::Permissions::from_mode(0o750)).unwrap();
    assert_eq!(refusal(), Refusal::OthersMayEnter);
    assert!(!scene.ledger.sweep().is_clean(), "it may contain runs of this user");
    fs::remove_dir(&ledger).unwrap();

    fs::set_permissions(scene.home.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(refusal(), Refusal::OthersMayReplace);
    // The mode of /tmp.
    fs::set_permissions(scene.home.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    assert!(scene.ledger.register("claude").is_ok());
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 0);
}

#[test]
fn the_error_for_a_ledger_that_cannot_be_created_names_it() {
    let ledger = Ledger::in_directory("/proc/ledger");
    let error = ledger.register("claude").unwrap_err();
    assert!(error.to_string().contains("/proc/ledger"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(ledger.sweep().is_clean());
}
