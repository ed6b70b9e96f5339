//! How many want to run at a time while a cell waits: a promise for two busy cores is none for a machine that has much more
//! to do.

use std::fs;
use std::thread::available_parallelism;
use std::time::Duration;

/// What a busy core has to run at a time.
const BUSY: f64 = 2.0;

/// Looks at the machine's load, one after another.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    looks: f64,
    runnable: f64,
}

impl Crowd {
    pub(crate) fn look(&mut self) {
        // `0.20 0.18 0.12 3/80 11206`: three threads run or could run now.
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let runnable = load.split(' ').nth(3).and_then(|threads| threads.split_once('/')?.0.parse::<f64>().ok());
        if let Some(runnable) = runnable {
            self.looks += 1.0;
            self.runnable += runnable;
        }
    }

    /// The bound, and as much more as there was more to run than on busy cores.
    pub(crate) fn stretch(&self, bound: Duration) -> Duration {
        let cores = available_parallelism().map_or(1, usize::from);
        let busy = f64::from(u32::try_from(cores).unwrap_or(1)) * BUSY;
        let crowded = if self.looks > 0.0 { self.runnable / self.looks / busy } else { 1.0 };
        bound.mul_f64(crowded.max(1.0))
    }
}
