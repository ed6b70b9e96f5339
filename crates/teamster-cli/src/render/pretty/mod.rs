//! The format `pretty`, for people: the answer as it streams, and one line for each action of the agent.
//!
//! Invariant: the output is append-only and never moves the cursor, so it reads the same on a terminal, in a pager and in
//! a file. A tool's result is appended to the line of its call if that is still the last line. Otherwise it gets a
//! separate line that names the tool. All text is [`Printable`], so the agent's output is escaped.

pub(crate) mod call;
mod changes;
pub(crate) mod closing;
mod content;
mod denials;
pub(crate) mod diff;
mod document;
mod markdown;
mod outcome;
mod page;
pub(crate) mod permission;
mod running;
mod state;
pub(crate) mod style;
mod thinking;
mod tools;
pub(crate) mod whole_call;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstyle::Style;
use teamster::event::{
    Event, Init, Plan, PlanStatus, RateLimit, RateLimitStatus, RequestId, RunResult, ToolId, Warning, WarningCode,
};

use self::markdown::Markdown;
use self::page::{Kind, Page};
use self::state::{Call, ContentKind, ContentSource, OpenLine, OpenRequest};
use self::style::{BOLD, BULLET, CAUTION, DIM, NORMAL, NOTICEABLE, indent};
use crate::args::ToolOutput;
use crate::option_names;
use crate::printable::{Printable, printable};
use crate::render::renderer::{Renderer, Screen, Streams};
use crate::render::waiting::Waiting;

pub(super) struct Pretty {
    screen: Screen,
    page: Page,
    open: OpenLine,
    /// The message whose text or thinking was written last.
    source: Option<ContentSource>,
    /// The calls without a result, with their nesting depth.
    calls: HashMap<ToolId, Call>,
    /// The calls under which the next line appears, the outermost first.
    trail: Vec<ToolId>,
    /// The call that printed output last.
    last_output: Option<ToolId>,
    cwd: Option<PathBuf>,
    /// The agent that runs.
    agent: Option<String>,
    open_requests: HashMap<RequestId, OpenRequest>,
    /// Whether the last line reports a retraction.
    is_retracted: bool,
    /// How much of the output of tools is shown.
    tool_output: ToolOutput,
    /// The last plan that was written.
    plan: Option<Plan>,
    /// The Markdown formatter of the answer, if styles are enabled.
    markdown: Option<Markdown>,
    chat: Option<Chat>,
    /// The time for which the turn waited for a person.
    waiting: Waiting,
}

/// The state of a chat with several turns.
#[derive(Debug)]
struct Chat {
    /// The heading that was written last.
    heading: Printable,
}

impl Renderer for Pretty {
    fn event(&mut self, event: &Event, now: Instant, to: &mut Streams) -> io::Result<()> {
        let out = &mut *to.out;
        self.waiting.event(event, now);
        if !matches!(event, Event::Text(_)) {
            self.finish_text(out)?;
        }
        match event {
            Event::Init(init) => self.heading(init, out)?,
            Event::Text(delta) => self.write_delta(ContentKind::Text, delta, out)?,
            Event::Thinking(delta) => self.write_delta(ContentKind::Thinking, delta, out)?,
            // Retractions of several messages are reported once.
            Event::Retract(_) if self.is_retracted => {}
            Event::Retract(_) => {
                self.caution("↺", &"the last message is retracted: the answer starts again".into(), out)?;
            }
            Event::ToolUse(tool) => self.call(tool, now, out)?,
            Event::ToolOutput(output) => self.running_output(output),
            Event::ToolResult(result) => self.outcome(result, now, out)?,
            Event::PermissionRequest(request) => self.request(request, out)?,
            Event::PermissionAnswered(answered) => self.answered(answered, out)?,
            Event::Plan(plan) => self.plan(plan, out)?,
            Event::RateLimit(limit) => self.rate_limit(limit, out)?,
            Event::Warning(warning) => self.warning(warning, out)?,
            Event::Done(done) => {
                self.document(&done.result, out)?;
                self.end_line(to)?;
                let waited = std::mem::take(&mut self.waiting).total(now);
                self.close(&done.result, waited, &mut to.err);
            }
            // The closing line contains the usage, and an error follows it. Questions occur in sessions only.
            _ => {}
        }
        self.is_retracted = matches!(event, Event::Retract(_));
        to.out.flush()
    }

    fn tail(&mut self) -> Vec<Printable> {
        let width = self.screen.text_width();
        let mut lines = self.markdown.as_mut().map(|markdown| markdown.tail(width)).unwrap_or_default();
        if !lines.is_empty() && self.open == OpenLine::None {
            lines.splice(0..0, self.page.blank_lines_before(Kind::Text));
        }
        lines.extend(self.running_lines());
        lines
    }

    fn end_line(&mut self, to: &mut Streams) -> io::Result<()> {
        self.finish_text(&mut to.out)?;
        self.open = OpenLine::None;
        self.page.end_line(&mut to.out)?;
        to.out.flush()
    }
}

impl Pretty {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            page: Page::default(),
            open: OpenLine::None,
            source: None,
            calls: HashMap::new(),
            trail: Vec::new(),
            last_output: None,
            cwd: None,
            agent: None,
            open_requests: HashMap::new(),
            is_retracted: false,
            tool_output: ToolOutput::None,
            plan: None,
            markdown: screen.styles.then(Markdown::default),
            chat: None,
            waiting: Waiting::default(),
        }
    }

    /// Sets how much of the output of tools is shown.
    pub(super) fn with_tool_output(self, tool_output: ToolOutput) -> Self {
        Self { tool_output, ..self }
    }

    /// Creates the renderer of a chat.
    pub(super) fn of_chat(screen: Screen) -> Self {
        let chat = Chat { heading: Printable::default() };
        Self { chat: Some(chat), ..Self::new(screen) }
    }

    fn heading(&mut self, init: &Init, out: &mut dyn Write) -> io::Result<()> {
        self.cwd.clone_from(&init.cwd);
        self.agent = Some(init.agent.clone());
        let agent = match &init.agent_version {
            Some(version) => printable!("{} {}", &init.agent, version),
            None => Printable::exact(&init.agent),
        };
        let model = init.model.as_deref().map(Printable::exact);
        let heading = Printable::join(std::iter::once(agent).chain(model), " · ");
        if let Some(chat) = &mut self.chat {
            if chat.heading == heading {
                return Ok(());
            }
            chat.heading.clone_from(&heading);
        }
        self.line(Kind::Heading, 0, &[(&heading, DIM)], out)
    }

    /// Writes a plan, unless it is the one that was written last.
    fn plan(&mut self, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
        if self.plan.as_ref() == Some(plan) {
            return Ok(());
        }
        self.plan = Some(plan.clone());
        self.line(Kind::Work, 0, &[(&"● ".into(), BULLET), (&"Plan".into(), BOLD)], out)?;
        for entry in &plan.entries {
            let (mark, style) = match entry.status {
                PlanStatus::Completed => ("☑ ", DIM),
                PlanStatus::InProgress => ("▸ ", BOLD),
                _ => ("☐ ", NORMAL),
            };
            let content = Printable::message(&entry.content).cut(self.screen.width.saturating_sub(5));
            self.line(Kind::Work, 1, &[(&mark.into(), style), (&content, style)], out)?;
        }
        Ok(())
    }

    fn rate_limit(&mut self, limit: &RateLimit, out: &mut dyn Write) -> io::Result<()> {
        let words = match &limit.status {
            RateLimitStatus::Warning => "near the vendor's limit".into(),
            RateLimitStatus::Rejected => "over the vendor's limit".into(),
            RateLimitStatus::Other(words) => Printable::message(words),
            _ => return Ok(()),
        };
        let kind = limit.kind.as_ref().map(|kind| printable!(" ({})", kind)).unwrap_or_default();
        let reset = limit.resets_at.as_ref().map(|time| printable!(", which resets at {}", time)).unwrap_or_default();
        self.caution("!", &printable!("{}{}{}", words, kind, reset), out)
    }

    fn warning(&mut self, warning: &Warning, out: &mut dyn Write) -> io::Result<()> {
        if warning.code != WarningCode::Retrying {
            return self.caution("!", &option_names::in_message(&warning.message), out);
        }
        let figure = |name: &str| warning.data.as_ref()?.get(name)?.as_u64();
        let attempt = match (figure("attempt"), figure("max")) {
            (Some(attempt), Some(max)) => printable!(" ({} of {})", attempt, max),
            (Some(attempt), None) => printable!(" ({})", attempt),
            _ => Printable::default(),
        };
        let delay = figure("delayMs").map(Duration::from_millis).filter(|delay| *delay >= NOTICEABLE);
        let delay = delay.map(|delay| printable!(" in {}", closing::duration(delay))).unwrap_or_default();
        self.caution("↻", &printable!("{}{}{}", retry_reason(&warning.message), delay, attempt), out)
    }

    /// Writes the structured output, unless the final text is the same document.
    fn document(&mut self, result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
        let Some(document) = &result.structured_output else { return Ok(()) };
        if serde_json::from_str::<serde_json::Value>(&result.final_text).is_ok_and(|text| *document == text) {
            return Ok(());
        }
        let text = Printable::prose(&document::indented(document)?);
        self.page.begin(Kind::Text, out)?;
        self.page.write(&text, NORMAL, out)
    }

    fn close(&self, result: &RunResult, waited: Duration, err: &mut dyn Write) {
        let mut lines = closing::lines(result, waited, self.screen.width);
        if self.chat.is_some() {
            // The session id is printed when the chat ends.
            let mut without_session = result.clone();
            without_session.session_id = None;
            lines = closing::lines(&without_session, waited, self.screen.width);
        }
        // In a chat, each denial was shown or was the user's.
        let denials = if self.chat.is_some() { Vec::new() } else { denials::lines(result, self.agent.as_deref()) };
        // On a terminal a blank line separates the summary from the answer.
        if self.screen.terminal && !(lines.is_empty() && denials.is_empty()) {
            let _ = err.write_all(b"\n");
        }
        for (index, line) in denials.iter().enumerate() {
            let mark = if index == 0 { "! " } else { "  " };
            let _ = printable!("{}{}", mark, line).styled(CAUTION).write_line(err);
        }
        for line in lines {
            let _ = line.styled(DIM).write_line(err);
        }
        let _ = err.flush();
    }

    fn caution(&mut self, mark: &'static str, words: &Printable, out: &mut dyn Write) -> io::Result<()> {
        // A file has no width.
        let words =
            if self.screen.terminal { words.wrapped(self.screen.width.saturating_sub(2), 0) } else { words.clone() };
        let mut lines = words.lines();
        let first = lines.next().unwrap_or_default().without_line_end();
        self.line(Kind::Work, 0, &[(&mark.into(), CAUTION), (&" ".into(), NORMAL), (&first, CAUTION)], out)?;
        lines.try_for_each(|line| self.line(Kind::Work, 1, &[(&line.without_line_end(), CAUTION)], out))
    }

    /// Writes a complete line.
    fn line(&mut self, kind: Kind, depth: usize, parts: &[(&Printable, Style)], out: &mut dyn Write) -> io::Result<()> {
        self.open = OpenLine::None;
        self.page.begin(kind, out)?;
        self.write(depth, parts, out)?;
        self.page.end_line(out)
    }

    fn write(&mut self, depth: usize, parts: &[(&Printable, Style)], out: &mut dyn Write) -> io::Result<()> {
        self.page.write(&indent(depth), NORMAL, out)?;
        parts.iter().try_for_each(|(text, style)| self.page.write(text, *style, out))
    }
}

/// Returns why a call is tried again. Codex 0.169.0 repeats the attempt: `Reconnecting... 1/5 (REASON)`.
fn retry_reason(message: &str) -> Printable {
    let reason = message.strip_prefix("Reconnecting...").and_then(|rest| rest.split_once('(')?.1.strip_suffix(')'));
    reason.map_or_else(
        || Printable::message(message),
        |reason| printable!("connecting again: {}", Printable::message(reason)),
    )
}
