//! Shows the events of one turn in the formats of `run`.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use teamster::Event;
use teamster_gateway::event::{GatewayEvent, TurnEnd};

use super::connection::{ClientError, Connection};
use super::events::{Events, LogBody, LogEvent};
use super::wording::answered;
use crate::args::Format;
use crate::exit;
use crate::printable::{Printable, printable};
use crate::render::{Hints, JsonWriter, Output, TICK, write_error};
use crate::runtime::STOPPING_NOTICE;
use crate::signals::{Signal, Signals};

/// Shows one turn.
pub(super) struct TurnDisplay {
    turn: String,
    format: Format,
    output: Output,
    /// The failure and the end of the last attempt. Another attempt may follow, and then they are not the turn's.
    held: Vec<Event>,
    code: u8,
}

impl TurnDisplay {
    pub(super) fn new(turn: &str, conversation: &str, format: Format, agent: &str) -> Self {
        let hints = Hints::Gateway { conversation: Some(conversation.to_owned()) };
        let output = Output::with_status(format, agent, None).with_hints(hints);
        Self { turn: turn.to_owned(), format, output, held: Vec::new(), code: exit::FAILURE }
    }

    /// Shows events until the end of the turn. Returns the exit code.
    ///
    /// The first Ctrl-C aborts the turn, the second ends the command.
    pub(super) async fn show(mut self, events: &mut Events, connection: &Connection) -> Result<u8, ClientError> {
        let mut signals = Signals::catch().map_err(ClientError::Signals)?;
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_aborted = false;
        loop {
            tokio::select! {
                event = events.next() => {
                    if self.event(event?).map_err(ClientError::Output)? {
                        return Ok(self.code);
                    }
                }
                _ = ticks.tick(), if self.output.is_live() => {
                    self.output.tick(Instant::now()).map_err(ClientError::Output)?;
                }
                signal = signals.next() => {
                    if is_aborted && signal == Signal::Interrupt {
                        return Ok(exit::INTERRUPTED);
                    }
                    is_aborted = true;
                    self.output.notice(&STOPPING_NOTICE.into()).map_err(ClientError::Output)?;
                    // A turn that has ended meanwhile cannot be aborted; its end is in the log.
                    _ = connection.abort_turn(&self.turn, Duration::ZERO).await;
                }
            }
        }
    }

    /// Shows an event. Returns whether it is the last of the turn.
    fn event(&mut self, event: LogEvent) -> io::Result<bool> {
        if event.turn.as_deref() != Some(&self.turn) {
            return Ok(false);
        }
        if self.format == Format::Ndjson {
            write_line(&event.json)?;
        }
        match event.event {
            LogBody::Agent(event @ (Event::Error(_) | Event::Done(_))) => self.held.push(event),
            LogBody::Agent(event) => self.agent_event(&event)?,
            LogBody::Gateway(event) => return self.gateway_event(event),
        }
        Ok(false)
    }

    fn agent_event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::PermissionRequest(request) = event {
            self.output.notice(&printable!(
                "the agent waits for permission to use {}; answer with: teamster approve {} allow|deny",
                &request.tool_name,
                Printable::exact(request.request_id.as_str())
            ))?;
        }
        match self.format {
            // The line of the server has more fields.
            Format::Ndjson => Ok(()),
            _ => self.output.event(event, Instant::now()),
        }
    }

    fn gateway_event(&mut self, event: GatewayEvent) -> io::Result<bool> {
        let notice = match event {
            GatewayEvent::TurnFinished { state, error_code, error } => {
                self.finish(state, error_code.as_deref(), error.as_deref())?;
                return Ok(true);
            }
            GatewayEvent::TurnJoined { into } => {
                self.turn = into;
                return Ok(false);
            }
            GatewayEvent::TurnRetrying { attempt, delay_ms, code } => {
                self.held.clear();
                let seconds = delay_ms.div_ceil(1000);
                printable!(
                    "attempt {} failed ({}); the next one starts in {} s",
                    attempt,
                    Printable::exact(&code),
                    seconds
                )
            }
            GatewayEvent::TurnPaused { until } => {
                self.held.clear();
                printable!("the vendor limits requests; the turn continues at {}", Printable::exact(&until))
            }
            GatewayEvent::PermissionAnswered { decision, by, message, .. } if !decision.starts_with("allow") => {
                printable!("the permission request: {}", answered(&decision, by.as_deref(), message.as_deref()))
            }
            GatewayEvent::SessionReset { reason } => Printable::message(&reason),
            GatewayEvent::HookFailed { hook, reason } => {
                printable!("the hook {} failed: {}", Printable::exact(&hook), Printable::message(&reason))
            }
            _ => return Ok(false),
        };
        self.output.notice(&notice)?;
        Ok(false)
    }

    /// Reports the denied calls of a result. The options that `run` names to allow them are not those of a gateway.
    fn denials(&mut self, event: &mut Event) -> io::Result<()> {
        let Event::Done(done) = event else { return Ok(()) };
        let mut names: Vec<_> = done.result.permission_denials.iter().map(|denial| &denial.tool_name).collect();
        names.dedup();
        if names.is_empty() {
            return Ok(());
        }
        let names = Printable::join(names.into_iter().map(|name| Printable::exact(name.as_str())), ", ");
        self.output.notice(&printable!(
            "denied by the permissions: {}; the gateway's configuration has allow_tools and permission",
            names
        ))?;
        done.result.permission_denials.clear();
        Ok(())
    }

    fn finish(&mut self, state: TurnEnd, code: Option<&str>, error: Option<&str>) -> io::Result<()> {
        let mut held = std::mem::take(&mut self.held);
        let result = held.iter().find_map(|event| match event {
            Event::Done(done) => Some(exit::of_result(&done.result)),
            _ => None,
        });
        let has_result = result.is_some();
        // The end of a turn that the gateway has reported, such as an interrupted one, has no error of the agent.
        let has_error = held.iter().any(|event| matches!(event, Event::Error(_)));
        self.code = match (state, result) {
            (TurnEnd::Done, _) => exit::SUCCESS,
            (TurnEnd::Aborted, _) => exit::INTERRUPTED,
            (TurnEnd::Failed, Some(code)) if code != exit::SUCCESS => code,
            (TurnEnd::Failed, _) => exit::FAILURE,
        };
        if self.format == Format::Pretty {
            held.iter_mut().try_for_each(|event| self.denials(event))?;
        }
        if self.format != Format::Ndjson {
            for event in &held {
                self.output.event(event, Instant::now())?;
            }
        }
        let is_unreported = match state {
            TurnEnd::Done => false,
            TurnEnd::Failed => !has_error,
            TurnEnd::Aborted => !has_result,
        };
        if is_unreported {
            let text = error.or(code).unwrap_or("the turn was aborted");
            write_error(&mut anstream::stderr(), &Printable::message(text), None);
        }
        Ok(())
    }
}

/// Writes an event of the API as a line.
pub(super) fn write_line(json: &RawValue) -> io::Result<()> {
    let mut out = io::stdout();
    let mut to = JsonWriter { text: &mut Vec::new(), out: &mut out };
    to.line(&json)?;
    to.flush()
}
