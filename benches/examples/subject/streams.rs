//! What deltas cost and how long they take.

use std::io::{Read as _, Write as _};

use teamster::Run;
use teamster::event::Event;
use teamster_benches::report::{Report, float, mebibytes, microseconds, milliseconds};
use teamster_benches::scenario::{READY, exit_ns};
use teamster_benches::stamps::age_ns;
use teamster_benches::usage::{cpu_ns, now_ns, peak_rss_kib, rss_kib};
use tokio::sync::mpsc;

use crate::{Host, helpers};

/// How often to check whether the CLI has exited.
const EXIT_CHECK: std::time::Duration = std::time::Duration::from_millis(1);

/// One run, to its end.
pub(crate) async fn burst(host: &Host) -> Report {
    let before = rss_kib();
    let (cpu, began) = (cpu_ns(), now_ns());
    let mut run = host.run();
    let (mut texts, mut bytes, mut found, mut helpers_cpu, mut overhead) = (0_u64, 0, Vec::new(), 0, 0);
    while let Some(event) = run.next().await {
        match event {
            Event::Text(delta) => {
                if texts == 0 {
                    let own = cpu_ns();
                    found = helpers::pids();
                    overhead = cpu_ns() - own;
                }
                texts += 1;
                bytes += delta.text.len();
                if texts.is_multiple_of(10_000) {
                    helpers_cpu = helpers::cpu_ns(&found);
                }
            }
            Event::Done(done) => {
                assert!(!done.result.is_error, "{:?}", done.result.error);
                std::hint::black_box((bytes, &done.result.text));
            }
            event => {
                std::hint::black_box(event);
            }
        }
    }
    let (cpu, wall) = (cpu_ns() - cpu - overhead, now_ns() - began);
    Report::default()
        .with("cpu_us", microseconds(cpu))
        .with("helpers_cpu_us", microseconds(helpers_cpu))
        .with("wall_ms", milliseconds(wall))
        .with("events", float(texts))
        .with("base_mib", mebibytes(before))
        .with("peak_mib", mebibytes(peak_rss_kib()))
}

/// Turns of one session on one process.
pub(crate) async fn turns(host: &Host, turns: usize) -> Report {
    let (cpu, began) = (cpu_ns(), now_ns());
    let mut request = teamster::RunRequest::session();
    request.cli_path = Some(host.cli.clone());
    let session = host.runtime.open(host.form.agent(), request).expect("a session");
    for _ in 0..turns {
        session.send("hello").expect("a turn").result().await.expect("a result");
    }
    let (cpu, wall) = (cpu_ns() - cpu, now_ns() - began);
    let descriptors = open_descriptors();
    session.close().await;
    Report::default()
        .with("cpu_us", microseconds(cpu))
        .with("wall_ms", milliseconds(wall))
        .with("turns", float(turns as u64))
        .with("descriptors", descriptors)
        .with("peak_mib", mebibytes(peak_rss_kib()))
}

/// One run whose consumer reads nothing until the CLI has exited.
pub(crate) async fn unread(host: &Host) -> Report {
    let (cpu, began) = (cpu_ns(), now_ns());
    let mut run = host.run();
    while exit_ns(&host.cli).is_none_or(|exited| exited < began) {
        tokio::time::sleep(EXIT_CHECK).await;
    }
    let mut texts = 0;
    while let Some(event) = run.next().await {
        texts += u64::from(matches!(event, Event::Text(_)));
    }
    Report::default()
        .with("cpu_us", microseconds(cpu_ns() - cpu))
        .with("wall_ms", milliseconds(now_ns() - began))
        .with("events", float(texts))
        .with("peak_mib", mebibytes(peak_rss_kib()))
}

fn open_descriptors() -> f64 {
    float(std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64)
}

/// The age of each delta when the consumer has it, in runs at once.
pub(crate) async fn latency(host: &Host, runs: usize) -> Report {
    let cpu = cpu_ns();
    let readers: Vec<_> = (0..runs).map(|_| tokio::spawn(ages(host.run()))).collect();
    let mut all = Vec::new();
    for reader in readers {
        all.push(reader.await.expect("a reader"));
    }
    Report::default().with_latencies(&all).with("cpu_us", microseconds(cpu_ns() - cpu))
}

async fn ages(mut run: Run) -> Vec<u64> {
    let mut ages = Vec::new();
    while let Some(event) = run.next().await {
        if let Event::Text(delta) = event {
            ages.extend(age_ns(&delta.text));
        }
    }
    ages
}

/// Runs that stay live until standard input ends. A line on standard output reports that all are live.
pub(crate) async fn live(host: &Host, runs: usize) -> Report {
    let began = now_ns();
    let (ready, mut all_ready) = mpsc::channel(runs);
    let readers: Vec<_> = (0..runs).map(|_| tokio::spawn(stay(host.run(), ready.clone()))).collect();
    for _ in 0..runs {
        all_ready.recv().await.expect("a live run");
    }
    let (took, descriptors) = (now_ns() - began, open_descriptors());
    println!("ready");
    std::io::stdout().flush().expect("standard output");
    let _end = std::io::stdin().read_to_end(&mut Vec::new());
    drop(readers);
    Report::default()
        .with("ready_ms", milliseconds(took))
        .with("descriptors", descriptors)
        .with("runs", float(runs as u64))
}

async fn stay(mut run: Run, ready: mpsc::Sender<()>) {
    while let Some(event) = run.next().await {
        match event {
            Event::Text(delta) if delta.text == READY => ready.send(()).await.expect("the host waits"),
            Event::Error(failure) => panic!("{failure:?}"),
            _ => {}
        }
    }
}
