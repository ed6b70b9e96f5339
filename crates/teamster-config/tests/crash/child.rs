//! The process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use teamster_config::RestoreLog;

use crate::home::{Kind, request};

pub(crate) const ROLE: &str = "merge";

/// The time limit for a line of the process.
const LIMIT: Duration = Duration::from_secs(30);

/// The number of steps after which the process kills itself; 0 for never.
static STEPS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Merges an entry. Arguments: home, kind, name of the entry, number of the last step.
pub(crate) fn main(arguments: &[String]) {
    let [home, kind, name, die_after] = arguments else { panic!("{arguments:?}") };
    STEPS_LEFT.store(die_after.parse().unwrap(), Ordering::Relaxed);
    let home = Path::new(home);
    let restore_log = RestoreLog::in_directory(home.join("journals")).stepping(|_| {
        if STEPS_LEFT.load(Ordering::Relaxed) > 0 && STEPS_LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    });
    let merged = restore_log.merge(&request(home, Kind::named(kind), name)).unwrap();
    print_line("in");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    merged.restore().unwrap();
    print_line("out");
}

fn print_line(word: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).unwrap();
}

/// The child process. Dropping it kills the process.
pub(crate) struct MergingProcess {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    /// Its lines. The sender is dropped at the end of its output.
    lines: Receiver<String>,
}

impl MergingProcess {
    pub(crate) fn start(home: &Path, kind: Kind, name: &str, die_after: u32) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(ROLE).arg(home).args([kind.name(), name, &die_after.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, stdin, lines }
    }

    /// Waits for the next line. Returns false if the process died.
    pub(crate) fn prints(&mut self, word: &str) -> bool {
        let line = self.line();
        assert!(line.as_ref().is_none_or(|line| line == word), "{line:?}");
        line.is_some()
    }

    /// Waits for any line. Returns false at the end of the output.
    pub(crate) fn reads_a_line(&mut self) -> bool {
        self.line().is_some()
    }

    fn line(&self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it prints nothing"),
        }
    }

    /// Requests the process to remove its entry.
    pub(crate) fn end_merge(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for MergingProcess {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
