//! Waits for the runs and sessions of a runtime, or ends them.

use std::time::Duration;

use tokio::time::timeout;

use super::Runtime;
use crate::live::ShutdownReport;

/// The time after an abort in which helper processes end, beyond the grace periods of the request.
const ABORT_MARGIN: Duration = Duration::from_secs(10);

impl Runtime {
    /// Shuts the runtime down: rejects new runs, sessions and turns, ends what waits in the queue, closes idle sessions, and
    /// interrupts the rest. What has not ended after the grace period is aborted: its process tree is killed. Returns when
    /// nothing runs any more, and reports what was stopped and what is left.
    ///
    /// Sessions and runs that other tasks hold end too. Their streams end with `done` and the error `ABORTED`. New work is
    /// rejected with [`RunError::ShutDown`](crate::RunError::ShutDown) and [`SendError::ShutDown`](crate::SendError::ShutDown)
    /// from now on, also if the call is dropped. Several tasks can call it, and it can be repeated.
    ///
    /// Call it before the Tokio runtime ends, for example after SIGTERM:
    ///
    /// ```no_run
    /// # async fn example(runtime: teamster::Runtime) {
    /// use std::time::Duration;
    ///
    /// let report = runtime.shutdown(Duration::from_secs(5)).await;
    /// for run in &report.aborted {
    ///     eprintln!("{} {} did not stop in time and was killed", run.agent, run.run_id);
    /// }
    /// # }
    /// ```
    ///
    /// After the grace period it takes at most twice the [`grace`](crate::request::Limits::grace) of the requests, and 10
    /// seconds. What has not ended then is [`unfinished`](ShutdownReport::unfinished).
    pub async fn shutdown(&self, grace: Duration) -> ShutdownReport {
        let mut report = self.live.interrupt();
        if let Some(pool) = &self.warm_pool {
            pool.close();
        }
        let mut ended = std::pin::pin!(async { tokio::join!(self.drivers.wait(), self.warm_processes.wait()) });
        if timeout(grace, &mut ended).await.is_err() {
            let (aborted, run_grace) = self.live.abort();
            report.aborted = aborted;
            let limit = run_grace.saturating_mul(2).saturating_add(ABORT_MARGIN);
            if timeout(limit, ended).await.is_err() {
                report.unfinished = self.live.live();
            }
        }
        report.left_processes = self.live.take_left();
        report
    }

    /// Waits until every run and session has ended and all their resources are released, including runs in the queue. It ends
    /// nothing and rejects nothing: a session that another task holds open keeps it waiting ([`shutdown`](Self::shutdown)
    /// closes it). Idle processes of the warm pool do not count.
    ///
    /// Dropping a [`Run`](crate::Run) terminates its process tree. Before the Tokio runtime ends, wait for this call or for
    /// [`shutdown`](Self::shutdown), so that trees can exit within the grace period. Otherwise they are killed.
    pub async fn wait_idle(&self) {
        self.drivers.wait().await;
    }
}
