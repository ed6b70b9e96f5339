//! A tool call of an agent, and the tool as callers see it.

use serde::Serialize;
use serde_json::Value;

use super::wire::{CallFields, Location};
use crate::bounded::EmittedText;
use teamster_types::event::{Event, ToolKind, ToolOutput, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// A tool call, as far as the agent has reported it.
#[derive(Debug, Default)]
pub(in crate::agent) struct Call {
    pub(in crate::agent) id: String,
    /// The name of its tool, if the agent reports it.
    pub(in crate::agent) name: Option<String>,
    /// Whether the name was taken from a title, which the model may have written.
    pub(in crate::agent) is_guess: bool,
    /// A description for people.
    pub(in crate::agent) title: String,
    /// The kind, as ACP names it.
    pub(in crate::agent) kind: String,
    pub(in crate::agent) paths: Vec<String>,
    input: Option<RawJson>,
    content: Vec<RawJson>,
    output: Option<RawJson>,
    /// The part of the displayed text that was emitted while it runs.
    emitted: EmittedText,
    stage: Stage,
    /// The last status that is not pending.
    status: Option<Status>,
    /// The content of its permission request, which describes it.
    description: Option<String>,
    /// Whether its permission was requested.
    is_requested: bool,
    /// Whether it, or a similar call, was permitted.
    pub(super) is_allowed: bool,
}

/// Which events of a call were emitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// None: more updates are expected.
    #[default]
    Pending,
    /// Its `tool_use`.
    Started,
    /// Its `tool_result` too.
    Ended,
}

/// The status of a call in an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    Running,
    Ended { failed: bool },
}

/// How far a call is whose permission was not requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unrequested {
    Started,
    Completed,
}

/// The tool of a call, as callers see it.
#[derive(Debug)]
pub(in crate::agent) struct Tool {
    pub(in crate::agent) name: String,
    /// A second possible name. Deny rules for it apply too.
    pub(in crate::agent) other_name: Option<String>,
    pub(in crate::agent) server: Option<String>,
    pub(in crate::agent) kind: ToolKind,
    pub(in crate::agent) input: RawJson,
}

impl Tool {
    /// Returns the tool's name in rules. A server's tool never has the name of a built-in tool.
    pub(in crate::agent) fn rule_name(&self) -> String {
        match &self.server {
            Some(server) => format!("mcp__{server}__{}", self.name),
            None => self.name.clone(),
        }
    }
}

impl Call {
    pub(super) fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// Merges an update. Returns the status.
    pub(super) fn apply(&mut self, fields: CallFields) -> Status {
        let CallFields { status, title, name, kind, locations, content, raw_input, raw_output, meta, .. } = fields;
        let status = match status.as_deref() {
            Some("in_progress") => Status::Running,
            Some("completed") => Status::Ended { failed: false },
            Some("failed") => Status::Ended { failed: true },
            // The first status is pending. An update without a status does not change it.
            _ => Status::Pending,
        };
        let unnamed = self.name.is_none();
        let reported = name.or_else(|| meta.as_ref().filter(|_| unnamed || self.is_guess).and_then(named_in_meta));
        self.is_guess &= reported.is_none();
        self.name = reported.or_else(|| self.name.take());
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            // The first title of OpenCode 1.18.33 is the tool's name. The next one describes the call.
            if unnamed && self.name.is_none() && self.title.is_empty() && status == Status::Pending && is_name(&title) {
                self.name = Some(title.clone());
                self.is_guess = true;
            }
            self.title = title;
        }
        if status != Status::Pending {
            self.status = Some(status);
        }
        self.kind = kind.unwrap_or_else(|| std::mem::take(&mut self.kind));
        if let Some(locations) = locations {
            self.paths = locations.into_iter().map(|Location { path }| path).collect();
        }
        self.content = content.unwrap_or_else(|| std::mem::take(&mut self.content));
        self.input = raw_input.or_else(|| self.input.take());
        self.output = raw_output.or_else(|| self.output.take());
        status
    }

    /// Returns whether all arguments are known before the call starts. OpenCode 1.18.33 first reports only a command's directory.
    pub(super) fn is_complete(&self) -> bool {
        match self.input.as_ref().map(RawJson::to_value) {
            Some(Ok(Value::Object(fields))) => fields.keys().any(|key| key != "cwd"),
            Some(Ok(Value::Null)) | None => false,
            Some(_) => true,
        }
    }

    /// Returns the arguments. If the agent reports none, returns the displayed content.
    pub(in crate::agent) fn input(&self) -> RawJson {
        if let Some(input) = self.input.as_ref().filter(|input| !matches!(input.as_str(), "{}" | "null")) {
            return input.clone();
        }
        let text = self.description.as_deref().unwrap_or_default();
        RawJson::of(&Shown { diffs: self.diffs().collect(), paths: &self.paths, text, title: &self.title })
    }

    /// Notes a permission request. Its content describes the call; Kimi Code 2.1.0 has the command only there.
    pub(super) fn request(&mut self, is_described: bool) {
        self.is_requested = true;
        if !is_described {
            return;
        }
        let texts: Vec<_> = self.inner().filter_map(|block| block.text_member("text")).collect();
        self.description = Some(texts.join("\n")).filter(|text| !text.is_empty());
    }

    /// Returns whether it has started or completed, and its permission was not requested.
    pub(super) fn unrequested(&self) -> Option<Unrequested> {
        match self.status {
            _ if self.is_requested => None,
            Some(Status::Running) => Some(Unrequested::Started),
            Some(Status::Ended { failed: false }) => Some(Unrequested::Completed),
            // The agent may have rejected it.
            Some(Status::Ended { failed: true } | Status::Pending) | None => None,
        }
    }

    /// Returns whether it was permitted, and has not started.
    pub(super) fn is_unused_permit(&self) -> bool {
        self.is_requested && self.is_allowed && self.status.is_none()
    }

    /// Returns the displayed text, if it is the only content.
    pub(in crate::agent) fn text(&self) -> Option<String> {
        match self.content.as_slice() {
            [only] => only.member("content")?.text_member("text"),
            _ => None,
        }
    }

    /// Returns the displayed changes of files.
    pub(in crate::agent) fn diffs(&self) -> impl Iterator<Item = &RawJson> {
        self.content.iter().filter(|block| block.text_member("type").is_some_and(|kind| kind == "diff"))
    }

    /// Returns the approximate size of the call.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.title.len() + self.kind.len() + self.paths.iter().map(String::len).sum::<usize>();
        let values = self.content.iter().map(|block| block.as_str().len()).sum::<usize>();
        let raw = |json: &Option<RawJson>| json.as_ref().map_or(0, |json| json.as_str().len());
        let description = self.description.as_ref().map_or(0, String::len);
        description + texts + values + raw(&self.input) + raw(&self.output)
    }

    /// Returns whether the `tool_use` of the call has not been emitted.
    pub(super) fn is_pending(&self) -> bool {
        self.stage == Stage::Pending
    }

    /// Drops the content of a call that has ended.
    pub(super) fn drop_content_if_ended(&mut self) {
        if self.stage == Stage::Ended {
            (self.content, self.input, self.output) = (Vec::new(), None, None);
        }
    }

    /// Emits the `tool_use`.
    pub(super) fn start(&mut self, tool: Tool, events: &mut Vec<Event>) {
        self.stage = Stage::Started;
        events.push(Event::ToolUse(Box::new(
            ToolUse::new(self.id.as_str(), tool.name, tool.input, tool.kind).with_server(tool.server.map(Into::into)),
        )));
    }

    /// Emits the new part of the displayed text, which the agent repeats while the call runs. A text that does not continue the
    /// emitted one is not emitted: some agents display a description first.
    pub(super) fn emit_running_output(&mut self, events: &mut Vec<Event>) {
        let Some(text) = self.text().filter(|_| self.stage == Stage::Started) else { return };
        let new = self.emitted.rest(&text);
        if !new.is_empty() {
            self.emitted.push(new);
            events.push(Event::ToolOutput(ToolOutput::new(self.id.as_str(), new)));
        }
    }

    /// Emits the `tool_result` with the output that the agent reported.
    pub(super) fn end_with_output(&mut self, is_error: Option<bool>, events: &mut Vec<Event>) {
        let output = self.output_text();
        let content = self.blocks();
        self.end(is_error, output, content, events);
    }

    /// Emits the `tool_result`, unless it was emitted before.
    pub(super) fn end(
        &mut self,
        is_error: Option<bool>,
        output: String,
        content: Option<Vec<RawJson>>,
        events: &mut Vec<Event>,
    ) {
        if self.stage == Stage::Ended {
            return;
        }
        self.stage = Stage::Ended;
        self.description = None;
        events.push(Event::ToolResult(Box::new(
            ToolResult::new(self.id.as_str(), output, is_error).with_content(content),
        )));
    }

    /// Returns the output as text: the displayed text, otherwise the raw output, otherwise the paths of changed files.
    fn output_text(&self) -> String {
        let texts: Vec<_> = self.inner().filter_map(|block| block.text_member("text")).collect();
        if !texts.is_empty() {
            return texts.join("\n");
        }
        if let Some(text) = self.output.as_ref().and_then(text_of) {
            return text;
        }
        let paths: Vec<_> = self.diffs().filter_map(|diff| diff.text_member("path")).collect();
        paths.join("\n")
    }

    /// Returns the output that is not text.
    fn blocks(&self) -> Option<Vec<RawJson>> {
        let media = self.inner().filter(|block| block.text_member("type").is_none_or(|kind| kind != "text"));
        let blocks: Vec<_> = media.chain(self.diffs().cloned()).collect();
        (!blocks.is_empty()).then_some(blocks)
    }

    fn inner(&self) -> impl Iterator<Item = RawJson> {
        self.content.iter().filter_map(|block| block.member("content"))
    }
}

/// The displayed content of a call, which replaces missing arguments.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diffs: Vec<&'a RawJson>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
}

/// Returns the text of a raw output: the output itself, or one of the fields that agents use for it.
fn text_of(output: &RawJson) -> Option<String> {
    match output.to_value() {
        Ok(Value::Null) => None,
        Ok(Value::String(text)) => Some(text),
        Ok(Value::Object(fields)) => {
            let text = ["output", "formatted_output", "stdout", "error", "message"]
                .iter()
                .find_map(|name| fields.get(*name)?.as_str());
            Some(text.unwrap_or(output.as_str()).to_owned())
        }
        _ => Some(output.as_str().to_owned()),
    }
}

/// Returns the tool in metadata such as `{"claudeCode": {"toolName": "Bash"}}` of claude-agent-acp 0.101.0.
fn named_in_meta(meta: &Value) -> Option<String> {
    meta.as_object()?.values().find_map(|inner| Some(inner.get("toolName")?.as_str()?.to_owned()))
}

/// Returns whether a title can be the name of a tool.
fn is_name(title: &str) -> bool {
    title.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns whether a title may be the tool's name, because a tool of this name has this kind. Otherwise a model that writes titles
/// could give a command the name of an allowed tool.
pub(in crate::agent) fn is_name_for(title: &str, kind: &str) -> bool {
    let usual = match title.to_ascii_lowercase().as_str() {
        "bash" | "shell" | "terminal" | "execute" | "exec" | "run_shell_command" => ToolKind::Execute,
        "edit" | "write" | "patch" | "apply_patch" | "multiedit" | "replace" | "write_file" => ToolKind::Edit,
        "webfetch" | "fetch" | "web_fetch" => ToolKind::Fetch,
        "read" | "list" | "read_file" | "ls" | "view" => ToolKind::Read,
        "grep" | "glob" | "search" | "websearch" | "codesearch" => ToolKind::Search,
        _ => ToolKind::Unclassified,
    };
    let is_harmless = |kind: &ToolKind| matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Unclassified);
    let reported = kind_of(kind);
    usual == reported || is_harmless(&usual) && is_harmless(&reported)
}

/// Converts a kind of ACP.
pub(in crate::agent) fn kind_of(kind: &str) -> ToolKind {
    match kind {
        "read" => ToolKind::Read,
        "edit" | "delete" | "move" => ToolKind::Edit,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "fetch" => ToolKind::Fetch,
        _ => ToolKind::Unclassified,
    }
}
