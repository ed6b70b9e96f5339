//! A laboratory for real agent CLIs: each runs in a HOME of its own, in a clean environment, against a model provider that
//! plays a scenario.
//!
//! - [`Agent`]: one of the four, and what a scenario calls by another name on it.
//! - [`TestEnv`]: the home, the project, the provider, and a runtime to drive the agent with.
//! - [`Live`]: a run under way; [`Recording`]: what it said and what the model was asked.
//! - [`TestSession`]: a session under way, whose turns are checked like runs.
//! - [`Trace`]: the processes of a run, found by a variable in their environment, wherever they have moved to.
//!
//! Every run that ends is checked here: its stream keeps the rules, in memory and as NDJSON, and no process outlives it.
//! What it said is printed, which test runners show when the test fails.

mod agents;
mod live;
mod recording;
mod test_env;
mod test_session;
mod trace;

pub use agents::{AGENTS, Agent};
pub use live::Live;
pub use recording::Recording;
pub use test_env::TestEnv;
pub use test_session::{TestSession, request_of};
pub use trace::{Process, Trace};

use std::time::Duration;

/// How long a test waits for what should happen at once, on a machine that is busy with other things.
pub const BOUND: Duration = Duration::from_secs(30);

/// Characters of a line that are printed.
const PRINTED: usize = 2000;

/// How long a run may take.
pub const DEADLINE: Duration = Duration::from_secs(90);

/// Prints a line that may be long.
#[expect(clippy::print_stderr, reason = "test runners keep it and show it when the test fails")]
fn print(line: &str) {
    let short: String = line.chars().take(PRINTED).collect();
    let more = if short.len() < line.len() { "…" } else { "" };
    eprintln!("{short}{more}");
}
