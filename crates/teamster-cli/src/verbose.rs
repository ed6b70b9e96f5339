//! `teamster run --verbose`: launches, versions, limits and timings, as notices with the time since the start.
//!
//! Launches and waits come from the library's log; the rest comes from the request and its events.

use std::time::{Duration, Instant};

use teamster::Event;
use teamster::event::{Init, RunResult, ToolId};
use teamster::request::Limits;
use tokio::sync::mpsc;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::printable::{Printable, printable};
use crate::render::pretty::closing;
use crate::render::pretty::style::DIM;

/// The log targets of the library that are shown. Tool calls and permissions are part of the normal output.
const TARGETS: [&str; 3] = ["teamster::driver", "teamster::setup", "teamster::limits"];

/// The receiver of the library's log lines.
pub(crate) type Activity = mpsc::UnboundedReceiver<Printable>;

/// Sends log lines of the library to [`Activity`].
pub(crate) struct LogLines(mpsc::UnboundedSender<Printable>);

/// Creates the layer of the log, and the receiver of its lines.
pub(crate) fn log_lines() -> (LogLines, Activity) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (LogLines(sender), receiver)
}

impl<S: tracing::Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _context: Context<'_, S>) {
        let target = event.metadata().target();
        let is_of =
            |part: &str| target.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
        if !TARGETS.into_iter().any(is_of) || target == "teamster::driver::log" {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        // The receiver is gone at the end of the command.
        _ = self.0.send(Printable::join(line.message.into_iter().chain(line.fields), " · "));
    }
}

/// A log line: its message and its fields.
#[derive(Default)]
struct Line {
    message: Option<Printable>,
    fields: Vec<Printable>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let value = Printable::message(&format!("{value:?}"));
        match field.name() {
            "message" => self.message = Some(value),
            name => self.fields.push(printable!("{} {}", &name.replace('_', " "), value)),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        let duration = Duration::try_from_secs_f64(value).ok();
        match (field.name().strip_suffix("_s"), duration) {
            (Some(name), Some(duration)) => self.fields.push(printable!("{} {}", name, closing::duration(duration))),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        // The names of limits have the field's name as a prefix.
        let value = value.strip_prefix("limit: ").unwrap_or(value);
        self.fields.push(printable!("{} {}", field.name(), Printable::message(value)));
    }
}

/// The notices of a run.
#[derive(Debug)]
pub(crate) struct Verbose {
    activity: Activity,
    timings: Timings,
    limits: Limits,
}

impl Verbose {
    /// Creates the notices of a run with these limits that starts now.
    pub(crate) fn new(activity: Activity, limits: &Limits) -> Self {
        Self { activity, timings: Timings::new(Instant::now()), limits: limits.clone() }
    }

    /// Returns the first notice.
    pub(crate) fn first(&self) -> Printable {
        self.timings.notice(&limits(&self.limits), Instant::now())
    }

    /// Waits for the next notice of the library. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Printable {
        match self.activity.recv().await {
            Some(text) => self.timings.notice(&text, Instant::now()),
            None => std::future::pending().await,
        }
    }

    /// Returns the notice for an event, if there is one.
    pub(crate) fn event(&mut self, event: &Event, now: Instant) -> Option<Printable> {
        let text = self.timings.event(event, now)?;
        Some(self.timings.notice(&text, now))
    }

    /// Returns the notices of the library that have not been read. Does not wait.
    pub(crate) fn rest(&mut self) -> Vec<Printable> {
        let texts: Vec<_> = std::iter::from_fn(|| self.activity.try_recv().ok()).collect();
        texts.iter().map(|text| self.timings.notice(text, Instant::now())).collect()
    }
}

/// The timings of a run.
#[derive(Debug)]
struct Timings {
    started: Instant,
    first_event: Option<Duration>,
    first_text: Option<Duration>,
    /// The running calls, and the time since which at least one runs.
    calls: Vec<ToolId>,
    working_since: Option<Duration>,
    /// The time in which at least one tool ran.
    tools: Duration,
}

impl Timings {
    /// Creates the timings of a run that starts now.
    fn new(started: Instant) -> Self {
        Self {
            started,
            first_event: None,
            first_text: None,
            calls: Vec::new(),
            working_since: None,
            tools: Duration::ZERO,
        }
    }

    /// Returns a notice with the time since the start.
    fn notice(&self, text: &Printable, now: Instant) -> Printable {
        let elapsed = now.saturating_duration_since(self.started).as_secs_f64();
        printable!("+{} s  {}", Printable::exact(&format!("{elapsed:.2}")), text).styled(DIM)
    }

    /// Records an event. Returns what it adds to the notices.
    fn event(&mut self, event: &Event, now: Instant) -> Option<Printable> {
        let now = now.saturating_duration_since(self.started);
        self.first_event.get_or_insert(now);
        match event {
            Event::Init(init) => Some(identity(init)),
            Event::Text(_) => {
                self.first_text.get_or_insert(now);
                None
            }
            Event::ToolUse(tool) => {
                self.working_since.get_or_insert(now);
                self.calls.push(tool.tool_id.clone());
                None
            }
            Event::ToolResult(result) => {
                self.calls.retain(|call| *call != result.tool_id);
                if let Some(since) = self.working_since.take_if(|_| self.calls.is_empty()) {
                    self.tools += now.saturating_sub(since);
                }
                None
            }
            Event::Done(done) => Some(self.summary(&done.result, now)),
            _ => None,
        }
    }

    fn summary(&self, result: &RunResult, now: Duration) -> Printable {
        let timing =
            |name: &'static str, time: Option<Duration>| Some(printable!("{} {}", name, closing::duration(time?)));
        let unfinished = self.working_since.map(|since| now.saturating_sub(since)).unwrap_or_default();
        let tools = self.tools + unfinished;
        let parts = [
            timing("first event", self.first_event),
            timing("first text", self.first_text),
            timing("tools", (!tools.is_zero()).then_some(tools)),
            timing("the vendor's API", result.api_duration_ms.map(Duration::from_millis)),
            timing("total", Some(now)),
        ];
        printable!("timings: {}", Printable::join(parts.into_iter().flatten(), " · "))
    }
}

/// Returns the limits of a run in words.
fn limits(limits: &Limits) -> Printable {
    let limit = |name: &'static str, time: Duration| match time {
        Duration::ZERO => printable!("{} none", name),
        time => printable!("{} {}", name, closing::duration(time)),
    };
    let parts = [
        limit("startup", limits.startup),
        limit("silence", limits.silence),
        limit("a tool's silence", limits.tool),
        limit("deadline", limits.deadline),
    ];
    printable!("limits: {}", Printable::join(parts, " · "))
}

fn identity(init: &Init) -> Printable {
    let count = |list: Option<usize>, name: &'static str| list.map(|count| printable!("{} {}", count, name));
    let servers = init.mcp_servers.iter().flatten();
    let parts = [
        Some(match &init.agent_version {
            Some(version) => printable!("{} {}", &init.agent, version),
            None => Printable::exact(&init.agent),
        }),
        init.model.as_ref().map(|model| printable!("model {}", model)),
        Some(printable!("session {}", Printable::exact(init.session_id.as_str()))),
        init.cwd.as_deref().map(|directory| printable!("in {}", directory)),
        count(init.tools.as_ref().map(Vec::len), "tools"),
    ];
    let servers = servers.map(|server| printable!("MCP server {} {}", &server.name, &server.status));
    Printable::join(parts.into_iter().flatten().chain(servers), " · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster::event::{Delta, Done, ToolKind, ToolResult, ToolUse};

    use super::*;

    #[test]
    fn concurrent_tools_count_once_in_the_timings() {
        let start = Instant::now();
        let mut timings = Timings::new(start);
        let mut at = |event: Event, seconds| timings.event(&event, start + Duration::from_secs(seconds));
        let call = |id: &str| Event::ToolUse(Box::new(ToolUse::new(id, "x", json!({}).into(), ToolKind::Execute)));
        let end = |id: &str| Event::ToolResult(Box::new(ToolResult::new(id, "", None)));
        assert_eq!(at(Event::Init(Box::new(Init::new("codex", "s".into()))), 1).unwrap().as_str(), "codex · session s");
        for (event, seconds) in
            [(call("a"), 2), (call("b"), 3), (end("a"), 4), (end("b"), 6), (call("c"), 8), (end("c"), 9)]
        {
            assert_eq!(at(event, seconds), None);
        }
        at(Event::Text(Delta::new("m", "Hi")), 10);
        let mut result = RunResult::default();
        result.api_duration_ms = Some(1500);
        let summary = at(Event::Done(Box::new(Done::new(result))), 11).unwrap();
        assert_eq!(
            summary.as_str(),
            "timings: first event 1.0s · first text 10.0s · tools 5.0s · the vendor's API 1.5s · total 11.0s"
        );
    }

    #[test]
    fn a_tool_that_never_returned_counts_until_the_end() {
        let start = Instant::now();
        let mut timings = Timings::new(start);
        let tool = ToolUse::new("a", "x", json!({}).into(), ToolKind::Execute);
        timings.event(&Event::ToolUse(Box::new(tool)), start + Duration::from_secs(2));
        let done = Event::Done(Box::new(Done::new(RunResult::default())));
        let summary = timings.event(&done, start + Duration::from_secs(9)).unwrap();
        assert_eq!(summary.as_str(), "timings: first event 2.0s · tools 7.0s · total 9.0s");
    }

    #[test]
    fn a_disabled_limit_has_no_duration() {
        let text = limits(&Limits::default());
        assert_eq!(text.as_str(), "limits: startup 5m 00s · silence 5m 00s · a tool's silence 30m 00s · deadline none");
    }
}
