//! The styles of the format `pretty`.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

use crate::printable::Printable;

pub(super) const NORMAL: Style = Style::new();
pub(super) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(super) const THOUGHT: Style = Style::new().dimmed().italic();
pub(crate) const BULLET: Style = AnsiColor::Cyan.on_default();
pub(super) const GOOD: Style = AnsiColor::Green.on_default();
pub(super) const BAD: Style = AnsiColor::Red.on_default();
pub(super) const CAUTION: Style = AnsiColor::Yellow.on_default().dimmed();

/// Shorter durations are not shown.
pub(super) const NOTICEABLE: Duration = Duration::from_millis(100);

/// Returns the indentation of a nesting depth.
pub(super) fn indent(depth: usize) -> Printable {
    Printable::join(std::iter::repeat_n("  ".into(), depth), "")
}
