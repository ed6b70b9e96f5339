//! A host that is stopped while its tree runs under a lease.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStdout, Command, Stdio as Pipe},
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process};
use teamster_process::{
    Frame, HostLease, Keeper, LeaseTime, Output, OutputReader, ProcessTree, Spawn, Stdin, Supervisor,
};

/// The deadline after each renewal.
const LEASE: Duration = Duration::from_secs(2);

/// How often the host renews.
const STEP: Duration = Duration::from_millis(100);

/// How long killing a tree may take after the deadline, on a busy machine.
const SOON: Duration = Duration::from_secs(5);

pub(crate) fn trials() -> Vec<Trial> {
    vec![trial!(the_tree_of_a_stopped_host_is_killed_at_the_end_of_its_lease_and_the_host_learns_of_it_later)]
}

/// The host: it renews its lease until its tree has ended, and then starts another one.
pub(crate) fn host() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let lease = HostLease::new().unwrap();
        lease.renew(LeaseTime::now() + LEASE);
        let supervisor = Supervisor::new();
        let (tree, mut stdout) = start(&supervisor, &lease, "setsid sleep 300 & echo $!; echo $$; wait").await;
        let mut pids = 0;
        while pids < 2 {
            stdout.fill().await.unwrap();
            while let Some(Frame::Line(line)) = stdout.next() {
                println!("{}", std::str::from_utf8(line).unwrap());
                pids += 1;
            }
        }
        let began = Instant::now();
        let mut is_announced = false;
        while tokio::time::timeout(STEP, tree.exited()).await.is_err() {
            lease.renew(LeaseTime::now() + LEASE);
            if began.elapsed() > LEASE * 2 && !is_announced {
                is_announced = true;
                println!("renewed");
            }
        }
        println!("{} expired: {}", tree.exited().await, tree.lease_expired());
        lease.renew(LeaseTime::now() + LEASE);
        let (next, _stdout) = start(&supervisor, &lease, "exit 4").await;
        println!("{} expired: {}", next.exited().await, next.lease_expired());
    });
}

async fn start(supervisor: &Supervisor, lease: &HostLease, script: &str) -> (ProcessTree, OutputReader) {
    let spawn = Spawn {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        cwd: "/".into(),
        stdin: Stdin::Null,
        output: Output::Stdout,
    };
    let keeper = Keeper::request(supervisor).await.unwrap().with_lease(Some(lease));
    let (tree, pipes) = keeper.spawn_until(&spawn, None, std::future::pending()).await.unwrap();
    (tree, OutputReader::new(pipes.stdout, 1 << 16))
}

struct Host {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Host {
    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

fn state(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().next().map(str::to_owned)
}

fn is_alive(pid: &str) -> bool {
    state(pid).is_some_and(|state| state != "Z" && state != "X")
}

fn the_tree_of_a_stopped_host_is_killed_at_the_end_of_its_lease_and_the_host_learns_of_it_later() {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program).arg("leased").stdout(Pipe::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut host = Host { child, lines };
    let pids = [host.line(), host.line()];
    assert_eq!(host.line(), "renewed");
    assert!(pids.iter().all(|pid| is_alive(pid)), "a renewed lease keeps the tree");
    host.signal(Signal::STOP);
    let stopped = Instant::now();
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(stopped.elapsed() < LEASE + SOON, "the tree of a stopped host lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(stopped.elapsed() + STEP * 5 > LEASE, "killed early: {:?}", stopped.elapsed());
    assert_eq!(state(&host.child.id().to_string()).unwrap(), "T", "the host is still stopped");
    host.signal(Signal::CONT);
    assert_eq!(host.line(), "was ended by SIGKILL expired: true");
    assert_eq!(host.line(), "exited with code 4 expired: false");
    assert!(host.child.wait().unwrap().success());
}
