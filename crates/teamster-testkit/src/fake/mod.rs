//! An agent CLI that plays a script: every line, fault and process of it is chosen by the test.
//!
//! The binary `teamster-fake-agent` takes any arguments, so that it can stand in the place of any agent's CLI (`cli_path`).
//! What it does stands in the environment variable [`SCRIPT_ENV`]: a [`Script`] as JSON, or the path of a file with one.
//!
//! ```
//! use serde_json::json;
//! use std::time::Duration;
//! use teamster_testkit::fake::{Child, Script, Signal};
//!
//! // Answers like Claude Code, and leaves a process behind that keeps stdout open and ignores SIGTERM.
//! let left_behind = Script::new().ignore(Signal::Term).ready().hang();
//! let script = Script::new()
//!     .claude_init()
//!     .spawn(Child::new(left_behind).session())
//!     .claude_text("Hello")
//!     .claude_result("Hello")
//!     .read_to_end();
//!
//! // Says nothing that makes sense, and fails.
//! let broken = Script::new().line(json!({"type": "surprise"})).sleep(Duration::from_millis(5)).exit(3);
//! assert_eq!(broken.to_json(), r#"[{"line":{"type":"surprise"}},{"sleepMs":5},{"exit":3}]"#);
//! ```
//!
//! # Recordings
//! [`Script::of_recording`] makes a script of what a real CLI did once: the same lines in the same order, each when as much has
//! come on standard input as had come then.
//!
//! # Stories
//! A [`Story`] says what an agent does in words that are no agent's own, and is told in the form of the CLI that is asked for:
//! `docs/fake.md`.
//!
//! # How a script is played
//! - Step after step; what a step writes has left the process when the step ends. After the last one it exits with code 0.
//! - [`Step::OnSignal`] and [`Step::OnLine`] play a script of their own whenever something happens, beside the main one. A
//!   signal with an empty script is ignored.
//! - Standard input is not touched before a step asks for it. From then on it is read to its end in the background.
//! - A fake that cannot go on (no script, nobody reads its output) says why on stderr and exits with [`EXIT_BROKEN`].

mod claude;
#[cfg(feature = "servers")]
mod http;
mod play;
mod recorded;
mod script;
#[cfg(feature = "servers")]
mod served;
mod stdin;
mod story;

use std::io;

pub use claude::CLAUDE_SESSION;
pub use play::play;
pub use recorded::{NoSuchProcess, Pace, play_recording};
pub use script::{Child, Home, Script, Signal, Step};
pub use story::{Play, Story, StoryError, answer_version};

/// The environment variable with the script.
pub const SCRIPT_ENV: &str = "TEAMSTER_FAKE_SCRIPT";

/// How a fake exits that cannot play its script.
pub const EXIT_BROKEN: i32 = 70;

/// Reads a script that is given inline or as the path of a file.
///
/// # Errors
/// When the file cannot be read, or the text is no script.
pub fn read_script(given: &str) -> io::Result<Script> {
    let text = if given.trim_start().starts_with('[') { given.to_owned() } else { std::fs::read_to_string(given)? };
    Ok(serde_json::from_str(&text)?)
}
