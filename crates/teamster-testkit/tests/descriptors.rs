//! Runs release every file descriptor and hold no thread. This test is alone in its process,
//! because it counts all of them.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Mode};
use serde_json::json;
use teamster::event::Event;
use teamster::{RunRequest, Runtime};
use teamster_testkit::fake::{Child, SCRIPT_ENV, Script, Signal};
use tokio::runtime::Builder;

/// The number of runs that are alive at the same time.
const CROWD: usize = 64;

/// The descriptors that a run may hold: three pipes, a process handle, one for its private
/// directory, and one spare.
const DESCRIPTORS: usize = 6;

/// The threads of this process without blocking disk access: the test's thread, Tokio's two
/// workers, and some spare.
const THREADS: usize = 8;

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn request(script: &Script) -> RunRequest {
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
    request.system_prompt = Some("goes by a private file".into());
    request.env.insert(SCRIPT_ENV.into(), script.to_json());
    request.limits.grace = Duration::from_millis(100);
    request.limits.drain = Duration::from_millis(100);
    request.limits.after_result = Duration::from_millis(100);
    request
}

/// Plays one run for each way to end.
async fn round(runtime: &Runtime) {
    let started = || Script::new().claude_init().claude_text("Hello");
    let child = Child::new(Script::new().ignore(Signal::Term).ready().hang()).session();
    let ends = [
        started().claude_result("Hello").read_to_end(),
        started().claude_result("Hello").hang(),
        started().spawn(child).claude_result("Hello").read_to_end(),
        started().claude_burst(60_000).claude_result("Hello").exit(0),
        started().raise(Signal::Kill),
        started().claude_tool("toolu_1", "Bash", &json!({})).exit(3),
    ];
    let runs: Vec<_> = ends.iter().map(|end| runtime.run("claude", request(end)).unwrap()).collect();
    for run in runs {
        // Some of them fail.
        _ = run.result().await;
    }
    let mut missing = request(&Script::new());
    missing.cli_path = Some("/no/such/cli".into());
    assert!(runtime.run("claude", missing).unwrap().result().await.is_err());
    for aborted in [true, false] {
        let mut run = runtime.run("claude", request(&started().ignore(Signal::Term).hang())).unwrap();
        run.next().await;
        if aborted {
            run.control().abort();
            assert!(run.result().await.unwrap_err().result.aborted);
        }
    }
    runtime.wait_idle().await;
}

/// The time for which an idle thread is kept for further blocking work.
const KEPT: Duration = Duration::from_secs(1);

/// Waits until the threads for blocking work have exited.
async fn until_threads_are_few() {
    let began = Instant::now();
    while threads() > THREADS {
        assert!(began.elapsed() < Duration::from_secs(30), "{} threads", threads());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Plays runs that are all alive at the same time. Returns the descriptors that they hold then;
/// none of them has a thread.
async fn crowd(runtime: &Runtime, fifo: &Path) -> usize {
    let script = Script::new()
        .claude_init()
        .claude_text("met")
        .await_writer(fifo)
        .claude_burst(100)
        .claude_result("-")
        .read_to_end();
    let mut request = request(&script);
    request.limits.after_result = Duration::from_mins(10);
    let mut runs: Vec<_> = (0..CROWD).map(|_| runtime.run("claude", request.clone()).unwrap()).collect();
    for run in &mut runs {
        while !matches!(run.next().await, Some(Event::Text(_))) {}
    }
    until_threads_are_few().await;
    let held = open_descriptors();
    // While it is open, every agent that waits for a writer continues.
    let gate = File::options().read(true).write(true).open(fifo).unwrap();
    for run in runs {
        run.result().await.unwrap();
    }
    drop(gate);
    runtime.wait_idle().await;
    held
}

#[test]
fn runs_hold_few_descriptors_and_no_thread_and_release_them() {
    let tokio = Builder::new_multi_thread().worker_threads(2).thread_keep_alive(KEPT).enable_all().build().unwrap();
    tokio.block_on(all());
}

async fn all() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let runtime = Runtime::new();
    round(&runtime).await;
    crowd(&runtime, &fifo).await;
    let before = open_descriptors();
    let descriptors = crowd(&runtime, &fifo).await;
    assert!(descriptors <= before + CROWD * DESCRIPTORS, "{descriptors} descriptors, {before} before");
    for _ in 0..3 {
        round(&runtime).await;
    }
    let began = Instant::now();
    while open_descriptors() != before {
        let now = open_descriptors();
        assert!(began.elapsed() < Duration::from_secs(30), "{before} before, {now} after");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    until_threads_are_few().await;
}
