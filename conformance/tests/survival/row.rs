//! The table as data: rows, columns, and what is expected where they meet.

use std::time::Duration;

use teamster_conformance::{AGENTS, Agent};

use crate::fault::Fault;
use crate::place::Place;

/// Who plays the CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// The testkit's fake agent, which speaks like Claude Code.
    Fake,
    /// A real CLI.
    Real(&'static Agent),
}

/// A fault.
#[derive(Debug)]
pub(crate) struct Row {
    /// The end of its tests' names.
    pub(crate) id: &'static str,
    /// The fault, as the table says it.
    pub(crate) fault: &'static str,
    /// How it is made.
    pub(crate) make: fn(&Place) -> Fault,
    cells: Vec<(Column, Expected)>,
    elsewhere: &'static str,
}

/// What a cell asserts, beside what every cell asserts: no process left, no file left, no byte lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) end: End,
    /// From the moment of the fault to the end.
    pub(crate) within: Duration,
    /// How many processes live on, since the request wants it.
    pub(crate) kept: usize,
}

impl Expected {
    const fn new(end: End, seconds: u64) -> Self {
        Self { end, within: Duration::from_secs(seconds), kept: 0 }
    }

    /// So many processes live on.
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
    /// Exactly one `done`; the agent says itself whether it could go on.
    Either(&'static str),
    /// Nobody is there to read a `done`.
    Unread,
}

/// It goes well.
pub(crate) const fn success(seconds: u64) -> Expected {
    Expected::new(End::Success, seconds)
}

/// It ends with this code.
pub(crate) const fn error(code: &'static str, seconds: u64) -> Expected {
    Expected::new(End::Error(code), seconds)
}

/// It goes well or ends with this code, as it happens.
pub(crate) const fn either(code: &'static str, seconds: u64) -> Expected {
    Expected::new(End::Either(code), seconds)
}

/// Nobody reads the end.
pub(crate) const fn unread(seconds: u64) -> Expected {
    Expected::new(End::Unread, seconds)
}

impl Column {
    /// All columns, in the table's order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Fake).chain(AGENTS.iter().map(Self::Real))
    }

    /// The beginning of its tests' names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fake => "fake",
            Self::Real(agent) => agent.name,
        }
    }

    /// Its head in the table.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fake => "fake agent",
            Self::Real(agent) => agent.title,
        }
    }
}

impl Row {
    pub(crate) fn new(id: &'static str, fault: &'static str, make: fn(&Place) -> Fault) -> Self {
        Self { id, fault, make, cells: Vec::new(), elsewhere: "" }
    }

    /// What is expected of the fake agent.
    pub(crate) fn fake(self, expected: Expected) -> Self {
        self.cell(Column::Fake, expected)
    }

    /// What is expected of each real CLI.
    pub(crate) fn real(self, expected: Expected) -> Self {
        AGENTS.iter().fold(self, |row, agent| row.cell(Column::Real(agent), expected))
    }

    /// What is expected of one real CLI.
    pub(crate) fn on(self, name: &str, expected: Expected) -> Self {
        AGENTS
            .iter()
            .filter(|agent| agent.name == name)
            .fold(self, |row, agent| row.cell(Column::Real(agent), expected))
    }

    /// What is expected everywhere.
    pub(crate) fn everywhere(self, expected: Expected) -> Self {
        self.fake(expected).real(expected)
    }

    /// Why the other cells are empty.
    pub(crate) fn elsewhere(mut self, why: &'static str) -> Self {
        self.elsewhere = why;
        self
    }

    /// What is expected in a column, if the fault can be made there.
    pub(crate) fn expected(&self, column: Column) -> Option<Expected> {
        // The last word counts.
        self.cells.iter().rev().find_map(|(of, expected)| (*of == column).then_some(*expected))
    }

    /// What stands in an empty cell.
    pub(crate) fn reason(&self) -> &'static str {
        self.elsewhere
    }

    fn cell(mut self, column: Column, expected: Expected) -> Self {
        self.cells.push((column, expected));
        self
    }
}
