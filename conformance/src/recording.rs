//! The events of a finished run, and the requests to the model.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use teamster::RunResult;
use teamster::event::{Delta, Event, Failure, Init, ToolResult, ToolUse, Warning, WarningCode};
use teamster_testkit::check;
use teamster_testkit::provider::ModelRequest;

/// A finished run whose stream was checked.
#[derive(Debug)]
pub struct Recording {
    /// All events.
    pub events: Vec<Event>,
    /// The result in the last event.
    pub result: RunResult,
    /// The requests to the model since the run started.
    pub requests: Vec<Arc<ModelRequest>>,
}

impl Recording {
    /// Checks the stream, in memory and as NDJSON.
    pub(crate) fn check(events: Vec<Event>, requests: Vec<Arc<ModelRequest>>) -> Result<Self> {
        let lines = events.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        if let Err(violations) = check::check(&events) {
            bail!("the stream violates its rules: {violations:#?}");
        }
        match check::check_ndjson(&lines.join("\n")) {
            Ok(read) => ensure!(read == events, "the events differ when they are read back from NDJSON"),
            Err(violations) => bail!("the stream violates its rules as NDJSON: {violations:#?}"),
        }
        let Some(Event::Done(done)) = events.last() else { bail!("the last event is not `done`") };
        let result = done.result.clone();
        Ok(Self { events, result, requests })
    }

    /// Returns the `init` event.
    pub fn init(&self) -> Result<&Init> {
        let init = self.events.iter().find_map(|event| match event {
            Event::Init(init) => Some(&**init),
            _ => None,
        });
        init.context("no `init` event")
    }

    /// Returns the text deltas, including those of subagents.
    pub fn texts(&self) -> Vec<&Delta> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Text(delta) => Some(delta),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the reasoning, concatenated.
    pub fn thinking(&self) -> String {
        let deltas = self.events.iter().filter_map(|event| match event {
            Event::Thinking(delta) => Some(delta.text.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    /// Returns the tool calls, each with its result, in the order of the calls.
    pub fn tools(&self) -> Vec<(&ToolUse, &ToolResult)> {
        let result = |tool: &ToolUse| {
            self.events.iter().find_map(|event| match event {
                Event::ToolResult(result) if result.tool_id == tool.tool_id => Some(&**result),
                _ => None,
            })
        };
        let calls = self.events.iter().filter_map(|event| match event {
            Event::ToolUse(tool) => Some((&**tool, result(tool)?)),
            _ => None,
        });
        calls.collect()
    }

    /// Returns the only tool call, with its result.
    pub fn only_tool(&self) -> Result<(&ToolUse, &ToolResult)> {
        match self.tools()[..] {
            [only] => Ok(only),
            ref tools => bail!("{} tool calls instead of one", tools.len()),
        }
    }

    /// Returns the warnings with this code.
    pub fn warnings(&self, code: &WarningCode) -> Vec<&Warning> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning(warning) if warning.code == *code => Some(&**warning),
            _ => None,
        });
        warnings.collect()
    }

    /// Returns the `error` event.
    pub fn failure(&self) -> Result<&Failure> {
        let failure = self.events.iter().find_map(|event| match event {
            Event::Error(failure) => Some(&**failure),
            _ => None,
        });
        failure.context("the run did not fail")
    }

    /// Returns the newest prompt of the request at this index: the user's texts without those of the agent.
    pub fn prompts(&self, request: usize) -> Result<Vec<&str>> {
        Ok(self.requests.get(request).with_context(|| format!("there is no request {request}"))?.prompts())
    }
}
