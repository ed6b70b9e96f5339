//! A storm: a program that starts itself anew, exits, and opens a session in the new process, without end.
//!
//! All processes of a storm share the lock on their standard input, which the system frees with the last of them. That is how
//! the test knows whether any is left: a look at the list of processes may miss each of them.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// The argument that makes this program a storm.
pub(crate) const PART: &str = "storm";

/// The file in a cell's place that a storm has locked.
pub(crate) const LOCK: &str = "storm-lock";

/// The file that appears when a storm blows.
pub(crate) const UP: &str = "storm-up";

/// Counts the steps.
const STEP: &str = "STORM_STEP";

/// Steps before the storm says that it blows.
const FIRST_STEPS: u32 = 20;

/// Lines of shell that start a storm.
pub(crate) fn shell() -> Result<String> {
    let program = std::env::current_exe()?;
    let program = program.display();
    Ok(format!(": > \"$PLACE/{LOCK}\"\n'{program}' {PART} \"$PLACE\" < \"$PLACE/{LOCK}\" > /dev/null 2>&1 &"))
}

/// One step of a storm.
pub(crate) fn main(place: &Path) -> Result<()> {
    let step = std::env::var(STEP).ok().and_then(|step| step.parse().ok()).unwrap_or(0_u32);
    // It may lead its group already.
    _ = rustix::process::setsid();
    if step == 0 {
        File::from(std::io::stdin().as_fd().try_clone_to_owned()?).lock()?;
    }
    if step == FIRST_STEPS {
        std::fs::write(place.join(UP), "")?;
    }
    let next = step.saturating_add(1).to_string();
    Command::new(std::env::current_exe()?).arg(PART).arg(place).env(STEP, next).spawn().context("no next step")?;
    Ok(())
}

/// Whether a storm blows in this place.
pub(crate) fn blows(place: &Path) -> bool {
    File::open(place.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err())
}
