//! Prints the logs of a test that is killed.
//!
//! A test runner sends SIGTERM to a test that takes too long, so that the test cannot report what it has waited for. A log of a
//! process that the test has started shows it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use signal_hook::consts::SIGTERM;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// The number of lines of each log that are printed.
const SHOWN_LINES: usize = 200;

/// The logs by the numbers of their values.
#[derive(Debug)]
struct Logs {
    next: u64,
    paths: BTreeMap<u64, PathBuf>,
}

static LOGS: Mutex<Logs> = Mutex::new(Logs { next: 0, paths: BTreeMap::new() });

static WATCHING: Once = Once::new();

/// A log whose end is printed on standard error if this process gets SIGTERM. Dropping the value removes it.
#[derive(Debug)]
pub struct LogIfKilled {
    number: u64,
}

impl LogIfKilled {
    /// Adds a log. The file may be created later.
    ///
    /// The process still ends by SIGTERM. If the signal cannot be handled, no log is printed.
    #[must_use = "dropping it removes the log"]
    pub fn new(path: &Path) -> Self {
        WATCHING.call_once(|| {
            if let Ok(signals) = Signals::new([SIGTERM]) {
                std::thread::spawn(move || print_at(signals));
            }
        });
        let mut logs = logs();
        let number = logs.next;
        logs.next += 1;
        logs.paths.insert(number, path.to_owned());
        Self { number }
    }
}

impl Drop for LogIfKilled {
    fn drop(&mut self) {
        logs().paths.remove(&self.number);
    }
}

fn logs() -> MutexGuard<'static, Logs> {
    LOGS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print_at(mut signals: Signals) {
    for signal in signals.forever() {
        for path in logs().paths.values() {
            // Nothing can be done if standard error is closed.
            _ = print(path);
        }
        _ = emulate_default_handler(signal);
    }
}

fn print(path: &Path) -> io::Result<()> {
    let text = String::from_utf8_lossy(&fs::read(path)?).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
    writeln!(io::stderr(), "the test is killed; the end of {}:\n{end}", path.display())
}
