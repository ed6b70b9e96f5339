//! Checks that the caller's Tokio runtime can do what a run needs, before anything is started.
//!
//! Tokio has no function that returns the drivers of a runtime. It panics at the first use of a missing driver. The check
//! causes that on purpose, with a socket and a timer of its own, and catches the panic. The panic hook of the program may still
//! print Tokio's message.

use std::os::unix::net::UnixDatagram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::runtime::Handle;

/// Why the caller's Tokio runtime cannot drive an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokioError {
    /// The call was made outside a Tokio runtime.
    #[error("no Tokio runtime: call this inside one, such as a function with #[tokio::main], or after Runtime::enter")]
    NoRuntime,
    /// The Tokio runtime has no I/O driver.
    #[error("the Tokio runtime cannot watch sockets and pipes: build it with Builder::enable_io or enable_all")]
    NoIo,
    /// The Tokio runtime has no time driver.
    #[error("the Tokio runtime has no timers: build it with Builder::enable_time or enable_all")]
    NoTime,
    /// The Tokio runtime's clock is paused. Limits would pass at once while the agent's process works.
    #[error(
        "the clock of the Tokio runtime is paused (start_paused, or tokio::time::pause): an agent is a process that needs \
         real time; call tokio::time::resume first"
    )]
    PausedTime,
    /// The Tokio runtime is shutting down.
    #[error("the Tokio runtime is shutting down: nothing can be started in it")]
    ShuttingDown,
}

/// Returns an error unless the caller is inside a Tokio runtime with I/O, timers and a running clock.
pub(crate) fn check() -> Result<(), TokioError> {
    Handle::try_current().map_err(|_| TokioError::NoRuntime)?;
    check_io()?;
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| TokioError::NoTime)?;
    if is_paused() { Err(TokioError::PausedTime) } else { Ok(()) }
}

fn check_io() -> Result<(), TokioError> {
    // Without a free descriptor, nothing is known about Tokio. The start of the run reports the problem.
    let Ok(socket) = UnixDatagram::unbound() else { return Ok(()) };
    if socket.set_nonblocking(true).is_err() {
        return Ok(());
    }
    match catch_unwind(AssertUnwindSafe(|| tokio::net::UnixDatagram::from_std(socket))) {
        Err(_) => Err(TokioError::NoIo),
        // This is an error of Tokio. Errors of the system have a number.
        Ok(Err(error)) if error.raw_os_error().is_none() => Err(TokioError::ShuttingDown),
        Ok(_) => Ok(()),
    }
}

/// Whether Tokio's clock stands still while the system's clock advances.
fn is_paused() -> bool {
    let (tokio, system) = (tokio::time::Instant::now(), std::time::Instant::now());
    while std::time::Instant::now() <= system {
        std::hint::spin_loop();
    }
    tokio::time::Instant::now() <= tokio
}
