//! A process of an agent that waits for a turn.

use std::sync::Arc;

use teamster_agents::agent::{Agent, Plan};
use teamster_agents::protocol::{Input, Protocol};
use teamster_types::event::{Failure, LeftProcess};
use teamster_types::request::{Limits, RunRequest};

use tokio_util::sync::CancellationToken;

use super::attempts::not_planned;
use super::desk::Kept;
use super::process::Process;
use super::{Host, prepare};
use crate::permits::ProcessPermit;
use crate::recording::redact::Redactor;
use crate::runtime::guarded;

/// A process that waits for its next turn, and who understands it.
pub(crate) struct Warm {
    pub(super) process: Process,
    pub(super) protocol: Box<dyn Protocol>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) kept: Kept,
    /// The agent has begun the next turn by itself.
    pub(super) begun: bool,
    /// Where it was started before its session: its leave to live.
    pub(super) permit: Option<ProcessPermit>,
}

impl Warm {
    /// Starts one, unless `stop` is cancelled before; `None` where the agent has none that waits.
    pub(crate) async fn start(
        agent: &dyn Agent,
        host: Host,
        frame: &RunRequest,
        stop: &CancellationToken,
    ) -> Result<Option<Self>, Failure> {
        let planned = guarded(agent, || agent.plan_session(frame)).map_err(|error| not_planned(&error))?;
        let Some(Plan { launch, mut protocol }) = planned else { return Ok(None) };
        let redactor = Arc::new(host.redactor(&launch, frame));
        let recorder = host.recorder(&redactor);
        let live = prepare::start(launch, host, recorder, &frame.limits, stop).await?;
        let (mut process, mut kept) = (Process::new(live), Kept::default());
        process.tell(&mut *protocol, &mut kept, Input::Started);
        Ok(Some(Self { process, protocol, redactor, kept, begun: false, permit: None }))
    }

    /// Returns when it is no good any more. Can be dropped and called again at any time.
    pub(super) async fn idle(&mut self) {
        self.process.idle(&mut *self.protocol, &mut self.kept).await;
    }

    /// Asks it to exit, and ends it if it does not. Returns the processes that live on.
    pub(super) async fn close(self, limits: &Limits) -> Vec<LeftProcess> {
        let Self { process, mut protocol, .. } = self;
        process.close(&mut *protocol, limits).await
    }
}
