//! Tests of the output formats. This file has the shared events and streams.

mod formats;
mod hostile;
mod pretty;
mod recorded;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::{Value, json};
use teamster::event::{
    Delta, Done, ErrorCode, Init, PermissionDenial, Plan, PlanEntry, PlanStatus, RateLimit, RateLimitStatus, Retract,
    RunResult, ToolKind, ToolResult, ToolUse, Usage, Warning, WarningCode,
};

use super::*;

const PAGE: Screen = Screen { width: 72, terminal: false, styles: false };

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Returns standard output and standard error of a run whose events arrive 100 ms apart.
fn streams(format: Format, screen: Screen, events: &[Event]) -> (String, String) {
    let (out, err) = (Paper::default(), Paper::default());
    show(format, screen, events, Streams { out: Box::new(out.clone()), err: Box::new(err.clone()) });
    (out.text(), err.text())
}

fn show(format: Format, screen: Screen, events: &[Event], to: Streams) {
    let mut output = Output::over(to, format, "claude", screen, ToolOutput::None);
    let begin = Instant::now();
    for (index, event) in (0..).zip(events) {
        output.event(event, begin + Duration::from_millis(100) * index).unwrap();
    }
}

/// Returns the output of both streams on one terminal, with styles.
fn colored(screen: Screen, events: &[Event]) -> String {
    let paper = Paper::default();
    show(Format::Pretty, screen, events, Streams { out: Box::new(paper.clone()), err: Box::new(paper.clone()) });
    paper.text()
}

fn pretty(events: &[Event]) -> String {
    anstream::adapter::strip_str(&colored(PAGE, events)).to_string()
}

fn init() -> Event {
    let mut init = Init::new("claude", "s".into());
    init.agent_version = Some("2.1.197".into());
    init.model = Some("claude-opus".into());
    init.cwd = Some("/project".into());
    Event::Init(Box::new(init))
}

fn delta(message: &str, parent: Option<&str>, text: &str) -> Delta {
    Delta::new(message, text).with_parent(parent.map(Into::into))
}

fn text(message: &str, text: &str) -> Event {
    Event::Text(delta(message, None, text))
}

fn thinking(text: &str) -> Event {
    Event::Thinking(delta("m", None, text))
}

fn tool(id: &str, name: &str, input: Value) -> Event {
    tool_of(None, id, name, input)
}

fn tool_of(parent: Option<&str>, id: &str, name: &str, input: Value) -> Event {
    Event::ToolUse(Box::new(
        ToolUse::new(id, name, input.into(), ToolKind::Unclassified).with_parent(parent.map(Into::into)),
    ))
}

fn result(id: &str, error: Option<&str>) -> Event {
    Event::ToolResult(Box::new(ToolResult::new(id, error.unwrap_or("fine"), Some(error.is_some()))))
}

fn done(change: impl FnOnce(&mut RunResult)) -> Event {
    let mut result = RunResult::default();
    change(&mut result);
    Event::Done(Box::new(Done::new(result)))
}

fn answered(result: &mut RunResult) {
    let mut usage = Usage::default();
    (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) = (900, Some(300), 340);
    result.model = Some("claude-opus".into());
    result.num_turns = Some(2);
    result.usage = Some(usage);
    result.total_cost_usd = Some(0.0123);
    result.duration_ms = 4_200;
    result.session_id = Some("67c9c3e6-c7de-48a2-bc6b-8c0c662932f4".into());
    result.final_text = "All green.".into();
}

fn failed(code: ErrorCode, message: &str, change: impl FnOnce(&mut RunResult)) -> [Event; 2] {
    let end = done(|result| {
        (result.is_error, result.error_code) = (true, Some(code.clone()));
        change(result);
    });
    [Event::Error(Box::new(Failure::new(code, message))), end]
}
