//! The text that a chat shows of an unfinished answer. Pure.

use teamster::event::{Event, MessageId, ToolId, ToolUse};
use teamster_channel::render::{StepState, tool_call};
use teamster_channel::{TextLimit, split};

use super::wording::WORKING;

/// The text of the unfinished message, and the running tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveText {
    message: Option<MessageId>,
    text: String,
    tool: Option<(ToolId, String)>,
}

impl LiveText {
    /// Takes an event of the run. Returns whether the shown text changes. Events of subagents change nothing.
    pub(super) fn push(&mut self, event: &Event) -> bool {
        match event {
            Event::Text(delta) if delta.parent_tool_id.is_none() => {
                if self.message.as_ref() != Some(&delta.message_id) {
                    self.message = Some(delta.message_id.clone());
                    self.text.clear();
                }
                self.tool = None;
                self.text.push_str(&delta.text);
                true
            }
            Event::Retract(retract) if self.message.as_ref() == Some(&retract.message_id) => {
                self.text.clear();
                true
            }
            Event::ToolUse(tool) if tool.parent_tool_id.is_none() => {
                self.tool = Some((tool.tool_id.clone(), tool_line(tool)));
                true
            }
            Event::ToolResult(result) if self.tool.as_ref().is_some_and(|(id, _)| *id == result.tool_id) => {
                self.tool = None;
                true
            }
            _ => false,
        }
    }

    /// Returns what fits into a message: the end of a long text, and the tool that runs.
    pub(super) fn shown(&self, limit: TextLimit) -> String {
        let mut whole = self.text.trim().to_owned();
        if let Some((_, line)) = &self.tool {
            if !whole.is_empty() {
                whole.push_str("\n\n");
            }
            whole.push_str(line);
        }
        if whole.is_empty() {
            return WORKING.to_owned();
        }
        if limit.unit.length(&whole) <= limit.max {
            return whole;
        }
        split(&whole, limit).pop().unwrap_or_else(|| WORKING.to_owned())
    }
}

fn tool_line(tool: &ToolUse) -> String {
    tool_call(tool.tool_name.as_str(), "", StepState::Running)
}

#[cfg(test)]
mod tests {
    use teamster_channel::TextUnit;

    use super::*;

    const LIMIT: TextLimit = TextLimit { max: 100, unit: TextUnit::Chars };

    fn text_of(events: &[&str]) -> LiveText {
        let mut live = LiveText::default();
        for event in events {
            live.push(&serde_json::from_str(event).unwrap());
        }
        live
    }

    #[test]
    fn a_new_message_replaces_the_text_and_a_running_tool_is_shown_below_it() {
        let use_tool = r#"{"type":"tool_use","toolId":"1","toolName":"Bash","input":{},"kind":"execute"}"#;
        let events = [
            r#"{"type":"text","text":"One","messageId":"a"}"#,
            r#"{"type":"text","text":"Two ","messageId":"b"}"#,
            r#"{"type":"text","text":"more","messageId":"b"}"#,
            use_tool,
        ];
        assert_eq!(text_of(&events).shown(LIMIT), "Two more\n\n▶ `Bash`");
        let result = r#"{"type":"tool_result","toolId":"1","output":"x"}"#;
        assert_eq!(text_of(&[&events[..], &[result]].concat()).shown(LIMIT), "Two more");
    }

    #[test]
    fn a_retracted_message_and_an_agent_without_text_show_that_it_works() {
        let events = [r#"{"type":"text","text":"One","messageId":"a"}"#, r#"{"type":"retract","messageId":"a"}"#];
        assert_eq!(text_of(&events).shown(LIMIT), WORKING);
        assert_eq!(LiveText::default().shown(LIMIT), WORKING);
    }

    #[test]
    fn a_text_above_the_limit_of_the_service_shows_its_end() {
        let long = format!(r#"{{"type":"text","text":"{} the end","messageId":"a"}}"#, "word ".repeat(100));
        let shown = text_of(&[&long]).shown(LIMIT);
        assert!(shown.ends_with("the end") && shown.len() <= 100, "{shown}");
    }
}
