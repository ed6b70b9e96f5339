//! The rows of the table, by the kind of fault.

mod caller;
mod end;
mod helpers;
mod host;
mod left;
mod output;
mod start;
mod surroundings;

use std::time::Duration;

use crate::row::Row;

/// A time limit that the cell reaches.
const SHORT: Duration = Duration::from_millis(300);

/// A time limit that the cell does not reach.
const LONG: Duration = Duration::from_mins(10);

/// Returns the rows under their headings.
pub(crate) fn groups() -> [(&'static str, Vec<Row>); 8] {
    [
        ("Processes that the CLI leaves behind", left::rows()),
        ("How the CLI ends, or does not", end::rows()),
        ("What the CLI writes", output::rows()),
        ("A CLI that cannot be started", start::rows()),
        ("Faults of the environment", surroundings::rows()),
        ("What the caller does", caller::rows()),
        ("The host program is killed with SIGKILL", host::rows()),
        ("Teamster's own helper processes are stopped or killed", helpers::rows()),
    ]
}

/// Returns all rows.
pub(crate) fn all() -> impl Iterator<Item = Row> {
    groups().into_iter().flat_map(|(_, rows)| rows)
}
