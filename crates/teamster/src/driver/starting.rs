//! Waits before a process runs: for a place in the queue, and for the start of the process.

use teamster_agents::transcript::Cause;
use teamster_types::event::{Event, Failure, Queued};
use teamster_types::request::Limits;
use tokio::time::{Duration, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::event_sink::EventSink;
use super::failures::deadline_exceeded;
use crate::permits::Ticket;
use crate::turns::handle::RunHandle;

/// The interval between two checks of the position in the queue.
const POSITION_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum time in which a cancelled start must kill the processes that it has started. Only a start whose helper
/// processes are all stopped or killed takes that long.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);

/// Waits until a turn is admitted, and emits its position meanwhile. Returns false if the caller stops it before that.
pub(super) async fn wait_in_queue(ticket: &mut Ticket, sink: &mut EventSink, run: &RunHandle) -> bool {
    let mut last = None;
    loop {
        if let Some(position) = ticket.position().filter(|position| last != Some(*position)) {
            last = Some(position);
            tracing::debug!(position, "the turn waits in the queue");
            sink.emit(Event::Queued(Queued::new(position)));
        }
        sink.queue.flush();
        tokio::select! {
            biased;
            () = run.stopped() => return false,
            () = ticket.granted() => return true,
            () = sleep(POSITION_INTERVAL) => {}
        }
    }
}

/// Waits for the start of a process. An interrupt or an abort lets the start complete within the grace period, so that the
/// process is ended like any other. A start that takes longer is cancelled, and kills what it has started.
pub(super) async fn start_within<T>(
    start: impl AsyncFnOnce(&CancellationToken) -> Result<T, Failure>,
    limits: &Limits,
    run: &RunHandle,
) -> Result<T, Cause> {
    let cancel = CancellationToken::new();
    let mut start = std::pin::pin!(start(&cancel));
    let cause = tokio::select! {
        biased;
        started = &mut start => return started.map_err(Cause::Failed),
        () = run.stopped() => match timeout(limits.grace, &mut start).await {
            Ok(started) => return started.map_err(Cause::Failed),
            Err(_) => Cause::Aborted,
        },
        () = sleep(limits.deadline), if !limits.deadline.is_zero() => Cause::Failed(deadline_exceeded(limits)),
    };
    cancel.cancel();
    // A process that was ready at the last moment is ended like any other.
    timeout(CANCEL_LIMIT, start).await.ok().and_then(Result::ok).ok_or(cause)
}

/// Waits for a future while the consumer takes events. Returns `None` if the caller stops the run meanwhile.
pub(super) async fn deliver_while<T>(
    future: impl Future<Output = T>,
    sink: &mut EventSink,
    run: &RunHandle,
) -> Option<T> {
    sink.queue.flush();
    tokio::select! {
        biased;
        () = run.stopped() => None,
        output = future => Some(output),
    }
}
