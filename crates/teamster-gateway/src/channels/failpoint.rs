//! Failpoints: steps at which a test ends the delivery loop, as a crash would.

#[cfg(not(test))]
use crate::failpoints::failpoint;

/// A point between two durable steps of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The delivery is claimed.
    Claimed,
    /// The start of a part is durable, and it is not sent.
    Started,
    /// The service has the part, and that is not durable.
    Sent,
    /// The confirmation of a part is durable.
    Confirmed,
    /// All parts are confirmed, and the end of the delivery is not durable.
    AllConfirmed,
}

/// Outside of unit tests, the points at which the whole process may end.
#[cfg(not(test))]
#[derive(Clone, Debug, Default)]
pub(super) struct Failpoint;

#[cfg(not(test))]
impl Failpoint {
    /// Stops nowhere.
    pub(super) const fn none() -> Self {
        Self
    }

    #[expect(clippy::unused_async, reason = "it waits in tests")]
    pub(super) async fn reach(&self, step: Step) {
        match step {
            Step::Claimed => {
                failpoint!("delivery.claimed");
            }
            Step::Started => {
                failpoint!("delivery.started");
            }
            Step::Sent => {
                failpoint!("delivery.sent");
            }
            Step::Confirmed => {
                failpoint!("delivery.confirmed");
            }
            Step::AllConfirmed => {
                failpoint!("delivery.all_confirmed");
            }
        }
    }
}

/// Stops at a step forever, so that the test can drop the loop there.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(super) struct Failpoint {
    stop_at: Option<(Step, u32)>,
    reached: std::sync::Arc<(std::sync::atomic::AtomicU32, tokio::sync::Notify)>,
}

#[cfg(test)]
impl Failpoint {
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Stops when the step is reached for the time `number`, starting at 1.
    pub(super) fn at(step: Step, number: u32) -> Self {
        Self { stop_at: Some((step, number)), ..Self::default() }
    }

    pub(super) async fn reach(&self, step: Step) {
        use std::sync::atomic::Ordering;

        let Some((wanted, number)) = self.stop_at else { return };
        if step == wanted && self.reached.0.fetch_add(1, Ordering::SeqCst) + 1 == number {
            self.reached.1.notify_one();
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the loop has stopped.
    pub(super) async fn stopped(&self) {
        self.reached.1.notified().await;
    }
}
