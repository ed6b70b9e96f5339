//! Reads the last output of a process whose leader has exited.

use tokio::time::{Instant, sleep_until};

use super::TurnDriver;
use crate::agent_server::remaining_event;
use crate::driver::log;
use crate::driver::process::AgentOutput;
use crate::turns::handle::RunHandle;

impl TurnDriver<'_> {
    /// Reads the output of the leader, which is in the pipes. Other processes may hold the pipes open and write to them: they
    /// get the drain period.
    pub(super) async fn drain(&mut self, output: &mut AgentOutput, run: &RunHandle) {
        log::step("exit noticed");
        self.is_draining = true;
        let until = Instant::now() + self.limits.drain;
        output.deliver_lines(self);
        while output.is_open() {
            self.sink.queue.flush();
            tokio::select! {
                filled = output.fill(true) => output.deliver(filled, self),
                () = sleep_until(until) => break,
                () = run.stop.abort.cancelled() => break,
            }
        }
        output.read_pending_lines(self);
        output.finish_lines(self);
        self.drain_server(output, until, run).await;
        output.read_pending_diagnostics(self);
        log::step("output read");
    }

    /// Reads the events that the CLI's server sent before its end.
    async fn drain_server(&mut self, output: &mut AgentOutput, until: Instant, run: &RunHandle) {
        if self.link.server.is_none() {
            return;
        }
        loop {
            self.sink.queue.flush();
            let event = tokio::select! {
                event = remaining_event(&mut self.link.server) => event,
                () = sleep_until(until) => break,
                () = run.stop.abort.cancelled() => return,
            };
            let Some(event) = event else { return };
            output.deliver_event(&event, self);
        }
        // If the host was stopped meanwhile, the remaining events have arrived only now.
        self.read_server_events(output).await;
    }
}
