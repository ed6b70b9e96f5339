//! Tests of the crate in hostile environments of the host: inherited signals, refused system calls,
//! a missing `/proc`, setuid files.
//!
//! Each test starts this program again as a *host*, in the environment under test. The host starts
//! one process tree and prints what it observes.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a program of its own, whose output the tests read"
)]

/// Defines a test with the name of its function.
macro_rules! trial {
    ($test:ident) => {
        crate::trial(stringify!($test), $test)
    };
}

/// Defines a test that needs root.
macro_rules! trial_of_root {
    ($test:ident) => {
        crate::trial_of_root(stringify!($test), $test)
    };
}

mod handles;
mod host;
mod lease;
mod limits;
mod proc;
mod rights;
mod signals;

use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Signal, getpid, kill_process};

/// The time limit of a host. The tests wait for its end.
const LIMIT: Duration = Duration::from_secs(45);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    if let ["host" | "leased" | "attacker", ..] = *words {
        // Some surroundings permit no thread.
        _ = std::thread::Builder::new().spawn(|| {
            std::thread::sleep(LIMIT);
            kill_process(getpid(), Signal::KILL)
        });
    }
    match *words {
        ["host", ..] => host::main(arguments.get(2..).unwrap()),
        ["leased"] => lease::host(),
        ["register", ledger] => limits::register(ledger),
        ["hello"] => println!("main was reached"),
        ["attacker", program] => rights::attack(program),
        _ => {
            let trees = [signals::trials(), rights::trials(), handles::trials(), proc::trials()];
            let trials = trees.into_iter().chain([lease::trials(), limits::trials()]).flatten().collect();
            return libtest_mimic::run(&Arguments::from_args(), trials).exit_code();
        }
    }
    ExitCode::SUCCESS
}

/// A test.
fn trial(name: &'static str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// A test that needs root; it is reported as ignored for other users.
fn trial_of_root(name: &'static str, test: fn()) -> Trial {
    trial(name, test).with_ignored_flag(!rustix::process::geteuid().is_root())
}

/// Runs a shell command in which `"$HOST"` is this program as a host, and returns its output.
fn host_in(shell: &str) -> String {
    let output = Command::new("/bin/sh")
        .args(["-c", shell])
        .env("HOST", std::env::current_exe().unwrap())
        .env_remove("NEXTEST")
        .output()
        .unwrap();
    text_of(&output)
}

fn text_of(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    format!("{}({})", String::from_utf8_lossy(&text), output.status)
}

/// Asserts that the text has this line.
#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "no line {line:?} in:\n{text}");
}

/// Asserts that a tree is killed completely although some members left its session and lost their
/// parents. `run` gets the host as a shell command.
#[track_caller]
fn assert_tree_is_killed(run: impl Fn(&str) -> String) -> String {
    let place = tempfile::tempdir().unwrap();
    let lock = place.path().join("lock");
    // All members inherit descriptor 9, so the lock is free once all of them are gone.
    let script = format!(
        "exec 9>{}; flock 9; setsid sleep 300 >/dev/null 2>&1 & setsid sh -c \"sleep 301 & sleep 302\" >/dev/null 2>&1 & \
         (env -i setsid sleep 303 >/dev/null 2>&1 &); exit 3",
        lock.display()
    );
    let seen = run(&format!("\"$HOST\" host '{script}' lock={}", lock.display()));
    assert_line(&seen, "exit: exited with code 3");
    assert_line(&seen, "survivors: 0 in time: true");
    assert_line(&seen, "lock is free: true");
    seen
}
