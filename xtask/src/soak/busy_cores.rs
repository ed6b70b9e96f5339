//! Keeps the cores busy, by threads of this process: they end with it, however that ends.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The number of operations between two checks for the end.
const TURNS: u64 = 1_000_000;

/// Does work while a thread keeps each core busy.
pub(super) fn with_busy_cores<T>(work: impl FnOnce() -> T) -> T {
    /// Ends the threads, also if the work panics.
    struct End<'a>(&'a AtomicBool);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = End(&over);
        let cores = thread::available_parallelism().map_or(2, usize::from);
        for _ in 0..cores {
            scope.spawn(|| burn(&over));
        }
        work()
    })
}

/// Keeps a core busy.
fn burn(over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        black_box((0..TURNS).fold(0_u64, |sum, turn| sum.wrapping_mul(31).wrapping_add(turn)));
    }
}
