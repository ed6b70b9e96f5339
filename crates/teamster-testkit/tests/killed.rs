//! A test that is killed prints the logs of what it has started.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use teamster_testkit::killed::LogIfKilled;

/// The variable with the directory of the logs, in the process that is killed.
const DIRECTORY: &str = "TEAMSTER_TEST_KILLED";

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn a_killed_test_prints_the_logs_that_it_still_has() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let dropped = LogIfKilled::new(&Path::new(&directory).join("one"));
        let _kept = LogIfKilled::new(&Path::new(&directory).join("two"));
        drop(dropped);
        println!("ready");
        std::thread::sleep(LIMIT);
        panic!("it was not killed");
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        fs::write(directory.path().join(name), format!("early\nlast line of {name}\n")).unwrap();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_killed_test_prints_the_logs_that_it_still_has", "--nocapture"]);
    command.env(DIRECTORY, directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (ready, is_ready) = channel();
    std::thread::spawn(move || {
        let lines = BufReader::new(stdout).lines().map_while(Result::ok);
        lines.filter(|line| line.contains("ready")).for_each(|line| _ = ready.send(line));
    });
    is_ready.recv_timeout(LIMIT).expect("it waits");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let (text, printed) = channel();
    std::thread::spawn(move || {
        let mut all = String::new();
        _ = stderr.read_to_string(&mut all);
        _ = text.send(all);
    });
    let printed = printed.recv_timeout(LIMIT).expect("it ends");
    assert!(printed.contains("early\nlast line of two"), "{printed}");
    assert!(!printed.contains("last line of one"), "{printed}");
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
