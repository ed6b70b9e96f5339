//! A timer whose time may change at any moment.

use std::pin::Pin;

use tokio::time::{Instant, Sleep, sleep_until};

/// Waits for a time that moves with each line of output.
///
/// A time that moves away does not change the timer. When the timer fires too early, it is set to the time as it is then.
#[derive(Debug, Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Waits until this time. Cancel safe.
    pub(super) async fn reached(&mut self, due: Instant) {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.is_elapsed() || due < sleep.deadline() {
            sleep.as_mut().reset(due);
        }
        loop {
            sleep.as_mut().await;
            if sleep.deadline() >= due {
                return;
            }
            sleep.as_mut().reset(due);
        }
    }
}
