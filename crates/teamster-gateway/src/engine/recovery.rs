//! The start after a crash: the turns of the previous process continue when its agents have ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use teamster::supervision::ledger::{SkipReason, Sweep};
use teamster_store::{Json, WorkerId};
use tokio::time::sleep;

use super::gateway::Shared;
use crate::error::GatewayError;

/// How long a start waits for the agents of a killed process. A keeper ends its agent within two seconds.
const AGENTS_END: Duration = Duration::from_secs(10);

/// The interval of checks whether these agents have ended.
const AGENTS_CHECK: Duration = Duration::from_millis(20);

/// The interval of these checks after the start.
const LATE_CHECK: Duration = Duration::from_millis(500);

/// The agents of a killed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agents {
    /// None of them runs.
    Ended,
    /// Their keepers end them.
    Ending(usize),
    /// They cannot be searched, or cannot be killed.
    Unknown,
}

/// The previous process of this host, whose leases are kept because its agents may run.
#[derive(Debug)]
pub(super) struct UnrecoveredWorker {
    worker: WorkerId,
    since: Instant,
}

/// Expires the leases of the previous process of this host, so that its turns continue at once.
///
/// If its agents may still run after [`AGENTS_END`], the leases are kept, and returned for [`recover_later`]: two agents must
/// not work on one turn.
///
/// The caller has made sure that no other gateway uses the host's data directory.
pub(super) async fn recover(shared: &Shared) -> Result<Option<UnrecoveredWorker>, GatewayError> {
    let since = Instant::now();
    let has_ended = have_ended(shared, since + AGENTS_END, AGENTS_CHECK).await;
    let key = format!("worker:{}", shared.host.as_str());
    let mut unrecovered = None;
    if let Some(state) = shared.store.channel_state(key.clone()).await? {
        let worker = WorkerId::new(state.to::<String>()?);
        if has_ended {
            expire(shared, worker).await?;
        } else {
            tracing::warn!("agents of the previous process may still run; its turns continue when they have ended");
            unrecovered = Some(UnrecoveredWorker { worker, since });
        }
    }
    shared.store.set_channel_state(key, Json::of(&shared.worker.as_str())?).await?;
    Ok(unrecovered)
}

/// Expires the leases of the previous process when its agents have ended. Without that, the leases end by their time; its
/// keepers kill the agents before.
pub(super) async fn recover_later(shared: &Shared, unrecovered: UnrecoveredWorker) {
    let UnrecoveredWorker { worker, since } = unrecovered;
    if have_ended(shared, since + shared.config.timing.lease, LATE_CHECK).await
        && let Err(error) = expire(shared, worker).await
    {
        tracing::warn!(%error, "leases of the previous process were not released; they expire by themselves");
    }
}

async fn expire(shared: &Shared, worker: WorkerId) -> Result<(), GatewayError> {
    let expired = shared.store.expire_leases(worker, shared.clock.now()).await?;
    if expired > 0 {
        tracing::info!(expired, "turns and deliveries of the previous process continue");
        shared.work.notify_one();
        shared.deliveries.notify_one();
    }
    Ok(())
}

/// Waits until no agent of a killed process runs. Returns false at the time limit, or if that cannot be known.
async fn have_ended(shared: &Shared, limit: Instant, interval: Duration) -> bool {
    loop {
        let runtime = Arc::clone(&shared.runtime);
        let swept = tokio::task::spawn_blocking(move || runtime.ledger().sweep()).await;
        let agents = match swept {
            Ok(sweep) => {
                for problem in &sweep.problems {
                    tracing::warn!(%problem, "processes of a stopped gateway could not be searched");
                }
                agents(&sweep)
            }
            Err(error) => {
                tracing::error!(%error, "the search for processes of a stopped gateway has failed");
                Agents::Unknown
            }
        };
        match agents {
            Agents::Ended => return true,
            Agents::Unknown => return false,
            Agents::Ending(runs) if Instant::now() > limit => {
                tracing::warn!(runs, "agents of a stopped gateway have not ended in time");
                return false;
            }
            Agents::Ending(_) => sleep(interval).await,
        }
    }
}

fn agents(sweep: &Sweep) -> Agents {
    let is_alive = |reason: &SkipReason| matches!(reason, SkipReason::Alive(_));
    if !sweep.problems.is_empty() || sweep.skipped.iter().any(|skipped| is_alive(&skipped.reason)) {
        Agents::Unknown
    } else if sweep.ending > 0 {
        Agents::Ending(sweep.ending)
    } else {
        Agents::Ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_ended_only_if_all_were_found_and_none_runs() {
        let with = |change: fn(&mut Sweep)| {
            let mut sweep = Sweep::default();
            change(&mut sweep);
            agents(&sweep)
        };
        assert_eq!(with(|sweep| sweep.live = 3), Agents::Ended);
        assert_eq!(with(|sweep| sweep.ending = 2), Agents::Ending(2));
    }
}
