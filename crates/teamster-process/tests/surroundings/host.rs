//! The host: starts a tree with the given shell script, and prints what it observes.

use std::{
    error::Error,
    ffi::OsString,
    fs::File,
    process::Command,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rustix::{
    io::Errno,
    process::{WaitId, WaitIdOptions, waitid},
};
use teamster_process::{Frame, Output, OutputReader, ProcessTree, Spawn, Stdin, StdinWriter, Supervisor, limitations};

use crate::handles;

/// The longest wait for anything that is promised.
const BOUND: Duration = Duration::from_secs(20);

/// `SCRIPT [OPTION...]`
pub(crate) fn main(arguments: &[String]) {
    let (script, options) = arguments.split_first().unwrap();
    let supervisor = Supervisor::new();
    let mut lock = None;
    for option in options {
        match option.split_once('=').unwrap_or((option, "")) {
            ("sigpipe-default", _) => default_sigpipe(),
            ("cover-proc", _) => cover_proc(),
            ("refuse-handles", errno) => handles::refuse(errno.parse().unwrap()),
            ("lock", path) => lock = Some(path),
            other => panic!("no option {other:?}"),
        }
    }
    for limitation in limitations() {
        println!("limited: {limitation}");
    }
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(hold(script, supervisor, lock));
}

async fn hold(script: &str, supervisor: Supervisor, lock: Option<&str>) {
    let spawn = Spawn {
        program: "/bin/sh".into(),
        args: vec![OsString::from("-c"), script.into()],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        cwd: "/".into(),
        stdin: Stdin::Pipe,
        output: Output::Stdout,
    };
    let (tree, pipes) = match ProcessTree::spawn(&supervisor, &spawn, None).await {
        Ok(spawned) => spawned,
        Err(error) => return println!("not started: {error} {:?}", error.source()),
    };
    let mut stdout = OutputReader::new(pipes.stdout, 1 << 16);
    while tokio::time::timeout(BOUND, stdout.fill()).await.unwrap().unwrap() > 0 {
        while let Some(Frame::Line(line)) = stdout.next() {
            println!("said: {}", String::from_utf8_lossy(line));
        }
    }
    let mut stdin = StdinWriter::new(pipes.stdin);
    stdin.push(Bytes::from_static(b"hello?\n"));
    if stdin.flush().await.is_err() {
        println!("stdin is closed");
    }
    match tokio::time::timeout(BOUND, tree.exited()).await {
        Ok(exit) => println!("exit: {exit}"),
        Err(_) => println!("exit: unnoticed"),
    }
    let began = Instant::now();
    let survivors = tree.terminate(Duration::from_millis(200)).await;
    println!("survivors: {} in time: {}", survivors.len(), began.elapsed() < BOUND);
    for survivor in &survivors {
        println!("survivor: {}", survivor.pid);
    }
    if let Some(lock) = lock {
        println!("lock is free: {}", File::open(lock).unwrap().try_lock().is_ok());
    }
    drop((tree, supervisor));
    println!("no child is left: {}", wait_for_childless());
}

/// Waits until this process has no child, not even a zombie; returns whether that happened.
fn wait_for_childless() -> bool {
    let any = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let is_childless = || matches!(waitid(WaitId::All, any), Err(Errno::CHILD));
    let began = Instant::now();
    while !is_childless() && began.elapsed() < BOUND {
        std::thread::sleep(Duration::from_millis(5));
    }
    is_childless()
}

fn cover_proc() {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none", "/proc"]).status().unwrap();
    assert!(mounted.success());
}

#[expect(unsafe_code, reason = "no safe call changes what is done about a signal")]
fn default_sigpipe() {
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}
