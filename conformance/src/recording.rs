//! What a run said, and what the model was asked meanwhile.

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use teamster::RunResult;
use teamster::event::{Delta, Event, Failure, Init, ToolResult, ToolUse, Warning, WarningCode};
use teamster_testkit::check;
use teamster_testkit::provider::ModelRequest;

/// A run that has ended, its stream checked.
#[derive(Debug)]
pub struct Recording {
    /// Everything it said.
    pub events: Vec<Event>,
    /// What it came to.
    pub result: RunResult,
    /// What the model was asked since the run began.
    pub requests: Vec<Arc<ModelRequest>>,
}

impl Recording {
    pub(crate) fn check(events: Vec<Event>, requests: Vec<Arc<ModelRequest>>) -> Result<Self> {
        let lines = events.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        if let Err(violations) = check::check(&events) {
            bail!("the stream breaks its rules: {violations:#?}");
        }
        match check::check_ndjson(&lines.join("\n")) {
            Ok(read) => ensure!(read == events, "the events read back from NDJSON are others"),
            Err(violations) => bail!("the stream breaks its rules as NDJSON: {violations:#?}"),
        }
        let Some(Event::Done(done)) = events.last() else { bail!("no done at the end") };
        let result = done.result.clone();
        Ok(Self { events, result, requests })
    }

    /// What the agent said of itself.
    pub fn init(&self) -> Result<&Init> {
        let init = self.events.iter().find_map(|event| match event {
            Event::Init(init) => Some(&**init),
            _ => None,
        });
        init.context("there is no init")
    }

    /// The deltas of text, those of subagents too.
    pub fn texts(&self) -> Vec<&Delta> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Text(delta) => Some(delta),
            _ => None,
        });
        texts.collect()
    }

    /// The reasoning, concatenated.
    pub fn thinking(&self) -> String {
        let deltas = self.events.iter().filter_map(|event| match event {
            Event::Thinking(delta) => Some(delta.text.as_str()),
            _ => None,
        });
        deltas.collect()
    }

    /// The tool calls, each with its result, in the order of the calls.
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

    /// The only tool call, with its result.
    pub fn only_tool(&self) -> Result<(&ToolUse, &ToolResult)> {
        match self.tools()[..] {
            [only] => Ok(only),
            ref tools => bail!("there are {} tool calls instead of one", tools.len()),
        }
    }

    /// The warnings with this code.
    pub fn warnings(&self, code: &WarningCode) -> Vec<&Warning> {
        let warnings = self.events.iter().filter_map(|event| match event {
            Event::Warning(warning) if warning.code == *code => Some(&**warning),
            _ => None,
        });
        warnings.collect()
    }

    /// Why the run failed.
    pub fn failure(&self) -> Result<&Failure> {
        let failure = self.events.iter().find_map(|event| match event {
            Event::Error(failure) => Some(&**failure),
            _ => None,
        });
        failure.context("the run did not fail")
    }

    /// The newest prompt of the request with this number, counted from zero: the user's texts without the agent's own.
    pub fn prompts(&self, request: usize) -> Result<Vec<&str>> {
        Ok(self.requests.get(request).with_context(|| format!("there is no request {request}"))?.prompts())
    }
}
