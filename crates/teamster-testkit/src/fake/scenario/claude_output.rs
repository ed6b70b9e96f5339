//! Filters Claude Code's output lines by output format, and adds the usage figures.

use std::io::{self, Write as _};

use serde_json::{Value, json};
use uuid::Uuid;

use super::arguments::Arguments;
use super::calls::{self, ModelCalls};
use super::error::ScenarioError;
use super::json::{at, put, write};
use crate::fake::claude::CLAUDE_SESSION;
use crate::fake::script::{Script, Step};

/// The cost of one model call, in US dollars.
const COST: f64 = 0.003_55;

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Only the answer.
    Text,
    /// Only the result line, or a list of all lines.
    Document { verbose: bool },
    /// Line by line.
    Lines { partial: bool },
}

/// Writes the lines of a session in the requested format.
#[derive(Debug)]
pub(super) struct Output {
    format: Format,
    pub(super) session: String,
    calls: ModelCalls,
    /// The number of scripts written. Each script gets its own message ids.
    scripts: u32,
    document: Vec<Value>,
}

/// Checks that the requested output format is supported.
pub(super) fn check(arguments: &Arguments) -> Result<(), ScenarioError> {
    match arguments.value("--output-format") {
        None | Some("text" | "json" | "stream-json") => Ok(()),
        Some(_) => Err(ScenarioError::UnsupportedArguments {
            agent: "claude",
            supported: "--output-format must be text, json or stream-json",
        }),
    }
}

impl Output {
    pub(super) fn new(arguments: &Arguments) -> Self {
        let format = match arguments.value("--output-format") {
            Some("stream-json") => Format::Lines { partial: arguments.has("--include-partial-messages") },
            Some("json") => Format::Document { verbose: arguments.has("--verbose") },
            _ => Format::Text,
        };
        let old = arguments.value("--resume").or(arguments.value("-r")).filter(|_| !arguments.has("--fork-session"));
        let session = old.or(arguments.value("--session-id")).map_or_else(calls::session, str::to_owned);
        Self { format, session, calls: ModelCalls::default(), scripts: 0, document: Vec::new() }
    }

    /// Returns the CLI's error message if it rejects the combination of arguments.
    pub(super) fn refusal(&self, arguments: &Arguments) -> Option<&'static str> {
        (matches!(self.format, Format::Lines { .. }) && !arguments.has("--verbose"))
            .then_some("Error: When using --print, --output-format=stream-json requires --verbose")
    }

    pub(super) fn start_turn(&mut self) {
        self.calls.start_turn();
    }

    pub(super) fn script(&mut self, script: &Script) -> io::Result<()> {
        self.scripts += 1;
        let message = format!("msg_fake{}_", self.scripts);
        for step in script.steps() {
            if let Step::Line(line) = step {
                let line = line.to_string().replace(CLAUDE_SESSION, &self.session).replace("msg_fake", &message);
                let mut line = serde_json::from_str(&line)?;
                put(&mut line, "uuid", Uuid::new_v4().to_string().into());
                self.line(line)?;
            }
        }
        Ok(())
    }

    /// Writes a line, if the format includes it.
    pub(super) fn line(&mut self, mut line: Value) -> io::Result<()> {
        let is_event = at(&line, "/type") == "stream_event";
        if is_event && at(&line, "/event/type") == "message_start" {
            self.calls.add();
        }
        if at(&line, "/subtype") == "init" {
            put(&mut line, "cwd", std::env::current_dir()?.to_string_lossy().into());
        }
        let is_result = at(&line, "/type") == "result";
        if is_result {
            self.add_figures(&mut line);
        }
        match self.format {
            Format::Lines { partial } if is_event && !partial => Ok(()),
            Format::Lines { .. } => write(&line),
            Format::Document { .. } | Format::Text if is_event => Ok(()),
            Format::Document { verbose: false } if is_result => write(&line),
            Format::Document { verbose: true } => {
                self.document.push(line);
                if is_result { write(&Value::Array(std::mem::take(&mut self.document))) } else { Ok(()) }
            }
            Format::Text if is_result => {
                writeln!(io::stdout().lock(), "{}", at(&line, "/result").as_str().unwrap_or_default())
            }
            Format::Document { verbose: false } | Format::Text => Ok(()),
        }
    }

    /// Adds the tokens of the turn and the totals of the process.
    fn add_figures(&self, line: &mut Value) {
        let (turn, process) = (self.calls.of_turn(), self.calls.of_process());
        put(
            line,
            "usage",
            json!({
                "input_tokens": 25 * turn, "cache_creation_input_tokens": 100 * turn,
                "cache_read_input_tokens": 50 * turn, "output_tokens": 40 * turn,
            }),
        );
        // The float is exact enough: a process makes fewer than 2^52 calls.
        let cost = (COST * u32::try_from(process).map_or(f64::MAX, f64::from) * 1e8).round() / 1e8;
        let model = json!({
            "inputTokens": 25 * process, "outputTokens": 40 * process, "cacheReadInputTokens": 50 * process,
            "cacheCreationInputTokens": 100 * process, "webSearchRequests": 0, "costUSD": cost,
            "contextWindow": 200_000, "maxOutputTokens": 64_000,
        });
        let models = if process == 0 { json!({}) } else { json!({ "claude-opus-4-8": model }) };
        put(line, "modelUsage", models);
        put(line, "total_cost_usd", cost.into());
        put(line, "num_turns", turn.max(1).into());
    }
}
