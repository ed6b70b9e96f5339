//! The process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Signal, getpid, kill_process};
use teamster_config::RestoreLog;

use crate::place::{Kind, request};

pub(crate) const PART: &str = "needs-an-entry";

/// After how many steps the process kills itself; 0 for never.
static STEPS_LEFT: AtomicU32 = AtomicU32::new(0);

/// Arguments: home, kind, name of the entry, number of the step to die after.
pub(crate) fn main(arguments: &[String]) {
    let [home, kind, name, die_after] = arguments else { panic!("{arguments:?}") };
    STEPS_LEFT.store(die_after.parse().unwrap(), Ordering::Relaxed);
    let home = Path::new(home);
    let journals = RestoreLog::in_directory(home.join("journals")).stepping(|_| {
        if STEPS_LEFT.load(Ordering::Relaxed) > 0 && STEPS_LEFT.fetch_sub(1, Ordering::Relaxed) == 1 {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
    });
    let merged = journals.merge(&request(home, Kind::named(kind), name)).unwrap();
    say("in");
    std::io::stdin().lock().read_line(&mut String::new()).unwrap();
    merged.restore().unwrap();
    say("out");
}

fn say(word: &str) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{word}").and_then(|()| stdout.flush()).unwrap();
}

/// Such a process, as the test has it. Killed when it is dropped.
pub(crate) struct Needing {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Needing {
    pub(crate) fn start(home: &Path, kind: Kind, name: &str, die_after: u32) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg(PART).arg(home).args([kind.name(), name, &die_after.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    /// Waits for what it says next; `false` if it died.
    pub(crate) fn says(&mut self, word: &str) -> bool {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(line.is_empty() || line.trim_end() == word, "{line}");
        !line.is_empty()
    }

    /// Waits for whatever it says next; `false` if it is over.
    pub(crate) fn says_anything(&mut self) -> bool {
        self.stdout.read_line(&mut String::new()).unwrap() > 0
    }

    /// Has it take its entry out, if it lives.
    pub(crate) fn let_go(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Needing {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
