//! The CLI without a library: a wake-up of Tokio's for each line, a start, a stop.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_benches::forms::{Form, first_line};
use teamster_benches::report::{Report, median, microseconds, milliseconds};
use teamster_benches::scenario::{exit_ns, main_ns};
use teamster_benches::stamps::stamp_of_line;
use teamster_benches::usage::{cpu_ns, now_ns, wait_until_gone};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;

/// Starts and stops that are measured in one process.
const ROUNDS: usize = 11;

pub(crate) fn latency(form: Form, program: &Path, runs: usize) -> Report {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let cpu = cpu_ns();
    let latencies = tokio.block_on(async {
        let readers: Vec<_> = (0..runs).map(|_| tokio::spawn(read(form, program.to_owned()))).collect();
        let mut all = Vec::new();
        for reader in readers {
            all.push(reader.await.expect("a reader"));
        }
        all
    });
    Report::default().with_latencies(&latencies).with("cpu_us", microseconds(cpu_ns() - cpu))
}

async fn read(form: Form, program: std::path::PathBuf) -> Vec<u64> {
    let (mut cli, stdout) = form.start(&program).expect("the CLI starts");
    let pipe = Receiver::from_owned_fd(stdout.into()).expect("a pipe");
    let mut lines = BufReader::with_capacity(64 * 1024, pipe);
    let (mut line, mut latencies) = (Vec::new(), Vec::new());
    while lines.read_until(b'\n', &mut line).await.expect("a pipe") > 0 {
        if let Some(stamp) = stamp_of_line(&line) {
            latencies.push(now_ns().saturating_sub(stamp));
        }
        if form.ends_turn(&line) {
            break;
        }
        line.clear();
    }
    drop(cli.stdin);
    let _status = cli.child.wait();
    latencies
}

/// The median of spawns, to the first line; and from the exit of the CLI until its status is known.
pub(crate) fn start(form: Form, program: &Path) -> Report {
    let (mut firsts, mut mains, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = now_ns();
        let (mut cli, stdout) = form.start(program).expect("the CLI starts");
        first_line(&stdout).expect("a first line");
        firsts.push(milliseconds(now_ns() - began));
        drop((cli.stdin, stdout));
        let _status = cli.child.wait();
        ends.push(milliseconds(now_ns().saturating_sub(exit_ns(program).expect("the CLI's exit"))));
        mains.push(milliseconds(main_ns(program).expect("the CLI's start").saturating_sub(began)));
    }
    let cold = firsts.remove(0);
    Report::default()
        .with("cold_ms", cold)
        .with("warm_ms", median(firsts))
        .with("main_ms", median(mains))
        .with("done_ms", median(ends))
}

/// From SIGTERM to the exit of the leader.
pub(crate) fn stop(form: Form, program: &Path) -> Report {
    let (mut stops, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mut cli, stdout) = form.start(program).expect("the CLI starts");
        first_line(&stdout).expect("a first line");
        let began = now_ns();
        let pid = Pid::from_raw(cli.child.id().try_into().expect("a pid"));
        kill(pid, Signal::SIGTERM).expect("a live child");
        let _status = cli.child.wait();
        stops.push(milliseconds(now_ns() - began));
        wait_until_gone(program);
        ends.push(milliseconds(now_ns() - began));
    }
    Report::default().with("stop_ms", median(stops)).with("gone_ms", median(ends))
}
