//! Checks that the caller's Tokio runtime can do what a run needs, before anything is started.
//!
//! Tokio has no function that says which drivers a runtime has: without one it panics where the driver is first needed. The
//! check does that on purpose, with a socket and a timer of its own, and catches the panic. Tokio's message may still be
//! printed by the panic hook of the program.

use std::os::unix::net::UnixDatagram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use tokio::runtime::Handle;

/// Why the Tokio runtime that the caller is in cannot drive an agent.
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
    /// The Tokio runtime's clock is paused, so that limits would pass at once while the agent's process works.
    #[error(
        "the clock of the Tokio runtime is paused (start_paused, or tokio::time::pause): an agent is a process that needs \
         real time; call tokio::time::resume first"
    )]
    PausedTime,
    /// The Tokio runtime is shutting down.
    #[error("the Tokio runtime is shutting down: nothing can be started in it")]
    ShuttingDown,
}

/// Returns an error unless this is called inside a Tokio runtime that has I/O, timers and a clock that runs.
pub(crate) fn check() -> Result<(), TokioError> {
    Handle::try_current().map_err(|_| TokioError::NoRuntime)?;
    check_io()?;
    catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).map_err(|_| TokioError::NoTime)?;
    if is_paused() { Err(TokioError::PausedTime) } else { Ok(()) }
}

fn check_io() -> Result<(), TokioError> {
    // Without a descriptor to spare nothing is known of Tokio. The start of the run reports that.
    let Ok(socket) = UnixDatagram::unbound() else { return Ok(()) };
    if socket.set_nonblocking(true).is_err() {
        return Ok(());
    }
    match catch_unwind(AssertUnwindSafe(|| tokio::net::UnixDatagram::from_std(socket))) {
        Err(_) => Err(TokioError::NoIo),
        // Tokio's own error; errors of the system have a number.
        Ok(Err(error)) if error.raw_os_error().is_none() => Err(TokioError::ShuttingDown),
        Ok(_) => Ok(()),
    }
}

/// Whether Tokio's clock stands still while the system's goes on.
fn is_paused() -> bool {
    let (tokio, system) = (tokio::time::Instant::now(), std::time::Instant::now());
    while std::time::Instant::now() <= system {
        std::hint::spin_loop();
    }
    tokio::time::Instant::now() <= tokio
}
