//! The load of the machine while a cell waits. The time limits hold for two runnable threads per core; with more threads,
//! they are extended.

use std::fs;
use std::thread::available_parallelism;
use std::time::Duration;

/// The number of runnable threads per core for which the time limits hold.
const BUSY: f64 = 2.0;

/// Samples of the number of runnable threads.
#[derive(Debug, Default)]
pub(crate) struct Load {
    samples: f64,
    runnable: f64,
}

impl Load {
    pub(crate) fn sample(&mut self) {
        // `0.20 0.18 0.12 3/80 11206`: three threads run or could run now.
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let runnable = load.split(' ').nth(3).and_then(|threads| threads.split_once('/')?.0.parse::<f64>().ok());
        if let Some(runnable) = runnable {
            self.samples += 1.0;
            self.runnable += runnable;
        }
    }

    /// Returns the time limit, extended in proportion to the load.
    pub(crate) fn stretch(&self, bound: Duration) -> Duration {
        let cores = available_parallelism().map_or(1, usize::from);
        let busy = f64::from(u32::try_from(cores).unwrap_or(1)) * BUSY;
        let crowded = if self.samples > 0.0 { self.runnable / self.samples / busy } else { 1.0 };
        bound.mul_f64(crowded.max(1.0))
    }
}
