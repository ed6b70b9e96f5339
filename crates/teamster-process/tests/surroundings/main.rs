//! What the crate promises where the surroundings of the host are hostile: inherited signals, refused system calls, a missing
//! `/proc`, rights of a file.
//!
//! Each test starts this program again as a *host*, in the surroundings under test. The host starts one process tree and prints
//! what it sees.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a program of its own, whose output the tests read"
)]

/// A test by the name of its function.
macro_rules! trial {
    ($test:ident) => {
        crate::trial(stringify!($test), $test)
    };
}

/// The same with one that needs root.
macro_rules! trial_of_root {
    ($test:ident) => {
        crate::trial_of_root(stringify!($test), $test)
    };
}

mod handles;
mod host;
mod proc;
mod rights;
mod signals;

use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match *words {
        ["host", ..] => host::main(arguments.get(2..).unwrap()),
        ["hello"] => println!("main was reached"),
        ["attacker", whom] => rights::attack(whom),
        _ => {
            let trials = [signals::trials(), rights::trials(), handles::trials(), proc::trials()]
                .into_iter()
                .flatten()
                .collect();
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

/// A test that needs root, and says that it was not run where the user is another one.
fn trial_of_root(name: &'static str, test: fn()) -> Trial {
    trial(name, test).with_ignored_flag(!rustix::process::geteuid().is_root())
}

/// Runs a shell line in which `"$HOST"` is this program as a host, and gives what it has printed.
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

/// Whether the text has this line.
#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|one| one == line), "no line {line:?} in:\n{text}");
}

/// A tree of which some have left its session and lost their parents is killed to the last process. `run` gets the host as words
/// for a shell.
#[track_caller]
fn assert_tree_is_killed(run: impl Fn(&str) -> String) -> String {
    let place = tempfile::tempdir().unwrap();
    let lock = place.path().join("lock");
    // Everybody inherits descriptor 9, and the lock is free when nobody has it open any more.
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
