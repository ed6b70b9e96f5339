//! Sweeps over entries of all kinds, including damaged ones.

use std::{fs, os::unix::fs::symlink, process::Command};

use serde_json::{Value, json};
use teamster_process::ledger::SkipReason;

use super::scene::{Running, entry, lock, scene};

#[test]
fn a_run_of_another_pid_namespace_is_skipped_and_reported() {
    let scene = scene();
    let run = scene.crashed_with(|entry| entry["here"]["pidNamespace"] = json!(1));
    let sweep = scene.ledger.sweep();
    assert!(matches!(sweep.skipped.as_slice(), [left] if left.path == run.path
        && matches!(left.reason, SkipReason::OtherNamespace)));
    assert!(!sweep.is_clean() && run.path.join("entry.json").exists());
}

#[test]
fn a_run_of_a_newer_version_is_skipped_and_reported() {
    let scene = scene();
    let run = scene.crashed_with(|entry| *entry = json!({ "version": 2, "marks": [] }));
    let sweep = scene.ledger.sweep();
    assert!(matches!(&sweep.skipped[0].reason, SkipReason::Newer { version: 2 }));
    assert!(run.path.exists());
}

/// Damaged entries, each of which could be taken to mean a real process.
#[test]
fn a_damaged_entry_is_removed_and_no_process_is_killed() {
    let scene = scene();
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_", "1")]);
    let whole = entry("TEAMSTER_TREE_1").to_string();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut entry = entry("TEAMSTER_TREE_1");
        entry["leader"] = other.leader();
        change(&mut entry);
        entry.to_string().into_bytes()
    };
    let damaged = [
        Vec::new(),
        b"\0\0\0\0".to_vec(),
        whole.as_bytes()[..whole.len() - 10].to_vec(),
        b"[1]".to_vec(),
        with(&|entry| entry["mark"] = json!("PATH")),
        with(&|entry| entry["mark"] = json!("")),
        with(&|entry| entry["mark"] = json!("TEAMSTER_TREE_")),
        with(&|entry| entry["mark"] = json!(null)),
        with(&|entry| entry["leader"]["pid"] = json!(-1)),
        with(&|entry| entry["leader"]["pid"] = json!(1)),
        with(&|entry| entry["leader"]["start"] = json!("1")),
        with(&|entry| entry["host"]["start"] = json!(u64::MAX)),
        with(&|entry| entry["here"] = json!({})),
    ];
    for bytes in damaged {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        fs::write(scene.bare().join("entry.json"), bytes).unwrap();
        let sweep = scene.ledger.sweep();
        assert!(sweep.is_clean() && sweep.removed.len() == 1, "{text}: {sweep:?}");
        assert!(sweep.removed[0].killed.is_empty(), "{text}");
        assert!(scene.is_empty());
    }
    assert!(other.is_alive());
}

#[test]
fn an_entry_that_is_not_a_file_is_damaged() {
    let scene = scene();
    let elsewhere = scene.home.path().join("elsewhere.json");
    let other = Running::sh("exec sleep 300", &[("TEAMSTER_TREE_elsewhere", "1")]);
    fs::write(&elsewhere, entry("TEAMSTER_TREE_elsewhere").to_string()).unwrap();
    symlink(&elsewhere, scene.bare().join("entry.json")).unwrap();
    fs::create_dir(scene.bare().join("entry.json")).unwrap();
    let pipe = Command::new("mkfifo").arg(scene.bare().join("entry.json")).status().unwrap();
    assert!(pipe.success());
    let sweep = scene.ledger.sweep();
    assert!(sweep.is_clean() && sweep.removed.len() == 3, "{sweep:?}");
    assert!(other.is_alive() && elsewhere.exists());
}

#[test]
fn a_run_that_crashed_before_it_wrote_its_entry_is_removed_when_its_lock_is_free() {
    let scene = scene();
    let path = scene.bare();
    let host = lock(&path);
    assert_eq!(scene.ledger.sweep().live, 1);
    assert!(path.exists());
    drop(host);
    assert_eq!(scene.ledger.sweep().removed.len(), 1);
    assert!(scene.is_empty());
}

#[test]
fn an_entry_that_is_not_a_run_is_skipped_and_reported() {
    let scene = scene();
    let theirs = scene.home.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("entry.json"), entry("TEAMSTER_TREE_1").to_string()).unwrap();
    scene.crashed();
    let link = scene.runs().join("abcdefghijklmnop");
    symlink(&theirs, &link).unwrap();
    fs::write(scene.runs().join("ABCDEFGHIJKLMNOP"), "x").unwrap();
    fs::create_dir(scene.runs().join("notes")).unwrap();
    let sweep = scene.ledger.sweep();
    assert_eq!((sweep.removed.len(), sweep.skipped.len()), (1, 3));
    assert!(sweep.skipped.iter().all(|left| matches!(left.reason, SkipReason::NotARun)));
    assert!(!sweep.is_clean());
    assert!(theirs.join("entry.json").exists() && link.is_symlink());
    assert_eq!(scene.ledger.survey().skipped.len(), 3);
}

#[test]
fn links_in_a_crashed_run_are_removed_and_their_targets_stay() {
    let scene = scene();
    let theirs = scene.home.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("file"), "x").unwrap();
    let run = scene.crashed();
    fs::create_dir(run.path.join("files")).unwrap();
    symlink(&theirs, run.path.join("files/home")).unwrap();
    assert_eq!(scene.ledger.sweep().removed.len(), 1);
    assert!(!run.path.exists() && theirs.join("file").exists());
}

#[test]
fn a_survey_changes_nothing() {
    let scene = scene();
    let run = scene.crashed();
    let member = Running::marked("exec sleep 300", &run);
    let survey = scene.ledger.survey();
    assert_eq!((survey.live.len(), survey.leftovers.len()), (0, 1));
    assert_eq!(survey.leftovers[0].path, run.path);
    assert!(member.is_alive() && run.path.join("entry.json").exists());
}
