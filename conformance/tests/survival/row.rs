//! The table as data: rows, columns, and what is expected where they meet.

use std::time::Duration;

use teamster_conformance::{AGENTS, Agent};

use crate::cell_env::CellEnv;
use crate::fault::Fault;

/// The CLI of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// The testkit's fake agent, in the protocol of Claude Code.
    Fake,
    /// A real CLI.
    Real(&'static Agent),
}

/// A fault.
#[derive(Debug)]
pub(crate) struct Row {
    /// The end of its tests' names.
    pub(crate) id: &'static str,
    /// The fault, as in the table.
    pub(crate) fault: &'static str,
    /// Returns the description of the fault.
    pub(crate) make: fn(&CellEnv) -> Fault,
    cells: Vec<(Column, Expected)>,
    elsewhere: &'static str,
}

/// What a cell asserts, in addition to the assertions of all cells: no process left, no file left, no byte lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) end: End,
    /// The time limit from the fault to the end.
    pub(crate) within: Duration,
    /// The number of processes that stay alive, as the request demands.
    pub(crate) kept: usize,
}

impl Expected {
    const fn new(end: End, seconds: u64) -> Self {
        Self { end, within: Duration::from_secs(seconds), kept: 0 }
    }

    /// Sets the number of processes that stay alive.
    pub(crate) const fn keeping(mut self, kept: usize) -> Self {
        self.kept = kept;
        self
    }
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Exactly one `done`, without an error.
    Success,
    /// Exactly one `done`, with this code.
    Error(&'static str),
    /// Exactly one `done`, without an error or with this code.
    Either(&'static str),
    /// No program reads a `done`.
    Unread,
}

/// Expects success.
pub(crate) const fn success(seconds: u64) -> Expected {
    Expected::new(End::Success, seconds)
}

/// Expects this error code.
pub(crate) const fn error(code: &'static str, seconds: u64) -> Expected {
    Expected::new(End::Error(code), seconds)
}

/// Expects success or this error code.
pub(crate) const fn either(code: &'static str, seconds: u64) -> Expected {
    Expected::new(End::Either(code), seconds)
}

/// Expects an end that no program reads.
pub(crate) const fn unread(seconds: u64) -> Expected {
    Expected::new(End::Unread, seconds)
}

impl Column {
    /// Returns all columns, in the order of the table.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Fake).chain(AGENTS.iter().map(Self::Real))
    }

    /// Returns the start of the names of its tests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fake => "fake",
            Self::Real(agent) => agent.name,
        }
    }

    /// Returns the heading in the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fake => "fake agent",
            Self::Real(agent) => agent.title,
        }
    }
}

impl Row {
    pub(crate) fn new(id: &'static str, fault: &'static str, make: fn(&CellEnv) -> Fault) -> Self {
        Self { id, fault, make, cells: Vec::new(), elsewhere: "" }
    }

    /// Sets the cell of the fake agent.
    pub(crate) fn fake(self, expected: Expected) -> Self {
        self.cell(Column::Fake, expected)
    }

    /// Sets the cells of all real CLIs.
    pub(crate) fn real(self, expected: Expected) -> Self {
        AGENTS.iter().fold(self, |row, agent| row.cell(Column::Real(agent), expected))
    }

    /// Sets the cell of one real CLI.
    pub(crate) fn on(self, name: &str, expected: Expected) -> Self {
        AGENTS
            .iter()
            .filter(|agent| agent.name == name)
            .fold(self, |row, agent| row.cell(Column::Real(agent), expected))
    }

    /// Sets all cells.
    pub(crate) fn everywhere(self, expected: Expected) -> Self {
        self.fake(expected).real(expected)
    }

    /// Sets the text of the empty cells.
    pub(crate) fn elsewhere(mut self, why: &'static str) -> Self {
        self.elsewhere = why;
        self
    }

    /// Returns the cell of a column, if there is one.
    pub(crate) fn expected(&self, column: Column) -> Option<Expected> {
        // The last one overrides the others.
        self.cells.iter().rev().find_map(|(of, expected)| (*of == column).then_some(*expected))
    }

    /// Returns the text of the empty cells.
    pub(crate) fn reason(&self) -> &'static str {
        self.elsewhere
    }

    fn cell(mut self, column: Column, expected: Expected) -> Self {
        self.cells.push((column, expected));
        self
    }
}
