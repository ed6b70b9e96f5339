//! `load RUNS FAKE_AGENT`: many runs that live at once in one process, and what they cost it.
//!
//! Every run streams, then all wait for each other; at that moment the host is measured. Then all stream again, at
//! once, and end. Nothing may be left. `cargo xtask load` builds and starts it; its `TMPDIR` must be its own.

#![expect(clippy::expect_used, clippy::unwrap_used, clippy::print_stdout, reason = "a measurement")]

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use teamster::event::Event;
use teamster::{Run, RunRequest, Runtime};
use teamster_testkit::fake::{SCRIPT_ENV, Script};

/// Deltas of a run before and after all have met.
const DELTAS: u64 = 200;

/// Threads of Tokio's own that may wait for the disk while runs start, however many those are.
const DISK_THREADS: usize = 16;

/// A longer wait is a failure.
const BOUND: Duration = Duration::from_mins(2);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let runs: usize = args.next().and_then(|runs| runs.parse().ok()).expect("how many runs");
    let agent = PathBuf::from(args.next().expect("the fake agent"));
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if tokio.block_on(load(runs, &agent)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn load(count: usize, agent: &Path) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new();
    // What the first runs cost for all.
    wave(&runtime, agent, folder.path(), 8, async || ()).await;
    let before = Host::look(agent);

    let began = Instant::now();
    let (mut met, mut peak) = (Duration::ZERO, None);
    wave(&runtime, agent, folder.path(), count, async || {
        met = began.elapsed();
        peak = Some(Host::look(agent));
    })
    .await;
    let took = began.elapsed();
    let peak = peak.unwrap();
    folder.close().unwrap();
    let after = settled(agent, &before).await;

    let runs = u32::try_from(count).unwrap();
    println!(
        "{count} runs that live at once in one process, on {} CPUs",
        std::thread::available_parallelism().unwrap()
    );
    println!(
        "start of all, until each has streamed: {:.1} s, {:.1} ms a run",
        met.as_secs_f64(),
        ms(met) / f64::from(runs)
    );
    println!("all of it, to the last end:            {:.1} s", took.as_secs_f64());
    println!("memory of the host, a run:             {} KiB", (peak.rss - before.rss) / u64::from(runs));
    println!(
        "descriptors of the host, a run:        {:.2}",
        more(peak.descriptors, before.descriptors) / f64::from(runs)
    );
    println!("threads of the host:                   {} before, {} now", before.threads, peak.threads);
    println!(
        "helper processes, a run:               {:.2}",
        more(peak.helpers.len(), before.helpers.len()) / f64::from(runs)
    );
    println!("memory of helpers (Pss), a run:        {} KiB", peak.helpers.iter().sum::<u64>() / u64::from(runs));
    println!(
        "left: {} descriptors, {} threads, {} processes, {} files",
        more(after.descriptors, before.descriptors),
        more(after.threads, before.threads),
        more(after.processes, before.processes),
        after.files
    );
    after.left_nothing(&before) && peak.threads <= before.threads + DISK_THREADS
}

/// Starts runs, lets them stream until all have, calls `met`, and lets them stream again to their ends.
async fn wave(runtime: &Runtime, agent: &Path, folder: &Path, count: usize, met: impl AsyncFnOnce()) {
    let fifo = folder.join(format!("go-{count}"));
    rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let script = Script::new()
        .claude_init()
        .claude_burst(DELTAS)
        .claude_text("met")
        .await_writer(&fifo)
        .claude_burst(DELTAS)
        .claude_result("-")
        .read_to_end();
    let (arrive, mut arrived) = tokio::sync::mpsc::channel(count);
    let readers: Vec<_> = (0..count)
        .map(|_| {
            let run = runtime.run("claude", request(agent, &script)).unwrap();
            tokio::spawn(read(run, arrive.clone()))
        })
        .collect();
    for _ in 0..count {
        tokio::time::timeout(BOUND, arrived.recv()).await.expect("all runs meet").unwrap();
    }
    met().await;
    // While it is open, every run passes.
    let gate = File::options().read(true).write(true).open(&fifo).unwrap();
    for reader in readers {
        tokio::time::timeout(BOUND, reader).await.expect("all runs end").unwrap();
    }
    drop(gate);
    runtime.wait_idle().await;
}

fn request(agent: &Path, script: &Script) -> RunRequest {
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(agent.to_owned());
    request.system_prompt = Some("goes by a private file".to_owned());
    request.env.insert(SCRIPT_ENV.into(), script.to_json());
    request
}

async fn read(mut run: Run, arrive: tokio::sync::mpsc::Sender<()>) {
    while let Some(event) = run.next().await {
        match event {
            Event::Text(delta) if delta.text == "met" => arrive.send(()).await.unwrap(),
            Event::Done(done) => {
                let result = done.result;
                assert!(!result.is_error, "{result:?}");
                assert_eq!(result.text.matches(' ').count() as u64, 2 * DELTAS);
            }
            _ => {}
        }
    }
}

/// Ends take a moment to be known to the system.
async fn settled(agent: &Path, before: &Host) -> Host {
    let began = Instant::now();
    loop {
        let now = Host::look(agent);
        if now.left_nothing(before) || began.elapsed() > Duration::from_secs(30) {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// This process, and those that descend from it.
struct Host {
    descriptors: usize,
    threads: usize,
    /// Resident memory in KiB.
    rss: u64,
    processes: usize,
    /// Of each descendant that is no agent: its share of memory in KiB.
    helpers: Vec<u64>,
    /// Files where private files go.
    files: usize,
}

impl Host {
    fn look(agent: &Path) -> Self {
        let descendants = descendants();
        let program = |pid: &u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
        let helpers = descendants.iter().filter(|pid| program(pid).as_deref() != Some(agent));
        Self {
            descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            rss: kib("/proc/self/status", "VmRSS:").unwrap(),
            processes: descendants.len(),
            helpers: helpers.filter_map(|pid| kib(&format!("/proc/{pid}/smaps_rollup"), "Pss:")).collect(),
            files: fs::read_dir(std::env::temp_dir()).unwrap().count(),
        }
    }

    fn left_nothing(&self, before: &Self) -> bool {
        // Threads that were idle may have gone.
        (self.descriptors, self.processes, self.files) == (before.descriptors, before.processes, 0)
            && self.threads <= before.threads
    }
}

/// Returns all descendants of this process.
fn descendants() -> Vec<u32> {
    let mut children = HashMap::<u32, Vec<u32>>::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        children.entry(parent.unwrap_or_default()).or_default().push(pid);
    }
    let mut found = Vec::new();
    let mut open = vec![std::process::id()];
    while let Some(pid) = open.pop() {
        let born = children.remove(&pid).unwrap_or_default();
        open.extend(&born);
        found.extend(born);
    }
    found
}

fn kib(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(field)?.trim().strip_suffix(" kB")?.parse().ok())
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn more(now: usize, before: usize) -> f64 {
    now as f64 - before as f64
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
