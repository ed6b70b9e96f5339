//! What the model says and calls, in deltas and in whole messages, and what its tools give.

use serde_json::value::RawValue;

use super::super::message::{Streamed, Voice};
use super::super::tools;
use super::super::wire::{Block, MessageHead, MessageLine, StreamEvent};
use super::{Actions, Stream};
use crate::protocol::Action;
use teamster_types::event::{Delta, Event, MessageId, Retract, ToolId};
use teamster_types::json::RawJson;

impl Stream {
    pub(super) fn stream_event(&mut self, event: &StreamEvent<'_>, parent: Option<&str>, actions: &mut Actions) {
        match (&*event.kind, event.index) {
            ("message_start", _) => {
                if let Some(head) = &event.message {
                    self.message_start(head, actions);
                }
            }
            ("content_block_start", Some(index)) => self.block_start(index, event.content_block),
            ("content_block_delta", Some(index)) => {
                if let Some(delta) = &event.delta {
                    match (&delta.text, &delta.thinking, &delta.partial_json) {
                        (Some(text), _, _) => return self.say(index, Voice::Text, text, parent, actions),
                        (_, Some(text), _) => return self.say(index, Voice::Thinking, text, parent, actions),
                        (_, _, Some(json)) => {
                            if let Some(streamed) = &mut self.streamed {
                                streamed.add_json(index, json);
                            }
                        }
                        _ => {}
                    }
                }
            }
            ("content_block_stop", Some(index)) => {
                let tool = self.streamed.as_mut().and_then(|streamed| streamed.finish_tool(index));
                if let Some(tool) = tool {
                    return self.tool_use(&tool.id, &tool.name, tool.input, parent, actions);
                }
            }
            ("message_delta", _) => {
                let stop_reason = event.delta.as_ref().and_then(|delta| delta.stop_reason.as_deref());
                let usage = self.tally.message_delta(stop_reason, event.usage.as_ref());
                actions.extend(usage.map(Action::Emit));
            }
            ("message_stop", _) => {
                if let Some(streamed) = &mut self.streamed {
                    streamed.complete();
                }
            }
            _ => {}
        }
        actions.push(Action::Alive);
    }

    fn message_start(&mut self, head: &MessageHead<'_>, actions: &mut Actions) {
        let id = MessageId::from(&*head.id);
        self.replace_void(&id, actions);
        self.tally.model(head.model.as_deref());
        self.streamed = Some(Streamed::new(id));
    }

    fn block_start(&mut self, index: u32, block: Option<&RawValue>) {
        let block = block.and_then(|raw| serde_json::from_str::<Block<'_>>(raw.get()).ok());
        let (Some(streamed), Some(block)) = (&mut self.streamed, block) else { return };
        match (&*block.kind, &block.id, &block.name) {
            ("text", _, _) => streamed.start_voice(index, Voice::Text),
            ("thinking", _, _) => streamed.start_voice(index, Voice::Thinking),
            ("tool_use", Some(id), Some(name)) => streamed.start_tool(index, id, name),
            ("server_tool_use", Some(id), Some(name)) => {
                streamed.start_tool(index, id, name);
                self.server_tools.add(ToolId::from(&**id));
            }
            _ => streamed.start_other(index),
        }
    }

    fn say(&mut self, index: u32, voice: Voice, text: &str, parent: Option<&str>, actions: &mut Actions) {
        // A delta without its message's start opens a message. The whole message that may follow replaces it.
        let streamed = self.streamed.get_or_insert_with(|| Streamed::new(MessageId::from("message")));
        streamed.say(index, voice, text);
        let id = streamed.id.clone();
        self.tell(voice, text, id, parent, actions);
    }

    pub(super) fn assistant(&mut self, line: &MessageLine<'_>, actions: &mut Actions) -> serde_json::Result<()> {
        let parent = line.parent_tool_use_id.as_deref();
        for uuid in &line.supersedes {
            self.withdraw(uuid, actions);
        }
        let synthetic = line.message.model.as_deref() == Some("<synthetic>");
        if synthetic && line.error.is_some() {
            // The CLI's words about a failure, not the model's: the result says them again.
            self.api_error = line.error.clone().map(Into::into);
            actions.push(Action::Alive);
            return Ok(());
        }
        let id = MessageId::from(line.message.id.as_deref().or(line.uuid.as_deref()).unwrap_or("message"));
        if parent.is_none() {
            self.replace_void(&id, actions);
            if !synthetic {
                self.tally.model(line.message.model.as_deref());
            }
        }
        if let Some(uuid) = &line.uuid {
            self.lines.insert(uuid.to_string(), id.clone(), id.as_str().len());
        }
        let Some(content) = line.message.content else { return Ok(()) };
        for block in serde_json::from_str::<Vec<Block<'_>>>(content.get())? {
            // What the CLI writes where there is nothing to say (edge_slash_clear).
            if synthetic && block.text.as_deref() == Some("(no content)") {
                continue;
            }
            self.block(&id, &block, parent, actions);
        }
        Ok(())
    }

    fn block(&mut self, id: &MessageId, block: &Block<'_>, parent: Option<&str>, actions: &mut Actions) {
        let mut streamed = self.streamed.as_mut().filter(|streamed| streamed.id == *id && parent.is_none());
        match (&*block.kind, &block.id, &block.name) {
            ("text" | "thinking", _, _) => {
                let (voice, whole) = match (&block.text, &block.thinking) {
                    (Some(text), _) => (Voice::Text, &**text),
                    (None, Some(text)) => (Voice::Thinking, &**text),
                    (None, None) => return,
                };
                let rest = streamed.as_mut().map_or(whole, |streamed| streamed.confirm(voice, whole));
                self.tell(voice, rest, id.clone(), parent, actions);
            }
            ("tool_use" | "server_tool_use", Some(tool), Some(name)) => {
                if let Some(streamed) = &mut streamed {
                    streamed.confirm_tool(tool);
                }
                if &*block.kind == "server_tool_use" {
                    self.server_tools.add(ToolId::from(&**tool));
                }
                let input = block.input.map(RawJson::from_raw);
                self.tool_use(tool, name, input.unwrap_or_default(), parent, actions);
            }
            // What a tool of the vendor's gave: `web_search_tool_result` and the like.
            (kind, _, _) if kind.ends_with("_tool_result") => tool_result(block, parent, actions),
            _ => actions.push(Action::Alive),
        }
    }

    fn tool_use(&mut self, id: &str, name: &str, input: RawJson, parent: Option<&str>, actions: &mut Actions) {
        if tools::is_subagent(name)
            && let Some(background) = self.background()
        {
            background.subagent(id);
        }
        let tool = tools::tool_use(id, name, input, parent, &self.servers.names);
        actions.push(Action::Emit(Event::ToolUse(Box::new(tool))));
    }

    pub(super) fn tell(
        &mut self,
        voice: Voice,
        text: &str,
        id: MessageId,
        parent: Option<&str>,
        actions: &mut Actions,
    ) {
        if text.is_empty() {
            return actions.push(Action::Alive);
        }
        let delta = Delta::new(id, text).with_parent(parent.map(ToolId::from));
        self.text_told |= voice == Voice::Text && parent.is_none();
        actions.push(Action::Emit(match voice {
            Voice::Text => Event::Text(delta),
            Voice::Thinking => Event::Thinking(delta),
        }));
    }

    /// Another message takes the place of the one that streams: what was told of it is void (trap 6 of the facts).
    fn replace_void(&mut self, next: &MessageId, actions: &mut Actions) {
        if let Some(streamed) = self.streamed.take_if(|streamed| streamed.id != *next)
            && streamed.is_void()
        {
            actions.push(Action::Emit(Event::Retract(Retract::new(streamed.id))));
        }
    }

    pub(super) fn withdraw(&mut self, uuid: &str, actions: &mut Actions) {
        if let Some(message_id) = self.lines.get(uuid).cloned() {
            let of_it = self.lines.iter().filter(|(_, other)| **other == message_id);
            let lines: Vec<_> = of_it.map(|(line, _)| line.clone()).collect();
            for line in lines {
                self.lines.remove(&line);
            }
            actions.push(Action::Emit(Event::Retract(Retract::new(message_id))));
        }
    }
}

/// Results of tools. Whatever else a `user` line holds is the CLI's own: nudges, replays, a subagent's prompt.
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

fn tool_result(block: &Block<'_>, parent: Option<&str>, actions: &mut Actions) {
    if let Some(id) = &block.tool_use_id {
        let result = tools::tool_result(id, block, parent);
        actions.push(Action::Emit(Event::ToolResult(Box::new(result))));
    }
}
