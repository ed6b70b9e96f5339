//! For people: the answer as it streams, and a line for each thing that the agent does.
//!
//! Invariant: the page only grows. A tool's outcome is added to its line while nothing came after it, and stands on a
//! line of its own that names the tool otherwise; so the page reads the same on a terminal, in a pager and in a file,
//! and no cursor is ever moved. Everything is [`Printable`]: what an agent said was escaped.

pub(crate) mod call;
pub(crate) mod closing;
mod document;
mod markdown;
mod page;
pub(crate) mod permission;
mod speech;
mod tools;

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use teamster::event::{
    Event, Init, Plan, PlanStatus, RateLimit, RateLimitStatus, RequestId, RunResult, ToolId, Warning, WarningCode,
};
use teamster::text::UntrustedText;

use self::markdown::{Markdown, Piece};
use self::page::{Kind, Page};
use self::speech::{Speaker, Voice};
use self::tools::Call;
use super::{Renderer, Screen, Streams};
use crate::printable::{Printable, printable};

const NORMAL: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const THOUGHT: Style = Style::new().dimmed().italic();
const BULLET: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const CAUTION: Style = AnsiColor::Yellow.on_default().dimmed();

/// The shortest time worth telling.
const NOTICEABLE: Duration = Duration::from_millis(100);

pub(super) struct Pretty {
    screen: Screen,
    page: Page,
    open: Open,
    /// Who spoke last.
    speaker: Option<Speaker>,
    /// Calls without a result yet, and how deep each stands.
    calls: HashMap<ToolId, Call>,
    /// The calls that the next line is read as a part of, by where it stands: the outermost first.
    trail: Vec<ToolId>,
    cwd: Option<PathBuf>,
    /// Permission requests without an answer yet, and the tool of each.
    asked: HashMap<RequestId, UntrustedText>,
    /// The page's last line says that what was said is void.
    void: bool,
    chat: Option<Chat>,
}

/// What is different where the page is a conversation.
#[derive(Debug)]
struct Chat {
    /// Who works, as it was told last.
    heading: Printable,
    /// Where what is said is shown with styles in the place of its marks.
    markdown: Option<Markdown>,
}

/// What the page's last line can be continued with.
#[derive(Debug, PartialEq)]
enum Open {
    Nothing,
    Speech,
    /// `room` columns are left; none once the mark of cutting stands there.
    Thought {
        room: usize,
        space: bool,
    },
    Call {
        tool: ToolId,
        columns: usize,
    },
}

impl Renderer for Pretty {
    fn event(&mut self, event: &Event, now: Instant, to: &mut Streams) -> io::Result<()> {
        let out = &mut *to.out;
        if !matches!(event, Event::Text(_)) {
            self.finish_speech(out)?;
        }
        match event {
            Event::Init(init) => self.heading(init, out)?,
            Event::Text(delta) => self.speak(Voice::Text, delta, out)?,
            Event::Thinking(delta) => self.speak(Voice::Thinking, delta, out)?,
            // Once for all messages of an attempt that is given up.
            Event::Retract(_) if self.void => {}
            Event::Retract(_) => {
                self.caution("↺", &"what was said last is void: the answer begins again".into(), out)?;
            }
            Event::ToolUse(tool) => self.call(tool, now, out)?,
            Event::ToolResult(result) => self.outcome(result, now, out)?,
            Event::PermissionRequest(request) => self.request(request, out)?,
            Event::PermissionAnswered(answered) => self.answered(answered, out)?,
            Event::Plan(plan) => self.plan(plan, out)?,
            Event::RateLimit(limit) => self.rate_limit(limit, out)?,
            Event::Warning(warning) => self.warning(warning, out)?,
            Event::Done(done) => {
                self.document(&done.result, out)?;
                self.end_line(to)?;
                self.close(&done.result, &mut to.err);
            }
            // Usage stands in the closing line, an error after it; questions to a person come in sessions only.
            _ => {}
        }
        self.void = matches!(event, Event::Retract(_));
        to.out.flush()
    }

    fn end_line(&mut self, to: &mut Streams) -> io::Result<()> {
        self.open = Open::Nothing;
        self.page.end_line(&mut to.out)?;
        to.out.flush()
    }
}

impl Pretty {
    pub(super) fn new(screen: Screen) -> Self {
        Self {
            screen,
            page: Page::default(),
            open: Open::Nothing,
            speaker: None,
            calls: HashMap::new(),
            trail: Vec::new(),
            cwd: None,
            asked: HashMap::new(),
            void: false,
            chat: None,
        }
    }

    /// For a conversation of many turns; with styles in the place of marks where styles are shown.
    pub(super) fn of_chat(screen: Screen, styles: bool) -> Self {
        let chat = Chat { heading: Printable::default(), markdown: styles.then(Markdown::default) };
        Self { chat: Some(chat), ..Self::new(screen) }
    }

    fn heading(&mut self, init: &Init, out: &mut dyn Write) -> io::Result<()> {
        self.cwd.clone_from(&init.cwd);
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

    fn plan(&mut self, plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
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
            return self.caution("!", &Printable::message(&warning.message), out);
        }
        let figure = |name: &str| warning.data.as_ref()?.get(name)?.as_u64();
        let attempt = match (figure("attempt"), figure("max")) {
            (Some(attempt), Some(max)) => printable!(" ({} of {})", attempt, max),
            (Some(attempt), None) => printable!(" ({})", attempt),
            _ => Printable::default(),
        };
        let delay = figure("delayMs").map(Duration::from_millis).filter(|delay| *delay >= NOTICEABLE);
        let delay = delay.map(|delay| printable!(" in {}", closing::duration(delay))).unwrap_or_default();
        self.caution("↻", &printable!("{}{}{}", Printable::message(&warning.message), delay, attempt), out)
    }

    /// What was asked for by a schema, unless the agent said it in words already.
    fn document(&mut self, result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
        let Some(document) = &result.structured_output else { return Ok(()) };
        if serde_json::from_str::<serde_json::Value>(&result.final_text).is_ok_and(|said| *document == said) {
            return Ok(());
        }
        let text = Printable::prose(&document::indented(document)?);
        self.page.begin(Kind::Speech, out)?;
        self.page.write(&text, NORMAL, out)
    }

    fn close(&self, result: &RunResult, err: &mut dyn Write) {
        let mut lines = closing::lines(result, self.screen.width);
        if self.chat.is_some() {
            // Its name is told at the end.
            let mut nameless = result.clone();
            nameless.session_id = None;
            lines = closing::lines(&nameless, self.screen.width);
        }
        let denials = closing::denials(result);
        // What follows on the same terminal stands apart from the answer.
        if self.screen.terminal && !(lines.is_empty() && denials.is_none()) {
            let _ = err.write_all(b"\n");
        }
        if let Some(denials) = denials {
            let _ = printable!("! {}", denials).styled(CAUTION).write_line(err);
        }
        for line in lines {
            let _ = line.styled(DIM).write_line(err);
        }
        let _ = err.flush();
    }

    fn caution(&mut self, mark: &'static str, words: &Printable, out: &mut dyn Write) -> io::Result<()> {
        self.line(Kind::Work, 0, &[(&mark.into(), CAUTION), (&" ".into(), NORMAL), (words, CAUTION)], out)
    }

    /// A whole line of its own.
    fn line(&mut self, kind: Kind, depth: usize, parts: &[(&Printable, Style)], out: &mut dyn Write) -> io::Result<()> {
        self.open = Open::Nothing;
        self.page.begin(kind, out)?;
        self.write(depth, parts, out)?;
        self.page.end_line(out)
    }

    fn write(&mut self, depth: usize, parts: &[(&Printable, Style)], out: &mut dyn Write) -> io::Result<()> {
        self.page.write(&indent(depth), NORMAL, out)?;
        parts.iter().try_for_each(|(text, style)| self.page.write(text, *style, out))
    }
}

fn indent(depth: usize) -> Printable {
    Printable::join(std::iter::repeat_n("  ".into(), depth), "")
}
