//! Log lines on standard error that wait while a line of the output is open on the same terminal.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of bytes that wait. More are written at once.
const MAX_BYTES: usize = 256 << 10;

/// The lines that wait; `None` if lines are written at once.
static HELD: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Standard error as the target of log lines.
pub(crate) struct LogStream;

impl Write for LogStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut *held() {
            Some(waiting) if waiting.len() + bytes.len() <= MAX_BYTES => waiting.extend_from_slice(bytes),
            Some(waiting) => {
                let mut to = io::stderr().lock();
                to.write_all(&std::mem::take(waiting))?;
                to.write_all(bytes)?;
            }
            None => io::stderr().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the lines that wait. Later ones are written at once.
pub(crate) fn release() {
    if let Some(waiting) = held().take() {
        // A closed standard error must not cause a failure.
        _ = io::stderr().write_all(&waiting);
    }
}

/// Holds log lines while the output has an open line.
pub(super) struct HeldLogs {
    is_line_open: Arc<AtomicBool>,
}

impl HeldLogs {
    /// Starts to hold lines, if output and log are on a terminal. Returns also the stream for the output.
    pub(super) fn start(out: Box<dyn Write + Send>) -> (Option<Self>, Box<dyn Write + Send>) {
        if !(io::stdout().is_terminal() && io::stderr().is_terminal()) {
            return (None, out);
        }
        *held() = Some(Vec::new());
        let is_line_open = Arc::new(AtomicBool::new(false));
        (Some(Self { is_line_open: Arc::clone(&is_line_open) }), Box::new(Tracked { out, is_line_open }))
    }

    /// Returns the lines that can be written now, if there are any.
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        if self.is_line_open.load(Ordering::Acquire) {
            return None;
        }
        held().as_mut().map(std::mem::take).filter(|waiting| !waiting.is_empty())
    }
}

impl Drop for HeldLogs {
    fn drop(&mut self) {
        release();
    }
}

/// The stream of the output, which notes whether its last line is open.
struct Tracked {
    out: Box<dyn Write + Send>,
    is_line_open: Arc<AtomicBool>,
}

impl Write for Tracked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        if let Some(last) = bytes.get(..written).and_then(<[u8]>::last) {
            self.is_line_open.store(*last != b'\n', Ordering::Release);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn held() -> MutexGuard<'static, Option<Vec<u8>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
