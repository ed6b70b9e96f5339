//! The lines below the output: the input box, notices, and the status of the conversation.

use anstyle::{AnsiColor, Style};

use super::backend::{Backend, Status};
use super::state::Chat;
use super::usage_totals::UsageParts;
use crate::input::View;
use crate::live_area::{Content, Size};
use crate::printable::Printable;

const DIM: Style = Style::new().dimmed();
const NOTICE: Style = AnsiColor::Yellow.on_default();

/// The smallest number of rows of the input box, if its text has as many.
const MIN_ROWS: usize = 3;

impl<B: Backend> Chat<'_, B> {
    /// Shows the input box and the status of the conversation. Without a live area, shows the prompt if a line is expected.
    pub(super) fn show(&mut self) {
        if self.page.is_live() {
            let content = self.content(Size::of_stdout());
            self.page.show_input(content);
        } else if self.backend.is_ready()
            && !self.is_working()
            && !self.prompt_is_shown
            && self.input.deadline().is_none()
            && self.tasks.is_empty()
        {
            let is_continued = !self.input.text().is_empty();
            self.page.prompt(if is_continued { "  ".into() } else { "> ".into() });
            self.prompt_is_shown = true;
        }
    }

    fn content(&self, size: Size) -> Content {
        let width = size.columns.saturating_sub(1);
        let View { mut lines, cursor } = self.input.view(width, (size.rows / 3).max(MIN_ROWS), size.rows);
        if let Some(notice) = &self.notice {
            lines.extend(notice.rows(width).into_iter().map(|row| row.styled(NOTICE)));
        }
        lines.extend(self.backend.lines(width));
        lines.push(self.status().line(width).styled(DIM));
        Content { lines, cursor: Some(cursor) }
    }

    fn status(&self) -> StatusLine {
        let Status { model, permission, directory } = B::status(self);
        let UsageParts { context, tokens, cost } = self.totals.in_short();
        let agent = Printable::exact(self.backend.agent());
        StatusLine([Some(agent), model.or_else(|| self.model.clone()), permission, directory, context, tokens, cost])
    }
}

/// The status of a conversation: agent, model, permission mode, directory, context, tokens and cost, as far as they are known.
struct StatusLine([Option<Printable>; 7]);

const MODEL: usize = 1;
const DIRECTORY: usize = 3;

/// The parts that are dropped from a line that is too long, the least important one first.
const DROPPED: [usize; 6] = [DIRECTORY, MODEL, 4, 2, 5, 6];

/// The columns of a shortened model.
const MODEL_COLUMNS: usize = 16;

impl StatusLine {
    /// Returns the line of at most this many columns. Directory and model are shortened first, then whole parts are dropped.
    fn line(mut self, width: usize) -> Printable {
        for index in [DIRECTORY, MODEL] {
            if self.joined().columns() > width {
                self.shorten(index);
            }
        }
        for index in DROPPED {
            if self.joined().columns() > width
                && let Some(part) = self.0.get_mut(index)
            {
                *part = None;
            }
        }
        self.joined().cut(width)
    }

    fn joined(&self) -> Printable {
        Printable::join(self.0.iter().flatten().cloned(), " · ")
    }

    /// Reduces a directory to its name, and a model to its name without that of the agent.
    fn shorten(&mut self, index: usize) {
        let agent = self.0.first().cloned().flatten().unwrap_or_default();
        let Some(Some(part)) = self.0.get_mut(index) else { return };
        let text = part.as_str();
        let short = if index == DIRECTORY {
            text.rsplit_once('/').map(|(_, name)| {
                let mut short = Printable::from("…/");
                short.push_of_escaped(name);
                short
            })
        } else {
            let name = text.strip_prefix(agent.as_str()).and_then(|rest| rest.strip_prefix('-')).unwrap_or(text);
            let mut short = Printable::default();
            short.push_of_escaped(name);
            Some(short.cut(MODEL_COLUMNS))
        };
        if let Some(short) = short.filter(|short| short.columns() < part.columns()) {
            *part = short;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_and_model_are_shortened_before_the_least_important_parts_are_dropped() {
        let line = |width| {
            let parts = ["claude", "claude-opus-4-8", "ask", "~/src/app", "context 12% of 200k", "70.1k in, 16.0k out"];
            let parts = parts.into_iter().chain(["$0.0142"]).map(|part| Some(Printable::from(part)));
            let line = StatusLine(parts.collect::<Vec<_>>().try_into().unwrap()).line(width);
            assert!(line.columns() <= width, "{line:?}");
            line.as_str().to_owned()
        };
        let lines = [100, 90, 82, 79, 69, 60, 50, 20, 6, 4].map(line);
        insta::assert_snapshot!(lines.join("\n"), @r"
        claude · claude-opus-4-8 · ask · ~/src/app · context 12% of 200k · 70.1k in, 16.0k out · $0.0142
        claude · opus-4-8 · ask · …/app · context 12% of 200k · 70.1k in, 16.0k out · $0.0142
        claude · opus-4-8 · ask · context 12% of 200k · 70.1k in, 16.0k out · $0.0142
        claude · opus-4-8 · ask · context 12% of 200k · 70.1k in, 16.0k out · $0.0142
        claude · ask · context 12% of 200k · 70.1k in, 16.0k out · $0.0142
        claude · ask · 70.1k in, 16.0k out · $0.0142
        claude · ask · 70.1k in, 16.0k out · $0.0142
        claude · $0.0142
        claude
        cla…
        ");
    }
}
