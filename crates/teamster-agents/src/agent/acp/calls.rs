//! Tool calls of a turn: what was said of each so far, and what of it has been told.
//!
//! An agent says of a call what it knows, piece by piece, and in any order: a call may be first heard of when leave is asked
//! for it, and last when that is denied. Invariant: each call is told once, before its result, and has one result.

use serde::Serialize;
use serde_json::Value;

use super::dialect::Dialect;
use super::wire::{CallFields, Location};
use crate::bounded::{self, Bounded, Ids};
use teamster_types::event::{Event, PermissionDenial, ToolKind, ToolResult, ToolUse};
use teamster_types::json::RawJson;

/// A call, as far as it is known.
#[derive(Debug, Default)]
pub(in crate::agent) struct Call {
    pub(in crate::agent) id: String,
    /// Its tool, where the agent tells.
    pub(in crate::agent) name: Option<String>,
    /// Whether the name was taken from a title, which the model may have written.
    pub(in crate::agent) is_guess: bool,
    /// What it does, for people to read.
    pub(in crate::agent) title: String,
    /// ACP's word for what sort of work it is.
    pub(in crate::agent) kind: String,
    pub(in crate::agent) paths: Vec<String>,
    input: Option<RawJson>,
    content: Vec<RawJson>,
    output: Option<RawJson>,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It was heard of, and more of it is to come.
    #[default]
    Held,
    /// Its `tool_use` has been told.
    Told,
    /// Its `tool_result` too.
    Closed,
}

/// A call's tool, as callers see it.
#[derive(Debug)]
pub(in crate::agent) struct Tool {
    pub(in crate::agent) name: String,
    /// Another name that it may have: deny rules for that one hold, too.
    pub(in crate::agent) other_name: Option<String>,
    pub(in crate::agent) server: Option<String>,
    pub(in crate::agent) kind: ToolKind,
    pub(in crate::agent) input: RawJson,
}

impl Tool {
    /// The name of the tool in rules. A tool of a server never has the name of a built-in one.
    pub(in crate::agent) fn rule_name(&self) -> String {
        match &self.server {
            Some(server) => format!("mcp__{server}__{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The calls of a session.
#[derive(Debug, Default)]
pub(super) struct Calls {
    turn: Bounded<String, Call>,
    /// Those of earlier turns: what is said of them now comes too late.
    past: Ids,
    pub(super) denials: Vec<PermissionDenial>,
}

impl Calls {
    /// Another turn begins.
    pub(super) fn next_turn(&mut self) {
        for (id, _) in self.turn.take() {
            self.past.add(id);
        }
        self.denials.clear();
    }

    /// Takes what is said of a call. `begins` where the agent says that it is a new one: some use an id again.
    pub(super) fn update(&mut self, fields: CallFields, begins: bool, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let id = fields.tool_call_id.clone();
        if !self.turn.contains(&id) {
            if !begins && self.past.contains(&id) {
                return;
            }
            let call = Call { id: id.clone(), ..Call::default() };
            self.turn.insert(id.clone(), call, 0);
        }
        let Some(call) = self.turn.get_mut(&id) else { return };
        let status = call.take(fields);
        if status != Status::Pending || call.is_complete() {
            call.tell(dialect, events);
        }
        if let Status::Ended { failed } = status {
            call.close(dialect, failed, events);
        }
        if call.state == State::Closed {
            call.forget();
        }
        let bytes = call.bytes();
        self.turn.weigh(&id, bytes);
    }

    /// Leave is asked for a call: it is told now, if it was not.
    pub(super) fn ask(&mut self, fields: CallFields, dialect: &dyn Dialect, events: &mut Vec<Event>) -> Option<Tool> {
        let id = fields.tool_call_id.clone();
        self.update(fields, true, dialect, events);
        let call = self.turn.get_mut(&id)?;
        call.tell(dialect, events);
        Some(dialect.tool(call))
    }

    /// Leave was denied. The agent may say so, or never speak of the call again.
    pub(super) fn deny(&mut self, id: &str, why: &str, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let Some(call) = self.turn.get_mut(id) else { return };
        let Tool { name, input, .. } = dialect.tool(call);
        let denial = PermissionDenial { tool_name: name.into(), tool_id: Some(id.into()), input: Some(input) };
        bounded::push_denials(&mut self.denials, [denial]);
        call.tell(dialect, events);
        call.end(Some(true), why.to_owned(), None, events);
    }

    /// The turn is over: a call that was held is told. (What has no result by now is closed by the stream's rules.)
    pub(super) fn tell_held(&mut self, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        let ids: Vec<_> = self.turn.iter().map(|(id, _)| id.clone()).collect();
        for id in ids {
            if let Some(call) = self.turn.get_mut(&id) {
                call.tell(dialect, events);
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Pending,
    Running,
    Ended { failed: bool },
}

impl Call {
    fn take(&mut self, fields: CallFields) -> Status {
        let CallFields { status, title, name, kind, locations, content, raw_input, raw_output, meta, .. } = fields;
        let status = match status.as_deref() {
            Some("in_progress") => Status::Running,
            Some("completed") => Status::Ended { failed: false },
            Some("failed") => Status::Ended { failed: true },
            // A call begins as pending; an update without a status changes none.
            _ => Status::Pending,
        };
        let unnamed = self.name.is_none();
        let told = name.or_else(|| meta.as_ref().filter(|_| unnamed || self.is_guess).and_then(named_in_meta));
        self.is_guess &= told.is_none();
        self.name = told.or_else(|| self.name.take());
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            // OpenCode 1.18.33 says the tool's name first, and what it does with the next word.
            if unnamed && self.name.is_none() && self.title.is_empty() && status == Status::Pending && is_name(&title) {
                self.name = Some(title.clone());
                self.is_guess = true;
            }
            self.title = title;
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

    /// Whether its arguments are all there, though it has not begun. OpenCode 1.18.33 says the directory of a command first.
    fn is_complete(&self) -> bool {
        match self.input.as_ref().map(RawJson::to_value) {
            Some(Ok(Value::Object(fields))) => fields.keys().any(|key| key != "cwd"),
            Some(Ok(Value::Null)) | None => false,
            Some(_) => true,
        }
    }

    /// The arguments; where the agent tells none, what it shows of the call.
    pub(in crate::agent) fn input(&self) -> RawJson {
        if let Some(input) = self.input.as_ref().filter(|input| !matches!(input.as_str(), "{}" | "null")) {
            return input.clone();
        }
        RawJson::of(&Shown { diffs: self.diffs().collect(), paths: &self.paths, title: &self.title })
    }

    /// The text that the agent shows of it, if there is one and nothing else.
    pub(in crate::agent) fn text(&self) -> Option<String> {
        match self.content.as_slice() {
            [only] => only.member("content")?.text_member("text"),
            _ => None,
        }
    }

    /// What it changes in files, as far as the agent shows.
    pub(in crate::agent) fn diffs(&self) -> impl Iterator<Item = &RawJson> {
        self.content.iter().filter(|block| block.text_member("type").is_some_and(|kind| kind == "diff"))
    }

    /// About how much it holds.
    fn bytes(&self) -> usize {
        let texts = self.title.len() + self.kind.len() + self.paths.iter().map(String::len).sum::<usize>();
        let values = self.content.iter().map(|block| block.as_str().len()).sum::<usize>();
        let raw = |json: &Option<RawJson>| json.as_ref().map_or(0, |json| json.as_str().len());
        texts + values + raw(&self.input) + raw(&self.output)
    }

    /// Drops what is not needed of a call that is over.
    fn forget(&mut self) {
        (self.content, self.input, self.output) = (Vec::new(), None, None);
    }

    fn tell(&mut self, dialect: &dyn Dialect, events: &mut Vec<Event>) {
        if self.state != State::Held {
            return;
        }
        self.state = State::Told;
        let Tool { name: tool_name, server, kind, input, .. } = dialect.tool(self);
        let tool_id = self.id.as_str().into();
        events.push(Event::ToolUse(Box::new(ToolUse {
            tool_id,
            tool_name: tool_name.into(),
            input,
            kind,
            server: server.map(Into::into),
            parent_tool_id: None,
        })));
    }

    fn close(&mut self, dialect: &dyn Dialect, failed: bool, events: &mut Vec<Event>) {
        let output = self.output_text();
        let content = self.blocks();
        self.end(dialect.failed(self, failed), output, content, events);
    }

    fn end(&mut self, is_error: Option<bool>, output: String, content: Option<Vec<RawJson>>, events: &mut Vec<Event>) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        let tool_id = self.id.as_str().into();
        events.push(Event::ToolResult(Box::new(ToolResult {
            tool_id,
            output: output.into(),
            is_error,
            content,
            parent_tool_id: None,
        })));
    }

    /// What came of it, as text: what is shown, else what the tool gave, else which files were changed.
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

    /// What came of it beside text.
    fn blocks(&self) -> Option<Vec<RawJson>> {
        let media = self.inner().filter(|block| block.text_member("type").is_none_or(|kind| kind != "text"));
        let blocks: Vec<_> = media.chain(self.diffs().cloned()).collect();
        (!blocks.is_empty()).then_some(blocks)
    }

    fn inner(&self) -> impl Iterator<Item = RawJson> {
        self.content.iter().filter_map(|block| block.member("content"))
    }
}

/// What the agent shows of a call, in place of its arguments.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diffs: Vec<&'a RawJson>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
}

/// The text of what a tool gave: as it is, or out of the field that agents put it in.
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

/// `{"claudeCode": {"toolName": "Bash"}}` of claude-agent-acp 0.101.0.
fn named_in_meta(meta: &Value) -> Option<String> {
    meta.as_object()?.values().find_map(|inner| Some(inner.get("toolName")?.as_str()?.to_owned()))
}

/// Whether a title can be the name of a tool.
fn is_name(title: &str) -> bool {
    title.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Whether a title may be the tool's name: a tool of this name does this sort of work. A model that writes titles could else give a
/// command the name of a tool that is allowed.
pub(in crate::agent) fn is_name_for(title: &str, kind: &str) -> bool {
    let usual = match title.to_ascii_lowercase().as_str() {
        "bash" | "shell" | "terminal" | "execute" | "exec" | "run_shell_command" => ToolKind::Execute,
        "edit" | "write" | "patch" | "apply_patch" | "multiedit" | "replace" | "write_file" => ToolKind::Edit,
        "webfetch" | "fetch" | "web_fetch" => ToolKind::Fetch,
        "read" | "list" | "read_file" | "ls" | "view" => ToolKind::Read,
        "grep" | "glob" | "search" | "websearch" | "codesearch" => ToolKind::Search,
        _ => ToolKind::Unclassified,
    };
    let looks = |kind: &ToolKind| matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Unclassified);
    let told = kind_of(kind);
    usual == told || looks(&usual) && looks(&told)
}

/// What ACP's word for a sort of work means.
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
