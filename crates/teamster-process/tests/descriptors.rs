//! A test with its own process, since it counts the process's open descriptors.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::{fs, time::Duration};

use teamster_process::{Ledger, Output, PrivateDir, ProcessTree, Spawn, Spill, Stdin, Supervisor};

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

async fn run(supervisor: &Supervisor, script: &str) -> ProcessTree {
    let spawn = Spawn {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        cwd: "/".into(),
        stdin: Stdin::Pipe,
        output: Output::Stdout,
    };
    let (tree, _pipes) = ProcessTree::spawn(supervisor, &spawn, None).await.unwrap();
    let missing = Spawn { program: "/nowhere".into(), ..spawn };
    assert!(ProcessTree::spawn(supervisor, &missing, None).await.is_err());
    tree
}

#[tokio::test]
async fn nothing_stays_open_after_trees_have_ended() {
    let supervisor = Supervisor::new();
    run(&supervisor, "exit 0").await.terminate(Duration::ZERO).await;
    let before = open_descriptors();
    for _ in 0..50 {
        let tree = run(&supervisor, "exit 0").await;
        tree.exited().await;
        tree.terminate(Duration::ZERO).await;
        run(&supervisor, "setsid sleep 300 & wait").await.terminate(Duration::from_mins(1)).await;
        drop(run(&supervisor, "sleep 300").await);
        let directory = PrivateDir::create(None, "descriptors-").unwrap();
        directory.write("file", b"x").unwrap();
        Spill::create(directory.path(), 1024).unwrap().push(b"x").unwrap();
        let ledger = Ledger::in_directory(directory.path().join("ledger"));
        let registered = ledger.register("descriptors").unwrap();
        registered.private_dir().unwrap().write("file", b"x").unwrap();
        assert_eq!(ledger.sweep().live, 1);
    }
    assert_eq!(open_descriptors(), before);
}
