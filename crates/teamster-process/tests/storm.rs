//! A storm is a program that endlessly forks, exits in the parent and opens a session in the child.
//! Each of its processes lives for less than a millisecond, and none has a parent in the tree. It
//! must die with its tree.
//!
//! This program is both the test runner and the storm. All processes of a storm hold its stdout, so
//! the end of that stream shows that the last one is gone, which no process list could show.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::{
    io::Write as _,
    process::ExitCode,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Pid, Signal, kill_process};
use teamster_process::{Output, OutputReader, ProcessTree, Spawn, Stdin, Supervisor};

/// The number of concurrent storms, and whether they ignore SIGTERM.
const PART: &str = "STORM";

/// The longest time that termination may take beyond its grace period, also on a busy machine.
const SOON: Duration = Duration::from_secs(8);

/// The time after which a storm exits by itself.
const LIFETIME: Duration = Duration::from_secs(30);

/// The number of forks after which a storm reports that it runs.
const FIRST_STEPS: u32 = 50;

fn main() -> ExitCode {
    if let Ok(part) = std::env::var(PART) {
        blow(&part);
    }
    let trial = |name, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("a_storm_dies_with_its_tree", dies_with_its_tree),
        trial("a_storm_that_ignores_sigterm_dies_after_the_grace_period", dies_after_the_grace_period),
        trial("three_storms_at_once_die_with_a_dropped_tree", die_with_a_dropped_tree),
        trial("a_storm_whose_keeper_is_killed_dies", dies_without_its_keeper),
        trial("a_storm_without_helpers_is_killed_or_given_up_in_time", is_given_up_without_helpers),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

#[expect(unsafe_code, reason = "no safe call forks")]
fn blow(part: &str) -> ! {
    let (storms, ignores) = part.split_once(' ').unwrap();
    if ignores == "true" {
        // SAFETY: ignoring a signal installs no handler.
        unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
    }
    // SAFETY: this process has one thread, and so has each child.
    let fork = || unsafe { libc::fork() };
    for _ in 1..storms.parse::<u32>().unwrap() {
        if fork() == 0 {
            break;
        }
    }
    let began = Instant::now();
    for step in 0_u32.. {
        if began.elapsed() > LIFETIME {
            std::process::exit(0);
        }
        match fork() {
            // The process limit is reached.
            -1 => std::thread::yield_now(),
            0 => _ = rustix::process::setsid(),
            // SAFETY: it ends this process at once, without exit handlers.
            _ => unsafe { libc::_exit(0) },
        }
        if step == FIRST_STEPS {
            _ = std::io::stdout().write_all(b"x\n");
        }
    }
    std::process::exit(1)
}

struct Storm {
    supervisor: Supervisor,
    tree: ProcessTree,
    stdout: OutputReader,
}

/// Starts a tree with this many storms, and waits until all run.
async fn storm(storms: u32, ignores_sigterm: bool) -> Storm {
    let spawn = Spawn {
        program: std::env::current_exe().unwrap(),
        args: Vec::new(),
        env: [(PART.into(), format!("{storms} {ignores_sigterm}").into())].into(),
        cwd: "/".into(),
        stdin: Stdin::Null,
        output: Output::Stdout,
    };
    let supervisor = Supervisor::new();
    let (tree, pipes) = ProcessTree::spawn(&supervisor, &spawn, None).await.unwrap();
    let mut stdout = OutputReader::new(pipes.stdout, 1024);
    let mut blowing = 0;
    while blowing < storms {
        assert!(stdout.fill().await.unwrap() > 0, "the storm exited by itself");
        blowing += u32::try_from(std::iter::from_fn(|| stdout.next().map(|_| ())).count()).unwrap();
    }
    Storm { supervisor, tree, stdout }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

/// Returns whether all processes of the storm are gone.
fn is_over(stdout: &mut OutputReader) -> bool {
    stdout.fill_now().unwrap() == Some(0)
}

async fn ends(mut storm: Storm, grace: Duration) {
    let began = Instant::now();
    assert_eq!(storm.tree.terminate(grace).await, []);
    assert!(is_over(&mut storm.stdout), "the end was reported while the storm ran");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

fn dies_with_its_tree() {
    run(async {
        for _ in 0..4 {
            ends(storm(1, false).await, Duration::from_mins(1)).await;
        }
    });
}

fn dies_after_the_grace_period() {
    run(async {
        for _ in 0..4 {
            ends(storm(1, true).await, Duration::from_millis(100)).await;
        }
    });
}

fn die_with_a_dropped_tree() {
    run(async {
        let Storm { tree, mut stdout, supervisor } = storm(3, true).await;
        drop(tree);
        tokio::time::timeout(SOON, async { while stdout.fill().await.unwrap() > 0 {} }).await.unwrap();
        drop(supervisor);
    });
}

fn dies_without_its_keeper() {
    run(async {
        let storm = storm(1, true).await;
        let keeper = Pid::from_raw(storm.tree.keeper().cast_signed()).unwrap();
        kill_process(keeper, Signal::KILL).unwrap();
        tokio::time::timeout(SOON, storm.tree.exited()).await.unwrap();
        ends(storm, Duration::ZERO).await;
    });
}

/// No helper adopts the storm's orphans any more, so few of its processes are ever seen alive.
fn is_given_up_without_helpers() {
    run(async {
        let storm = storm(3, true).await;
        let keeper = storm.tree.keeper();
        let stat = std::fs::read_to_string(format!("/proc/{keeper}/stat")).unwrap();
        let supervisor = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
        // Stopped first, so that it does not react to the death of the keeper.
        for (pid, signal) in
            [(supervisor, Signal::STOP), (keeper.cast_signed(), Signal::KILL), (supervisor, Signal::KILL)]
        {
            kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        }
        let began = Instant::now();
        storm.tree.terminate(Duration::ZERO).await;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    });
}
