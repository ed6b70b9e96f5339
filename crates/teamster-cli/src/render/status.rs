//! The status line of a run: what the agent does now, and for how long.

use std::time::{Duration, Instant};

use teamster::event::{Event, RateLimitStatus, ToolId, ToolKind, Usage, Warning, WarningCode};

use super::pretty::style::{BULLET as SPINNER, DIM};
use super::pretty::{call, closing};
use super::waiting::Waiting;
use crate::printable::{Printable, printable};

/// The frames of the spinner.
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME_TIME_MS: u128 = 100;

/// The columns that the name and the arguments of a tool call may use.
const CALL_COLUMNS: usize = 48;

/// The status of a run, updated by its events.
#[derive(Debug)]
pub(crate) struct Status {
    agent: Printable,
    started: Instant,
    phase: Phase,
    /// The calls without a result, the oldest first.
    calls: Vec<RunningCall>,
    usage: Option<Usage>,
    /// The time for which the run waited for a person.
    waiting: Waiting,
}

/// What the agent does, if no tool runs.
#[derive(Debug)]
enum Phase {
    /// The run waits for other runs to end.
    Queued {
        position: u64,
    },
    Starting,
    Thinking,
    Answering,
    WaitingForPermission,
    /// The agent waits for an answer to a question.
    WaitingForAnswer,
    /// The model is called again at this time, if the time is known.
    Retrying {
        at: Option<Instant>,
        reason: Printable,
    },
    /// The vendor rejects requests.
    RateLimited {
        until: Option<Printable>,
    },
}

#[derive(Debug)]
struct RunningCall {
    id: ToolId,
    name: Printable,
    since: Instant,
    /// For how long the run had waited for a person before the call.
    waited_before: Duration,
}

impl Status {
    /// Creates the status of a run of this agent that starts now.
    pub(crate) fn new(agent: Printable, now: Instant) -> Self {
        let (phase, calls) = (Phase::Starting, Vec::new());
        Self { agent, started: now, phase, calls, usage: None, waiting: Waiting::default() }
    }

    /// Updates the status.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) {
        self.waiting.event(event, now);
        match event {
            Event::Queued(queued) => self.phase = Phase::Queued { position: queued.position },
            Event::Init(_) | Event::Thinking(_) | Event::Retract(_) | Event::PermissionAnswered(_) => {
                self.phase = Phase::Thinking;
            }
            Event::Text(_) => self.phase = Phase::Answering,
            Event::ToolUse(tool) => {
                let name = match tool.kind {
                    ToolKind::Execute => printable!("running {}", call::summary(tool, None)),
                    _ => printable!("{} {}", call::label(tool), call::summary(tool, None)),
                };
                self.calls.push(RunningCall {
                    id: tool.tool_id.clone(),
                    name: name.cut(CALL_COLUMNS),
                    since: now,
                    waited_before: self.waiting.total(now),
                });
                self.phase = Phase::Thinking;
            }
            Event::ToolResult(result) => self.calls.retain(|call| call.id != result.tool_id),
            Event::PermissionRequest(_) => self.phase = Phase::WaitingForPermission,
            Event::Question(_) => self.phase = Phase::WaitingForAnswer,
            Event::RateLimit(limit) if limit.status == RateLimitStatus::Rejected => {
                let until = limit.resets_at.as_ref().map(|time| Printable::exact(time));
                self.phase = Phase::RateLimited { until };
            }
            Event::Warning(warning) if warning.code == WarningCode::Retrying => self.phase = retrying(warning, now),
            Event::Usage(so_far) => self.usage = Some(so_far.usage.clone()),
            _ => {}
        }
    }

    /// Returns the line.
    pub(crate) fn line(&self, now: Instant) -> Printable {
        let passed = now.saturating_duration_since(self.started);
        // The time of an open request is shown apart.
        let worked = passed.saturating_sub(self.waiting.total(now));
        let elapsed = self.waiting.current(now).unwrap_or(worked);
        let frame = usize::try_from(passed.as_millis() / FRAME_TIME_MS).unwrap_or(0) % FRAMES.len();
        let frame = FRAMES.get(frame).copied().unwrap_or_default();
        let tokens = self.usage.as_ref().map(|usage| printable!("{} tokens", closing::count(usage.total())));
        let parts = [Some(self.agent.clone()), Some(self.activity(now)), Some(seconds(elapsed)), tokens];
        let line = Printable::join(parts.into_iter().flatten(), " · ");
        printable!("{} {}", Printable::from(frame).styled(SPINNER), line.styled(DIM))
    }

    fn activity(&self, now: Instant) -> Printable {
        match (&self.phase, self.calls.last()) {
            (Phase::WaitingForPermission, _) => "waiting for permission".into(),
            (Phase::WaitingForAnswer, _) => "waiting for your answer".into(),
            (Phase::Retrying { at, reason }, _) => {
                let wait = at.map(|at| at.saturating_duration_since(now)).filter(|wait| !wait.is_zero());
                let wait = wait.map(|wait| printable!(" in {} s", wait.as_secs() + 1)).unwrap_or_default();
                printable!("retrying{} ({})", wait, reason)
            }
            (Phase::RateLimited { until }, _) => {
                let until = until.as_ref().map(|until| printable!(" until {}", until)).unwrap_or_default();
                printable!("rate limited{}", until)
            }
            (_, Some(call)) => {
                let more = self.calls.len() - 1;
                let more = if more > 0 { printable!(" and {} more", more) } else { Printable::default() };
                let waited = self.waiting.total(now).saturating_sub(call.waited_before);
                let since = seconds(now.saturating_duration_since(call.since).saturating_sub(waited));
                printable!("{}{} {}", &call.name, more, since)
            }
            (Phase::Queued { position }, None) => printable!("waiting for other runs (position {})", *position),
            (Phase::Starting, None) => "starting".into(),
            (Phase::Thinking, None) => "thinking".into(),
            (Phase::Answering, None) => "answering".into(),
        }
    }
}

fn retrying(warning: &Warning, now: Instant) -> Phase {
    let data = |name: &str| warning.data.as_ref().and_then(|data| data.get(name));
    let delay = data("delayMs").and_then(serde_json::Value::as_u64).map(Duration::from_millis);
    let reason = match data("status").and_then(serde_json::Value::as_u64) {
        Some(status) => printable!("{}", status),
        None => Printable::message(&warning.message).cut(CALL_COLUMNS),
    };
    Phase::Retrying { at: delay.and_then(|delay| now.checked_add(delay)), reason }
}

/// Formats a duration in whole seconds.
fn seconds(duration: Duration) -> Printable {
    match duration.as_secs() {
        short @ 0..60 => printable!("{} s", short),
        _ => closing::duration(duration),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::event::{
        AnsweredBy, Init, PermissionAnswered, PermissionDecision, PermissionRequest, Queued, ToolResult, ToolUse,
        UsageScope, UsageSoFar,
    };

    use super::*;

    /// Returns the line, without styles, some seconds after the start.
    fn line(status: &Status, start: Instant, seconds: u64) -> String {
        status.line(start + Duration::from_secs(seconds)).without_styles().as_str().to_owned()
    }

    #[test]
    fn the_line_names_what_the_agent_does_and_for_how_long() {
        let start = Instant::now();
        let mut status = Status::new("codex".into(), start);
        let shown = |status: &Status, seconds| line(status, start, seconds).split_once(' ').unwrap().1.to_owned();
        assert_eq!(shown(&status, 1), "codex · starting · 1 s");
        status.event(&Event::Queued(Queued::new(2)), start);
        assert_eq!(shown(&status, 1), "codex · waiting for other runs (position 2) · 1 s");
        status.event(&Event::Init(Box::new(Init::new("codex", "s".into()))), start);
        assert_eq!(shown(&status, 2), "codex · thinking · 2 s");
        for (id, command) in [("a", "sleep 9"), ("b", "npm test")] {
            let tool = ToolUse::new(id, "Bash", json!({ "command": command }).into(), ToolKind::Execute);
            status.event(&Event::ToolUse(Box::new(tool)), start + Duration::from_secs(3));
        }
        assert_eq!(shown(&status, 10), "codex · running npm test and 1 more 7 s · 10 s");
        status.event(&Event::ToolResult(Box::new(ToolResult::new("b", "", None))), start);
        assert_eq!(shown(&status, 10), "codex · running sleep 9 7 s · 10 s");
        status.event(&Event::ToolResult(Box::new(ToolResult::new("a", "", None))), start);
        let request = PermissionRequest::new("r".into(), "Bash", json!({}).into());
        status.event(&Event::PermissionRequest(Box::new(request)), start);
        assert_eq!(shown(&status, 70), "codex · waiting for permission · 1m 10s");
        let answered = PermissionAnswered::new("r".into(), PermissionDecision::Allow, AnsweredBy::Caller);
        status.event(&Event::PermissionAnswered(Box::new(answered)), start + Duration::from_secs(5));
        assert_eq!(shown(&status, 9), "codex · thinking · 4 s");
        let mut usage = Usage::default();
        (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) = (1000, Some(200), 34);
        status.event(&Event::Usage(Box::new(UsageSoFar::new(usage, UsageScope::Run))), start);
        let retry = Warning::new(WarningCode::Retrying, "busy").with("delayMs", 4000).with("status", 429);
        status.event(&retry.into(), start);
        assert_eq!(shown(&status, 0), "codex · retrying in 5 s (429) · 0 s · 1.2k tokens");
        assert_eq!(shown(&status, 9), "codex · retrying (429) · 4 s · 1.2k tokens");
    }
}
