//! Alone in its process, since it counts what the process has open.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::{fs, time::Duration};

use teamster_process::{Ledger, PrivateDir, ProcessTree, Spawn, Spill, Stdin};

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn run(script: &str) -> ProcessTree {
    let spawn = Spawn {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        cwd: "/".into(),
        stdin: Stdin::Pipe,
    };
    let (tree, _pipes) = ProcessTree::spawn(&spawn).unwrap();
    let missing = Spawn { program: "/nowhere".into(), ..spawn };
    assert!(ProcessTree::spawn(&missing).is_err());
    tree
}

#[tokio::test]
async fn nothing_stays_open_after_trees_have_ended() {
    run("exit 0").reap().await;
    let before = open_descriptors();
    for _ in 0..50 {
        run("exit 0").reap().await;
        let tree = run("setsid sleep 300 & wait");
        tree.terminate(Duration::from_mins(1)).await;
        tree.reap().await;
        drop(run("sleep 300"));
        let directory = PrivateDir::create(None, "descriptors-").unwrap();
        directory.write("file", b"x").unwrap();
        Spill::create(directory.path(), 1024).unwrap().push(b"x").unwrap();
        let ledger = Ledger::in_directory(directory.path().join("ledger"));
        let run = ledger.register("descriptors").unwrap();
        run.private_dir().unwrap().write("file", b"x").unwrap();
        assert_eq!(ledger.sweep().live, 1);
    }
    assert_eq!(open_descriptors(), before);
}
