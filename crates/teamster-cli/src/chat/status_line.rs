//! The lines below the output: the input box, notices, and the status of the conversation.

use anstyle::{AnsiColor, Style};

use super::command::name_of;
use super::state::Chat;
use crate::input::View;
use crate::live_area::{Content, Size};
use crate::path_text::home_relative;
use crate::printable::Printable;

const DIM: Style = Style::new().dimmed();
const NOTICE: Style = AnsiColor::Yellow.on_default();

/// The smallest number of rows of the input box, if its text has as many.
const MIN_ROWS: usize = 3;

impl Chat<'_> {
    /// Shows the input box and the status of the conversation. Without a live area, shows the prompt if a line is expected.
    pub(super) fn show(&mut self) {
        if self.page.is_live() {
            let content = self.content(Size::of_stdout());
            self.page.show_input(content);
        } else if self.turn.is_none()
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
        let View { mut lines, cursor } = self.input.view(width, (size.rows / 3).max(MIN_ROWS));
        if let Some(notice) = &self.notice {
            lines.extend(notice.rows(width).into_iter().map(|row| row.styled(NOTICE)));
        }
        lines.push(self.status().cut(width).styled(DIM));
        Content { lines, cursor: Some(cursor) }
    }

    /// Returns agent, model, permission mode, directory, context, tokens and cost, as far as they are known.
    fn status(&self) -> Printable {
        let chosen = self.plan.request.model.as_deref().map(Printable::exact);
        let parts = [
            Some(Printable::exact(&self.plan.agent)),
            chosen.or_else(|| self.model.clone()),
            Some(name_of(self.plan.request.permissions.mode).into()),
            Some(home_relative(&self.directory)),
            self.totals.in_short(),
        ];
        Printable::join(parts.into_iter().flatten(), " · ")
    }
}
