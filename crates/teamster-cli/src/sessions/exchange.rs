//! The last prompt of a resumed session and its answer.

use std::time::SystemTime;

use anstyle::Style;
use teamster::sessions::StoredSession;

use super::table;
use crate::printable::{Printable, printable};

/// The number of lines of a prompt and of an answer that are shown.
const PROMPT_LINES: usize = 4;
const ANSWER_LINES: usize = 10;

/// The maximum columns of a line.
const MAX_WIDTH: usize = 100;

const QUIET: Style = Style::new().dimmed();

/// A session that is resumed, as its store knows it.
#[derive(Clone, Debug)]
pub(crate) struct ResumedSession(pub(super) StoredSession);

impl ResumedSession {
    /// Formats what identifies the session, its last prompt, and the start of the answer.
    pub(crate) fn summary(&self, width: usize) -> Printable {
        self.summary_at(width, SystemTime::now())
    }

    fn summary_at(&self, width: usize, now: SystemTime) -> Printable {
        let Self(session) = self;
        let width = width.saturating_sub(1).min(MAX_WIDTH);
        let mut facts = vec![printable!("session {}", Printable::exact(session.id.as_str()))];
        facts.extend(session.turns.map(|turns| printable!("{} {}", turns, if turns == 1 { "turn" } else { "turns" })));
        facts.extend(session.updated_at.map(|time| match table::age(time, now) {
            age if age.as_str() == "now" => age,
            age => printable!("{} ago", age),
        }));
        let mut lines = vec![Printable::join(facts, ", ").cut(width)];
        if let Some(prompt) = &session.last_exchange.prompt {
            lines.extend(shown(prompt, PROMPT_LINES, "> ", width));
        }
        if let Some(answer) = &session.last_exchange.answer {
            lines.extend(shown(answer, ANSWER_LINES, "  ", width));
        }
        Printable::join(lines.iter().map(|line| line.styled(QUIET)), "\n")
    }
}

/// Returns the first lines of a text that are not blank, and the number of the others.
fn shown(text: &str, max: usize, first: &'static str, width: usize) -> Vec<Printable> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let start = |row: usize| if row == 0 { first } else { "  " };
    let mut shown: Vec<Printable> = lines
        .iter()
        .take(max)
        .enumerate()
        .map(|(row, line)| printable!("{}{}", start(row), Printable::prose(&line.replace('\t', "    "))).cut(width))
        .collect();
    if lines.len() > max {
        let more = lines.len() - max;
        shown.push(printable!("  … {} more {}", more, if more == 1 { "line" } else { "lines" }));
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_long_exchange_is_folded() {
        let mut session = StoredSession::new("codex", "01a20c62-1822");
        session.turns = Some(2);
        session.updated_at = Some(SystemTime::UNIX_EPOCH);
        session.last_exchange.start("Fix \u{1b}[2Jthis:\n\n\tline 1\nline 2\nline 3\nline 4");
        let answer: Vec<String> = (1..=30).map(|line| format!("{line} {}", "word ".repeat(30))).collect();
        session.last_exchange.answer("m", &answer.join("\n"));
        let summary = ResumedSession(session).summary_at(40, SystemTime::UNIX_EPOCH + Duration::from_mins(10));
        assert_snapshot!(summary.without_styles().as_str());
    }

    #[test]
    fn a_session_without_texts_is_named() {
        let summary = ResumedSession(StoredSession::new("codex", "x")).summary_at(80, SystemTime::UNIX_EPOCH);
        assert_eq!(summary.without_styles().as_str(), "session x");
    }
}
