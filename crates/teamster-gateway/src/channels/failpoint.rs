//! Places where a test ends the delivery loop, as a crash would.

use crate::failpoints::failpoint;

/// A place between two durable steps of a delivery.
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

impl Step {
    /// Ends the process here if a test of processes wants that.
    fn hit(self) {
        match self {
            Self::Claimed => {
                failpoint!("delivery.claimed");
            }
            Self::Started => {
                failpoint!("delivery.part_started");
            }
            Self::Sent => {
                failpoint!("delivery.part_sent");
            }
            Self::Confirmed => {
                failpoint!("delivery.part_confirmed");
            }
            Self::AllConfirmed => {
                failpoint!("delivery.all_confirmed");
            }
        }
    }
}

/// Stops nothing outside of tests.
#[cfg(not(test))]
#[derive(Clone, Debug, Default)]
pub(super) struct Failpoint;

#[cfg(not(test))]
impl Failpoint {
    #[expect(clippy::unused_async, reason = "it waits in tests")]
    pub(super) async fn reach(&self, step: Step) {
        step.hit();
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
    /// Stops when the step is reached for the time `number`, starting at 1.
    pub(super) fn at(step: Step, number: u32) -> Self {
        Self { stop_at: Some((step, number)), ..Self::default() }
    }

    pub(super) async fn reach(&self, step: Step) {
        use std::sync::atomic::Ordering;

        step.hit();
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
