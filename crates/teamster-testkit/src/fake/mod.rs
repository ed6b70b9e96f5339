//! A fake agent CLI that plays a script: the test chooses every line, fault and process.
//!
//! The binary `teamster-fake-agent` accepts any arguments, so it can replace the CLI of any agent
//! (`cli_path`). It reads its [`Script`] from the environment variable [`SCRIPT_ENV`], as JSON or
//! as the path of a JSON file.
//!
//! ```
//! use serde_json::json;
//! use std::time::Duration;
//! use teamster_testkit::fake::{Child, Script, Signal};
//!
//! // Responds like Claude Code, and leaves a process that keeps stdout open and ignores SIGTERM.
//! let left_behind = Script::new().ignore(Signal::Term).ready().hang();
//! let script = Script::new()
//!     .claude_init()
//!     .spawn(Child::new(left_behind).session())
//!     .claude_text("Hello")
//!     .claude_result("Hello")
//!     .read_to_end();
//!
//! // Prints an unknown line and fails.
//! let broken = Script::new().line(json!({"type": "surprise"})).sleep(Duration::from_millis(5)).exit(3);
//! assert_eq!(broken.to_json(), r#"[{"line":{"type":"surprise"}},{"sleepMs":5},{"exit":3}]"#);
//! ```
//!
//! # Recordings
//! [`Script::of_recording`] converts the recording of a real CLI into a script. It writes the same
//! output in the same order, each part once as much standard input has arrived as in the recording.
//!
//! # Scenarios
//! A [`Scenario`] lists what an agent does in each turn, in terms that are the same for all agents.
//! It is played in the dialect of the requested CLI: see `docs/fake.md`.
//!
//! # How a script is played
//! - Steps run in order. When a step ends, its output has left the process. After the last step the
//!   process exits with code 0.
//! - [`Step::OnSignal`] and [`Step::OnLine`] install a script that runs beside the main one on each
//!   signal or matching line. An empty script ignores the signal.
//! - Standard input is not read before a step needs it. From then on it is read to its end in the
//!   background.
//! - A fake agent that cannot continue (no script, nothing reads its output) prints the reason to
//!   stderr and exits with [`EXIT_SCRIPT_ERROR`].

mod claude;
#[cfg(feature = "servers")]
mod cli_server;
mod pace;
mod play;
mod recorded;
#[cfg(feature = "servers")]
mod recorded_server;
mod scenario;
mod script;
mod stdin;

use std::io;

pub use claude::CLAUDE_SESSION;
pub use pace::Pace;
pub use play::play;
pub use recorded::{NoSuchProcess, play_recording};
pub use scenario::{Scenario, ScenarioError, ScenarioRun, answer_version};
pub use script::{Child, Placement, Script, Signal, Step};

/// The environment variable that contains the script.
pub const SCRIPT_ENV: &str = "TEAMSTER_FAKE_SCRIPT";

/// The environment variable with the path of a [`Scenario`] to play instead of a script. [`CLI_ENV`] names the CLI.
pub const SCENARIO_ENV: &str = "TEAMSTER_FAKE_SCENARIO";

/// The environment variable that names the CLI whose format a scenario is played in: `claude`, `codex`, `gemini` or `opencode`.
pub const CLI_ENV: &str = "TEAMSTER_FAKE_CLI";

/// The exit code of a fake agent that cannot play its script.
pub const EXIT_SCRIPT_ERROR: i32 = 70;

/// Reads a script, given as JSON text or as the path of a file.
///
/// # Errors
/// Fails if the file cannot be read, or if the text is not a script.
pub fn read_script(given: &str) -> io::Result<Script> {
    let text = if given.trim_start().starts_with('[') { given.to_owned() } else { std::fs::read_to_string(given)? };
    Ok(serde_json::from_str(&text)?)
}
