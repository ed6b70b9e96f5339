//! A command instead of a library: what it costs, from outside.
//!
//! `outside TASK FORM CLI RUNS PROGRAM ARG...` runs the command so many times at once, reads its standard output to the end,
//! and prints one line of JSON. The CPU time is the command's own, without its children.

#![expect(clippy::expect_used, clippy::print_stdout, clippy::panic, reason = "a measurement")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use teamster_benches::report::{Report, float, mebibytes, median, microseconds, milliseconds};
use teamster_benches::scenario::{READY, exit_ns};
use teamster_benches::stamps::{age_ns, text_of_line};
use teamster_benches::usage::{cpu_ns_of, now_ns, peak_rss_kib_of_children, wait_until_gone};

/// Starts and stops that are measured in one process.
const ROUNDS: usize = 7;

struct Tool {
    program: String,
    args: Vec<String>,
    cli: PathBuf,
}

/// What was observed of one run.
#[derive(Default)]
struct Observed {
    first_ns: u64,
    wall_ns: u64,
    end_ns: u64,
    cpu_ns: u64,
    texts: u64,
    ages: Vec<u64>,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("outside TASK FORM CLI RUNS PROGRAM ARG...");
    let (task, _form, cli) = (next(), next(), PathBuf::from(next()));
    let runs: usize = next().parse().expect("a number of runs");
    let tool = Tool { program: next(), args: args.collect(), cli };
    let report = match task.as_str() {
        "burst" => tool.burst(),
        "latency" => tool.latency(runs),
        "live" => tool.live(runs),
        "start" => tool.starts(),
        "stop" => tool.stops(),
        "hold" => Report::default().with("hold_ms", milliseconds(since_exit(&tool.cli, tool.run().end_ns))),
        task => panic!("a command does not measure {task}"),
    };
    println!("{}", report.line());
}

fn since_exit(cli: &Path, end_ns: u64) -> u64 {
    end_ns.saturating_sub(exit_ns(cli).expect("the CLI's exit"))
}

impl Tool {
    fn start(&self) -> (Child, BufReader<ChildStdout>) {
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the command starts");
        let stdout = child.stdout.take().expect("a pipe");
        (child, BufReader::with_capacity(256 * 1024, stdout))
    }

    /// Runs the command to its end.
    fn run(&self) -> Observed {
        let began = now_ns();
        let (mut child, mut stdout) = self.start();
        let mut observed = Observed::default();
        let mut line = Vec::new();
        while stdout.read_until(b'\n', &mut line).expect("a pipe") > 0 {
            if observed.first_ns == 0 {
                observed.first_ns = now_ns() - began;
            }
            if let Some(text) = text_of_line(&line) {
                observed.texts += 1;
                observed.ages.extend(age_ns(text));
            }
            line.clear();
        }
        let pid = child.id().cast_signed();
        waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).expect("a child");
        observed.end_ns = now_ns();
        observed.wall_ns = observed.end_ns - began;
        observed.cpu_ns = cpu_ns_of(pid).unwrap_or_default();
        let status = child.wait().expect("a child");
        assert!(status.success(), "{} {status}", self.program);
        observed
    }

    fn burst(&self) -> Report {
        let observed = self.run();
        Report::default()
            .with("cpu_us", microseconds(observed.cpu_ns))
            .with("wall_ms", milliseconds(observed.wall_ns))
            .with("events", float(observed.texts))
            .with("peak_mib", mebibytes(peak_rss_kib_of_children()))
    }

    fn latency(&self, runs: usize) -> Report {
        let observed: Vec<Observed> = thread::scope(|scope| {
            let threads: Vec<_> = (0..runs).map(|_| scope.spawn(|| self.run())).collect();
            threads.into_iter().map(|thread| thread.join().expect("a reader")).collect()
        });
        let cpu = observed.iter().map(|observed| observed.cpu_ns).sum();
        let ages: Vec<Vec<u64>> = observed.into_iter().map(|observed| observed.ages).collect();
        Report::default().with_latencies(&ages).with("cpu_us", microseconds(cpu))
    }

    fn starts(&self) -> Report {
        let observed: Vec<Observed> = (0..ROUNDS).map(|_| self.run()).collect();
        let done = since_exit(&self.cli, observed.last().map_or(0, |observed| observed.end_ns));
        Report::default()
            .with("cold_ms", median(observed.iter().map(|observed| milliseconds(observed.first_ns)).collect()))
            .with("done_ms", milliseconds(done))
            .with("wall_ms", median(observed.iter().map(|observed| milliseconds(observed.wall_ns)).collect()))
    }

    /// From SIGTERM to the exit of the command, after the last delta.
    fn stops(&self) -> Report {
        let (mut stops, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (mut child, mut stdout) = self.start();
            wait_until_ready(&mut stdout);
            let began = now_ns();
            kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).expect("a live child");
            let _rest = stdout.read_to_end(&mut Vec::new());
            let _status = child.wait();
            stops.push(milliseconds(now_ns() - began));
            wait_until_gone(&self.cli);
            ends.push(milliseconds(now_ns() - began));
        }
        Report::default().with("stop_ms", median(stops)).with("gone_ms", median(ends))
    }

    /// Runs that stay live until standard input ends. A line on standard output reports that all are live.
    fn live(&self, runs: usize) -> Report {
        let began = now_ns();
        let mut started: Vec<_> = (0..runs).map(|_| self.start()).collect();
        for (_, stdout) in &mut started {
            wait_until_ready(stdout);
        }
        let took = now_ns() - began;
        println!("ready");
        std::io::stdout().flush().expect("standard output");
        let _end = std::io::stdin().read_to_end(&mut Vec::new());
        for (child, _) in &started {
            let _gone = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        }
        for (child, stdout) in &mut started {
            let _rest = stdout.read_to_end(&mut Vec::new());
            let _status = child.wait();
        }
        Report::default().with("ready_ms", milliseconds(took)).with("runs", float(runs as u64))
    }
}

fn wait_until_ready(stdout: &mut impl std::io::BufRead) {
    let mut line = Vec::new();
    while stdout.read_until(b'\n', &mut line).expect("a pipe") > 0 {
        if text_of_line(&line) == Some(READY) {
            return;
        }
        line.clear();
    }
}
