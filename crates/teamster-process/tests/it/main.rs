//! Tests with real processes; `/bin/sh` is the started program.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the lints take helpers of tests for library code"
)]

mod ends;
mod helper_failures;
mod lease;
mod ledger;
mod output;
mod start;
#[cfg(target_os = "linux")]
mod starting;
mod supervision;
mod trees;

use std::{
    ffi::OsString,
    fs,
    path::PathBuf,
    sync::LazyLock,
    time::{Duration, Instant},
};

use teamster_process::{Exit, Frame, Output, OutputReader, Pipes, ProcessTree, Spawn, SpawnError, Stdin, Supervisor};

static SUPERVISOR: LazyLock<Supervisor> = LazyLock::new(Supervisor::new);

/// A time that no test reaches, unless a promise is broken.
const LONG: Duration = Duration::from_mins(1);

/// The longest time until a condition must hold, on a busy machine.
const BOUND: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Spawn {
    Spawn {
        program: PathBuf::from("/bin/sh"),
        args: vec![OsString::from("-c"), OsString::from(script)],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        cwd: PathBuf::from("/"),
        stdin: Stdin::Null,
        output: Output::Stdout,
    }
}

async fn spawn(spawn: &Spawn) -> Result<(ProcessTree, Pipes), SpawnError> {
    ProcessTree::spawn(&SUPERVISOR, spawn, None).await
}

async fn start(script: &str) -> (ProcessTree, Pipes) {
    spawn(&sh(script)).await.unwrap()
}

/// Waits for the leader's exit, and kills the remaining processes.
async fn reap(tree: ProcessTree) -> Exit {
    let exit = tree.exited().await;
    assert_eq!(tree.terminate(Duration::ZERO).await, []);
    exit
}

/// Starts a script and reads the first `count` pids that it prints.
async fn start_and_read(script: &str, count: usize) -> (ProcessTree, OutputReader, Vec<u32>) {
    // Stderr is not read here; the shell writes to it when its children are killed.
    let (tree, pipes) = start(&format!("exec 2>/dev/null; {script}")).await;
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    let pids = numbers(&mut stdout, count).await;
    (tree, stdout, pids)
}

/// Reads the next `count` numbers that a script prints; no more may be there yet.
async fn numbers(stdout: &mut OutputReader, count: usize) -> Vec<u32> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        let read = tokio::time::timeout(BOUND, stdout.fill()).await.unwrap().unwrap();
        assert!(read > 0, "the script ended early");
        while let Some(frame) = stdout.next() {
            let Frame::Line(line) = frame else { panic!("{frame:?}") };
            numbers.push(std::str::from_utf8(line).unwrap().parse().unwrap());
        }
    }
    numbers
}

/// Returns the state, parent, group and session of a process.
fn stat(pid: u32) -> Option<(String, u32, u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?.to_owned();
    let mut number = || fields.next()?.parse().ok();
    Some((state, number()?, number()?, number()?))
}

/// Returns whether a process is alive. A zombie is not: process 1 may reap orphans late or never.
fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, ..)| state != "Z" && state != "X")
}

/// Returns the living processes that were started with this variable in their environment.
fn alive_with(variable: &str) -> Vec<u32> {
    let has_variable = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|one| one == variable.as_bytes())
    };
    processes().filter(has_variable).filter(|&pid| is_alive(pid)).collect()
}

async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < BOUND, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn block_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < BOUND, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn children_of(parent: u32) -> Vec<u32> {
    processes().filter(|&pid| stat(pid).is_some_and(|(_, its, ..)| its == parent)).collect()
}

fn processes() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

async fn all_die(pids: &[u32]) {
    eventually(&format!("{pids:?} are dead"), || !pids.iter().any(|&pid| is_alive(pid))).await;
}

/// Waits until a process has opened its own session.
async fn leads_a_session(pid: u32) {
    eventually("setsid", || stat(pid).is_some_and(|(.., session)| session == pid)).await;
}
