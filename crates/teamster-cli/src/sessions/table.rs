//! A list of sessions as text.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anstyle::Style;
use teamster::sessions::StoredSession;

use crate::printable::{Printable, printable};
use crate::render::pretty::closing::dollars;
use crate::render::width_of_stdout;

/// The minimum characters of an id. Fewer identify few sessions.
const MIN_ID: usize = 8;

/// The maximum columns of a directory.
const MAX_DIRECTORY: usize = 30;

/// The minimum columns of a title.
const MIN_TITLE: usize = 16;

const HEADING: Style = Style::new().dimmed();

/// How a list of sessions is shown.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) now: SystemTime,
    /// The columns of the terminal. Without them, nothing is shortened.
    pub(crate) width: Option<usize>,
    pub(crate) with_directory: bool,
}

impl Table {
    /// Returns the table for standard output.
    pub(crate) fn of_stdout(with_directory: bool) -> Self {
        let width = io::stdout().is_terminal().then(width_of_stdout);
        Self { now: SystemTime::now(), width, with_directory }
    }

    /// Returns the table for a list in an error, on standard error.
    pub(super) fn of_error() -> Self {
        let width = io::stderr().is_terminal().then(|| width_of_stdout().saturating_sub(3));
        Self { now: SystemTime::now(), width, with_directory: true }
    }

    /// Returns the heading and a line for each session.
    pub(crate) fn lines(&self, sessions: &[StoredSession]) -> Vec<Printable> {
        let [heading, rows @ ..] = &self.rows(sessions)[..] else { return Vec::new() };
        let mut lines = vec![heading.styled(HEADING)];
        lines.extend(rows.iter().cloned());
        lines
    }

    /// Returns the heading and a line for each session, without styles.
    pub(crate) fn rows(&self, sessions: &[StoredSession]) -> Vec<Printable> {
        let ids = if self.width.is_some() { short_ids(sessions) } else { whole_ids(sessions) };
        let has_cost = sessions.iter().any(|session| session.total_cost_usd.is_some());
        let mut columns = vec![Column::new("AGENT", false, sessions, |session| Printable::exact(&session.agent))];
        let mut id_column = Column::new("SESSION", false, &[], |_| Printable::default());
        id_column.cells.extend(ids.iter().map(|id| Printable::exact(id)));
        columns.push(id_column);
        columns.push(Column::new("AGE", true, sessions, |session| self.age(session)));
        columns.push(Column::new("TURNS", true, sessions, |session| {
            session.turns.map_or_else(|| "?".into(), |turns| printable!("{}", turns))
        }));
        if has_cost {
            columns.push(Column::new("COST", true, sessions, |session| {
                session.total_cost_usd.map_or_else(|| "–".into(), dollars)
            }));
        }
        if self.with_directory {
            columns.push(Column::new("DIRECTORY", false, sessions, |session| self.directory(session)));
        }
        let used: usize = columns.iter().map(|column| column.width() + 2).sum();
        let room = self.width.map(|width| width.saturating_sub(used + 1).max(MIN_TITLE));
        let title = |session: &StoredSession| {
            let title = session.title.as_ref().map_or_else(|| "–".into(), |title| Printable::message(title));
            room.map_or_else(|| title.clone(), |room| title.cut(room))
        };
        let titles = Column::new("TITLE", false, sessions, title);
        (0..=sessions.len())
            .map(|row| {
                let mut line = Printable::default();
                for column in &columns {
                    column.write(row, &mut line);
                }
                titles.cells.get(row).inspect(|title| line.push(title));
                line
            })
            .collect()
    }

    fn age(&self, session: &StoredSession) -> Printable {
        session.updated_at.map_or_else(|| "?".into(), |time| age(time, self.now))
    }

    fn directory(&self, session: &StoredSession) -> Printable {
        let Some(directory) = &session.directory else { return "?".into() };
        match self.width {
            Some(_) => directory_in_short(directory),
            None => printable!("{}", directory),
        }
    }
}

/// A column with its heading.
struct Column {
    cells: Vec<Printable>,
    is_right: bool,
}

impl Column {
    fn new(
        heading: &'static str,
        is_right: bool,
        sessions: &[StoredSession],
        cell: impl Fn(&StoredSession) -> Printable,
    ) -> Self {
        Self { cells: std::iter::once(heading.into()).chain(sessions.iter().map(cell)).collect(), is_right }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(Printable::columns).max().unwrap_or(0)
    }

    /// Appends a cell and the space after it.
    fn write(&self, row: usize, line: &mut Printable) {
        let Some(cell) = self.cells.get(row) else { return };
        let spaces = " ".repeat(self.width() - cell.columns());
        if self.is_right {
            line.push_of_escaped(&spaces);
            line.push(cell);
        } else {
            line.push(cell);
            line.push_of_escaped(&spaces);
        }
        line.push_of_escaped("  ");
    }
}

fn whole_ids(sessions: &[StoredSession]) -> Vec<String> {
    sessions.iter().map(|session| session.id.as_str().to_owned()).collect()
}

/// Returns the shortest start of each id that identifies it among the sessions of its agent.
pub(crate) fn short_ids(sessions: &[StoredSession]) -> Vec<String> {
    let shortest = |session: &StoredSession| {
        let id = session.id.as_str();
        let others = sessions.iter().filter(|other| other.agent == session.agent && other.id != session.id);
        let in_common = |other: &StoredSession| {
            id.chars().zip(other.id.as_str().chars()).take_while(|(one, other)| one == other).count()
        };
        let needed = others.map(in_common).max().unwrap_or(0) + 1;
        id.chars().take(needed.max(MIN_ID)).collect()
    };
    sessions.iter().map(shortest).collect()
}

/// Returns the time since a session was changed.
pub(crate) fn age(time: SystemTime, now: SystemTime) -> Printable {
    let seconds = now.duration_since(time).unwrap_or(Duration::ZERO).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if minutes == 0 => "now".into(),
        () if hours == 0 => printable!("{} min", minutes),
        () if days == 0 => printable!("{} h", hours),
        () if days == 1 => "1 day".into(),
        () if days < 730 => printable!("{} days", days),
        () => printable!("{} years", days / 365),
    }
}

/// Returns the end of a path, with `~` for the home directory.
pub(crate) fn directory_in_short(path: &Path) -> Printable {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    shorten(path, home.as_deref())
}

fn shorten(path: &Path, home: Option<&Path>) -> Printable {
    let shown = match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => PathBuf::from("~"),
        Some(rest) => Path::new("~").join(rest),
        None => path.to_owned(),
    };
    let whole = printable!("{}", &shown);
    if whole.columns() <= MAX_DIRECTORY {
        return whole;
    }
    let mut end = PathBuf::new();
    for part in shown.components().rev() {
        let part = PathBuf::from(part.as_os_str());
        // To join an empty path would add a slash.
        let longer = if end.as_os_str().is_empty() { part } else { part.join(&end) };
        if printable!("…/{}", &longer).columns() > MAX_DIRECTORY {
            break;
        }
        end = longer;
    }
    if end.as_os_str().is_empty() { whole.cut(MAX_DIRECTORY) } else { printable!("…/{}", &end) }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn session(agent: &str, id: &str, title: &str) -> StoredSession {
        let mut session = StoredSession::new(agent, id);
        session.title = Some(title.into());
        session.updated_at = Some(SystemTime::UNIX_EPOCH);
        session.directory = Some("/srv/app".into());
        session
    }

    fn sessions() -> Vec<StoredSession> {
        let mut sessions = vec![
            session("claude", "0ba1884a-861b-4c99-8ee9-b9763d77fa36", "Fix the\u{1b}[2J test"),
            session("codex", "01a20c62-1822-7a41-bdb3-5d77a3890650", "漢字 as a title"),
            session("codex", "01a20c62-1c00-7a41-bdb3-5d77a3890650", &"long ".repeat(50)),
        ];
        (sessions[0].turns, sessions[1].turns) = (Some(2), Some(120));
        sessions[1].total_cost_usd = Some(0.25);
        sessions
    }

    fn shown(width: Option<usize>, with_directory: bool) -> String {
        let table = Table { now: SystemTime::UNIX_EPOCH + Duration::from_hours(2), width, with_directory };
        Printable::join(table.rows(&sessions()), "\n").to_string()
    }

    #[test]
    fn on_a_terminal_a_list_fits_its_width() {
        assert_snapshot!(shown(Some(80), false));
        assert_snapshot!(shown(Some(80), true));
        let table = Table { now: SystemTime::UNIX_EPOCH, width: Some(80), with_directory: true };
        assert!(table.rows(&sessions()).iter().all(|row| row.columns() < 80));
    }

    #[test]
    fn on_a_pipe_nothing_is_shortened() {
        let shown = shown(None, true);
        assert!(shown.contains("01a20c62-1822-7a41-bdb3-5d77a3890650") && shown.contains("/srv/app"), "{shown}");
        assert!(shown.trim_end().ends_with("long long"), "{shown}");
    }

    #[test]
    fn a_short_id_identifies_its_session() {
        assert_eq!(short_ids(&sessions()), ["0ba1884a", "01a20c62-18", "01a20c62-1c"]);
    }

    #[test]
    fn an_age_has_one_unit() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_hours(87_600);
        let ages: Vec<String> = [0, 59, 60, 3599, 3600, 86_399, 86_400, 30 * 86_400, 900 * 86_400]
            .map(|seconds| age(now - Duration::from_secs(seconds), now).to_string())
            .into();
        assert_snapshot!(ages.join(", "), @"now, now, 1 min, 59 min, 1 h, 23 h, 1 day, 30 days, 2 years");
        assert_eq!(age(now + Duration::from_secs(9), now).as_str(), "now");
    }

    #[test]
    fn of_a_long_directory_the_end_is_shown() {
        let short = |path: &str| shorten(Path::new(path), Some(Path::new("/home/me"))).to_string();
        assert_eq!(short("/home/me"), "~");
        assert_eq!(short("/home/me/src/app"), "~/src/app");
        assert_eq!(short("/srv/some/very/long/path/to/an/application"), "…/long/path/to/an/application");
        assert_eq!(short(&format!("/{}", "x".repeat(50))).chars().count(), MAX_DIRECTORY);
    }
}
