//! A storm of processes: a program that starts itself again, exits, and opens a session in the new process, in an endless
//! loop.
//!
//! All processes of a storm share the lock on their standard input, which the kernel releases with the last of them. So the
//! test knows whether any is left: a scan of the processes may miss each of them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The argument that makes this program a storm.
pub(crate) const PART: &str = "storm";

/// The file in the cell's directory that a storm has locked.
pub(crate) const LOCK: &str = "storm-lock";

/// The file that appears when a storm is running.
pub(crate) const UP: &str = "storm-up";

/// Counts the steps.
const STEP: &str = "STORM_STEP";

/// The number of steps before the storm creates this file.
const FIRST_STEPS: u32 = 20;

/// Returns shell that starts a storm.
pub(crate) fn shell() -> Result<String> {
    let program = std::env::current_exe()?;
    let program = program.display();
    Ok(format!(": > \"$CELL_DIR/{LOCK}\"\n'{program}' {PART} \"$CELL_DIR\" < \"$CELL_DIR/{LOCK}\" > /dev/null 2>&1 &"))
}

/// Runs one step of a storm.
pub(crate) fn main(cell: &Path) -> Result<()> {
    let step = std::env::var(STEP).ok().and_then(|step| step.parse().ok()).unwrap_or(0_u32);
    // It fails if the process leads its group already.
    _ = rustix::process::setsid();
    if step == 0 {
        File::from(std::io::stdin().as_fd().try_clone_to_owned()?).lock()?;
    }
    if step == FIRST_STEPS {
        std::fs::write(cell.join(UP), "")?;
    }
    let next = step.saturating_add(1).to_string();
    Command::new(std::env::current_exe()?).arg(PART).arg(cell).env(STEP, next).spawn().context("no next step")?;
    Ok(())
}

/// Whether a storm is running in this directory.
pub(crate) fn is_running(cell: &Path) -> bool {
    File::open(cell.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err())
}
