//! What an agent says: lines, diagnostics, and its server's words; and the last of it, when its process is gone.

use teamster_agents::protocol::Input;
use teamster_process::spawn::PIPE_BYTES;
use teamster_process::{Frame, OutputReader, TailReader};
use teamster_types::event::{Warning, WarningCode};
use tokio::time::{Instant, sleep_until};

use super::Reins;
use crate::agent_server::{ServerEvent, remaining_event};
use crate::driver::link::Link;
use crate::driver::process::{Streams, is_more};
use crate::run::Outlet;

impl Reins<'_> {
    /// What the CLI wrote is in the pipe now. Others may hold it open and write too: they get the drain period.
    pub(super) async fn drain(&mut self, streams: &mut Streams, outlet: &Outlet) {
        let until = Instant::now() + self.limits.drain;
        self.rest(&mut streams.output);
        while streams.output_open {
            tokio::select! {
                read = streams.output.fill() => {
                    streams.output_open = is_more(&read);
                    self.rest(&mut streams.output);
                }
                read = streams.diagnostics.fill(), if streams.diagnostics_open => {
                    streams.diagnostics_open = is_more(&read);
                    self.diagnostics(&mut streams.diagnostics);
                }
                () = self.story.outbox.deliver(), if !self.story.outbox.is_empty() => {}
                () = sleep_until(until) => break,
                () = outlet.aborted.cancelled() => break,
            }
        }
        // They may write for ever: what the CLI itself left is no more than the pipe holds, and comes first.
        let mut left = PIPE_BYTES;
        while left > 0
            && let Ok(Some(count @ 1..)) = streams.output.fill_now()
        {
            left = left.saturating_sub(count);
            self.rest(&mut streams.output);
        }
        while let Some(frame) = streams.output.finish() {
            self.frame(frame);
        }
        self.drain_server(until, outlet).await;
        let mut left = PIPE_BYTES;
        while left > 0
            && let Ok(Some(count @ 1..)) = streams.diagnostics.fill_now()
        {
            left = left.saturating_sub(count);
            self.diagnostics(&mut streams.diagnostics);
        }
    }

    /// What the CLI's server said before its end is on its way still.
    async fn drain_server(&mut self, until: Instant, outlet: &Outlet) {
        let Self { link: Link { server: Some(_), .. }, .. } = self else { return };
        loop {
            let heard = tokio::select! {
                heard = remaining_event(&mut self.link.server) => heard,
                () = self.story.outbox.deliver(), if !self.story.outbox.is_empty() => continue,
                () = sleep_until(until) => break,
                () = outlet.aborted.cancelled() => return,
            };
            let Some(heard) = heard else { return };
            self.hear(&heard);
        }
        // If the host was halted, the rest is there only now.
        self.read_events().await;
    }

    pub(super) fn hear(&mut self, heard: &ServerEvent) {
        self.link.recorder.server_event(heard);
        match heard {
            ServerEvent::TooLong { head, length } => self.skipped("an event", head, *length),
            heard => heard.input().into_iter().for_each(|input| self.tell(input)),
        }
    }

    pub(super) fn diagnostics(&mut self, diagnostics: &mut TailReader) {
        while let Some(line) = diagnostics.next_line() {
            self.link.recorder.diagnostic(line);
            self.tell(Input::Diagnostic(line));
        }
    }

    /// What follows the end of a session's turn is left to the next one.
    pub(super) fn frames(&mut self, output: &mut OutputReader) {
        while !self.is_answered()
            && let Some(frame) = output.next()
        {
            self.frame(frame);
        }
    }

    fn rest(&mut self, output: &mut OutputReader) {
        while let Some(frame) = output.next() {
            self.frame(frame);
        }
    }

    fn frame(&mut self, frame: Frame<'_>) {
        self.link.recorder.output(&frame);
        match frame {
            Frame::Line(line) | Frame::Unterminated(line) => self.tell(Input::Line(line)),
            Frame::TooLong { head, length } => self.skipped("a line", head, length),
        }
    }

    fn skipped(&mut self, what: &str, head: &[u8], length: u64) {
        let text = format!("skipped {what} of {length} bytes, more than {}", self.limits.max_line_bytes);
        let head: String = String::from_utf8_lossy(head).chars().take(120).collect();
        self.story.say(Warning::new(WarningCode::LineTooLong, text).with("line", head).into());
    }
}
