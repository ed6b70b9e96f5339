//! Messages of the model, as deltas and as whole messages, and the results of tools.

use serde_json::value::RawValue;

use super::{Actions, StreamJson};
use crate::agent::claude::assembler::MessageAssembler;
use crate::agent::claude::tools;
use crate::agent::claude::wire::{
    ApiUsage, Block, DeltaKind, MessageHead, MessageLine, StreamDelta, StreamEvent, StreamEventKind as Kind,
};
use crate::agent::content::ContentKind;
use crate::protocol::Action;
use teamster_types::event::{Delta, Event, MessageId, Retract, ToolId};
use teamster_types::json::RawJson;

impl StreamJson {
    pub(super) fn stream_event(
        &mut self,
        event: &StreamEvent<'_>,
        parent: Option<&str>,
        actions: &mut Actions,
    ) -> serde_json::Result<()> {
        match (event.kind, event.index) {
            (Kind::MessageStart, _) => {
                if let Some(head) = event.message {
                    self.message_start(&serde_json::from_str(head.get())?, actions);
                }
            }
            (Kind::ContentBlockStart, Some(index)) => self.block_start(index, event.content_block),
            (Kind::ContentBlockDelta, Some(index)) => {
                if let Some(delta) = &event.delta {
                    self.block_delta(index, delta, parent, actions);
                    return Ok(());
                }
            }
            (Kind::ContentBlockStop, Some(index)) => {
                let tool = self.message.as_mut().and_then(|message| message.finish_tool(index));
                if let Some(tool) = tool {
                    self.tool_use(&tool.id, &tool.name, tool.input, parent, actions);
                    return Ok(());
                }
            }
            (Kind::MessageDelta, _) => {
                let stop_reason = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_deref());
                let usage = event.usage.map(|usage| serde_json::from_str::<ApiUsage>(usage.get())).transpose()?;
                let usage = self.totals.message_delta(stop_reason, usage.as_ref());
                actions.extend(usage.map(Action::Emit));
            }
            (Kind::MessageStop, _) => {
                if let Some(message) = &mut self.message {
                    message.complete();
                }
            }
            _ => {}
        }
        actions.push(Action::Alive);
        Ok(())
    }

    fn block_delta(&mut self, index: u32, delta: &StreamDelta<'_>, parent: Option<&str>, actions: &mut Actions) {
        match &delta.content {
            Some((DeltaKind::Text, text)) => self.text_delta(index, ContentKind::Text, text, parent, actions),
            Some((DeltaKind::Thinking, text)) => self.text_delta(index, ContentKind::Thinking, text, parent, actions),
            Some((DeltaKind::InputJson, json)) => {
                if let Some(message) = &mut self.message {
                    message.push_json(index, json);
                }
                actions.push(Action::Alive);
            }
            None => actions.push(Action::Alive),
        }
    }

    fn message_start(&mut self, head: &MessageHead<'_>, actions: &mut Actions) {
        let id = MessageId::from(&*head.id);
        self.retract_void(&id, actions);
        self.note_model(head.model.as_deref(), actions);
        self.message = Some(MessageAssembler::new(id));
    }

    fn block_start(&mut self, index: u32, block: Option<&RawValue>) {
        let block = block.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
        let (Some(message), Some(block)) = (&mut self.message, block) else { return };
        match (&*block.kind, &block.id, &block.name) {
            ("text", _, _) => message.start_content(index, ContentKind::Text),
            ("thinking", _, _) => message.start_content(index, ContentKind::Thinking),
            ("tool_use", Some(id), Some(name)) => message.start_tool(index, id, name),
            ("server_tool_use", Some(id), Some(name)) => {
                message.start_tool(index, id, name);
                self.server_tools.add(ToolId::from(&**id));
            }
            _ => message.start_other(index),
        }
    }

    pub(super) fn text_delta(
        &mut self,
        index: u32,
        kind: ContentKind,
        text: &str,
        parent: Option<&str>,
        actions: &mut Actions,
    ) {
        // A delta without the start of its message starts a message. The whole message that may follow replaces it.
        let message = self.message.get_or_insert_with(|| MessageAssembler::new(MessageId::from("message")));
        message.push_text(index, kind, text);
        let id = message.id.clone();
        self.emit_text(kind, text, id, parent, actions);
    }

    pub(super) fn assistant(&mut self, line: &MessageLine<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let parent = line.parent_tool_use_id.as_deref();
        for uuid in &line.supersedes {
            self.retract_line(uuid, actions);
        }
        let synthetic = line.message.model.as_deref() == Some("<synthetic>");
        if synthetic && line.error.is_some() {
            // The text is the CLI's description of a failure. The result contains it too.
            self.api_error = line.error.clone().map(Into::into);
            actions.push(Action::Alive);
            return Ok(());
        }
        let id = MessageId::from(line.message.id.as_deref().or(line.uuid.as_deref()).unwrap_or("message"));
        if parent.is_none() {
            self.retract_void(&id, actions);
            if !synthetic {
                self.note_model(line.message.model.as_deref(), actions);
            }
        }
        if let Some(uuid) = &line.uuid {
            self.lines.insert(uuid.to_string(), id.clone(), id.as_str().len());
        }
        let Some(content) = line.message.content else { return Ok(()) };
        for block in serde_json::from_str::<Vec<Block<'_>>>(content.get())? {
            // The CLI prints this for a command without output (recording `edge_slash_clear`).
            if synthetic && block.text.is_some_and(|text| text.pieces().eq(["(no content)"])) {
                continue;
            }
            self.block(&id, &block, parent, actions);
        }
        Ok(())
    }

    fn block(&mut self, id: &MessageId, block: &Block<'_>, parent: Option<&str>, actions: &mut Actions) {
        let mut message = self.message.as_mut().filter(|message| message.id == *id && parent.is_none());
        match (&*block.kind, &block.id, &block.name) {
            ("text" | "thinking", _, _) => {
                let (kind, whole) = match (block.text, block.thinking) {
                    (Some(text), _) => (ContentKind::Text, text),
                    (None, Some(text)) => (ContentKind::Thinking, text),
                    (None, None) => return,
                };
                let rest = message.as_mut().map_or_else(|| whole.to_text(), |message| message.confirm(kind, whole));
                self.emit_text(kind, &rest, id.clone(), parent, actions);
            }
            ("tool_use" | "server_tool_use", Some(tool), Some(name)) => {
                if let Some(message) = &mut message {
                    message.confirm_tool(tool);
                }
                if &*block.kind == "server_tool_use" {
                    self.server_tools.add(ToolId::from(&**tool));
                }
                let input = block.input.map(RawJson::from_raw);
                self.tool_use(tool, name, input.unwrap_or_default(), parent, actions);
            }
            // The result of a tool that the vendor runs, such as `web_search_tool_result`.
            (kind, _, _) if kind.ends_with("_tool_result") => tool_result(block, parent, actions),
            _ => actions.push(Action::Alive),
        }
    }

    fn tool_use(&mut self, id: &str, name: &str, input: RawJson, parent: Option<&str>, actions: &mut Actions) {
        if tools::is_subagent(name)
            && let Some(background) = self.background()
        {
            background.add_subagent(id);
        }
        self.plan.called(id, name, &input, parent.is_some());
        let tool = tools::tool_use(id, name, input, parent, &self.servers.names);
        actions.push(Action::Emit(Event::ToolUse(Box::new(tool))));
    }

    /// Emits a part of a message.
    pub(super) fn emit_text(
        &mut self,
        kind: ContentKind,
        text: &str,
        id: MessageId,
        parent: Option<&str>,
        actions: &mut Actions,
    ) {
        if text.is_empty() {
            return actions.push(Action::Alive);
        }
        let delta = Delta::new(id, text).with_parent(parent.map(ToolId::from));
        self.has_emitted_text |= kind == ContentKind::Text && parent.is_none();
        actions.push(Action::Emit(kind.event(delta)));
    }

    /// Retracts the message that is being streamed, if the next message replaces it.
    fn retract_void(&mut self, next: &MessageId, actions: &mut Actions) {
        if let Some(message) = self.message.take_if(|message| message.id != *next)
            && message.is_void()
        {
            actions.push(Action::Emit(Event::Retract(Retract::new(message.id))));
        }
    }

    /// Retracts the message of an `assistant` line that the CLI has replaced.
    pub(super) fn retract_line(&mut self, uuid: &str, actions: &mut Actions) {
        if let Some(message_id) = self.lines.get(uuid).cloned() {
            let same = self.lines.iter().filter(|(_, other)| **other == message_id);
            let lines: Vec<_> = same.map(|(line, _)| line.clone()).collect();
            for line in lines {
                self.lines.remove(&line);
            }
            actions.push(Action::Emit(Event::Retract(Retract::new(message_id))));
        }
    }

    /// Emits the results of tools in a `user` line. Its other content comes from the CLI itself: reminders, replays, the prompts of
    /// subagents.
    pub(super) fn user(line: &MessageLine<'_>, actions: &mut Actions) {
        let parent = line.parent_tool_use_id.as_deref();
        // Content is a string, or a list of blocks.
        let blocks = line.message.content.and_then(|raw| serde_json::from_str::<Vec<Block<'_>>>(raw.get()).ok());
        for block in blocks.unwrap_or_default() {
            if &*block.kind == "tool_result" {
                tool_result(&block, parent, actions);
            }
        }
        actions.push(Action::Alive);
    }
}

fn tool_result(block: &Block<'_>, parent: Option<&str>, actions: &mut Actions) {
    if let Some(id) = &block.tool_use_id {
        let result = tools::tool_result(id, block, parent);
        actions.push(Action::Emit(Event::ToolResult(Box::new(result))));
    }
}
