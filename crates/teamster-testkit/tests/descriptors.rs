//! A run gives back every descriptor. The test is alone in its process, since it counts all of them.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::fs;
use std::time::{Duration, Instant};

use serde_json::json;
use teamster::{RunRequest, Runtime};
use teamster_testkit::fake::{Child, SCRIPT_ENV, Script, Signal};

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

/// A run of every kind of end.
async fn round(runtime: &Runtime) {
    let begun = || Script::new().claude_init().claude_text("Hello");
    let child = Child::new(Script::new().ignore(Signal::Term).ready().hang()).session();
    let ends = [
        begun().claude_result("Hello").read_to_end(),
        begun().claude_result("Hello").hang(),
        begun().spawn(child).claude_result("Hello").read_to_end(),
        begun().claude_burst(60_000).claude_result("Hello").exit(0),
        begun().raise(Signal::Kill),
        begun().claude_tool("toolu_1", "Bash", &json!({})).exit(3),
    ];
    let runs: Vec<_> = ends.iter().map(|end| runtime.run("claude", request(end)).unwrap()).collect();
    for run in runs {
        run.result().await;
    }
    let mut missing = request(&Script::new());
    missing.cli_path = Some("/no/such/cli".into());
    assert!(runtime.run("claude", missing).unwrap().result().await.is_error);
    for aborted in [true, false] {
        let mut run = runtime.run("claude", request(&begun().ignore(Signal::Term).hang())).unwrap();
        run.next().await;
        if aborted {
            run.control().abort();
            run.result().await;
        }
    }
    runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_leave_no_descriptor_and_no_thread_behind() {
    let runtime = Runtime::new();
    round(&runtime).await;
    let before = (open_descriptors(), threads());
    for _ in 0..3 {
        round(&runtime).await;
    }
    let began = Instant::now();
    while (open_descriptors(), threads()) != before {
        let now = (open_descriptors(), threads());
        assert!(began.elapsed() < Duration::from_secs(30), "before {before:?}, after {now:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
