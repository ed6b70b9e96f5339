//! Estimates the size of an event in memory: its texts, ids and JSON values, and the overhead of their containers.

use serde_json::Value;
use teamster_types::event::{Event, PermissionRequest, PlanEntry, Question, RunResult};
use teamster_types::text::UntrustedText;

/// The overhead of a member of an object, an item of a list, or an allocation.
const NODE_BYTES: usize = 32;

/// The size of an event without its heap data.
pub(crate) const EVENT_BYTES: usize = 160;

/// Returns the estimated size of an event in memory, in bytes.
pub(crate) fn in_memory(event: &Event) -> usize {
    EVENT_BYTES + heap_bytes(event)
}

/// Returns the estimated size of an event's heap data, in bytes. It is never much less than the real size.
fn heap_bytes(event: &Event) -> usize {
    match event {
        Event::Text(delta) | Event::Thinking(delta) => {
            delta.text.len() + delta.message_id.as_str().len() + parent(delta.parent_tool_id.as_ref())
        }
        Event::Retract(retract) => retract.message_id.as_str().len(),
        Event::ToolUse(tool) => {
            let names = tool.tool_id.as_str().len() + tool.tool_name.len() + text(tool.server.as_ref());
            NODE_BYTES + names + tool.input.as_str().len() + parent(tool.parent_tool_id.as_ref())
        }
        Event::ToolOutput(output) => {
            output.tool_id.as_str().len() + output.text.len() + parent(output.parent_tool_id.as_ref())
        }
        Event::ToolResult(result) => {
            let content = result.content.iter().flatten().map(|block| NODE_BYTES + block.as_str().len()).sum::<usize>();
            NODE_BYTES + result.tool_id.as_str().len() + result.output.len() + content
        }
        Event::PermissionRequest(request) => permission(request),
        Event::PermissionAnswered(answered) => {
            let texts = text(answered.option_id.as_ref()) + text(answered.message.as_ref());
            let input = answered.input.as_ref().map_or(0, |input| input.as_str().len());
            answered.request_id.as_str().len() + texts + input + answered.request.as_deref().map_or(0, permission)
        }
        Event::Question(asked) => question(asked),
        Event::Plan(plan) => plan.entries.iter().map(|PlanEntry { content, .. }| NODE_BYTES + content.len()).sum(),
        Event::Init(init) => {
            let tools = init.tools.iter().flatten().map(|tool| NODE_BYTES + tool.len()).sum::<usize>();
            let servers = init.mcp_servers.iter().flatten();
            let servers = servers.map(|server| 2 * NODE_BYTES + server.name.len() + server.status.len()).sum::<usize>();
            let names = text(init.model.as_ref()) + text(init.agent_version.as_ref());
            let credential = init.credential.as_ref().map_or(0, |credential| text(credential.name.as_ref()));
            init.session_id.as_str().len() + names + tools + servers + credential
        }
        Event::Warning(warning) => {
            let data = warning.data.iter().flatten().map(|(name, value)| NODE_BYTES + name.len() + json(value));
            warning.message.len() + data.sum::<usize>()
        }
        Event::Error(failure) => failure.message.len(),
        Event::Done(done) => result(&done.result),
        Event::RateLimit(limit) => text(limit.resets_at.as_ref()) + text(limit.kind.as_ref()),
        // An event of an unknown type, or without texts.
        other => serde_json::to_vec(other).map_or(0, |json| json.len()),
    }
}

fn permission(request: &PermissionRequest) -> usize {
    let options = request.options.iter().map(|option| NODE_BYTES + option.option_id.len() + option.name.len());
    let targets = request.targets.iter().map(|target| NODE_BYTES + target.len());
    let texts = text(request.server.as_ref()) + text(request.permission.as_ref()) + text(request.deadline.as_ref());
    let ids =
        request.request_id.as_str().len() + parent(request.tool_id.as_ref()) + parent(request.parent_tool_id.as_ref());
    let names = NODE_BYTES + ids + request.tool_name.len() + texts;
    names + request.input.as_str().len() + options.sum::<usize>() + targets.sum::<usize>()
}

fn question(asked: &Question) -> usize {
    let items = asked.questions.iter().map(|item| {
        let options = item.options.iter();
        let options = options.map(|option| NODE_BYTES + option.label.len() + text(option.description.as_ref()));
        NODE_BYTES + item.id.len() + item.text.len() + options.sum::<usize>()
    });
    asked.request_id.as_str().len() + items.sum::<usize>()
}

fn result(result: &RunResult) -> usize {
    let denials = result.permission_denials.iter().map(|denial| {
        let id = denial.tool_id.as_ref().map_or(0, |id| id.as_str().len());
        NODE_BYTES + denial.tool_name.len() + id + denial.input.as_ref().map_or(0, |input| input.as_str().len())
    });
    let texts = result.text.len() + result.final_text.len() + text(result.stderr.as_ref());
    texts + denials.sum::<usize>() + result.structured_output.as_ref().map_or(0, |document| document.as_str().len())
}

fn text(text: Option<&UntrustedText>) -> usize {
    text.map_or(0, |text| text.len())
}

fn parent(id: Option<&teamster_types::event::ToolId>) -> usize {
    id.map_or(0, |id| id.as_str().len())
}

/// Values have a limited depth, so this recursion ends.
fn json(value: &Value) -> usize {
    NODE_BYTES
        + match value {
            Value::String(text) => text.capacity(),
            Value::Array(items) => {
                (items.capacity() - items.len()) * NODE_BYTES + NODE_BYTES + items.iter().map(json).sum::<usize>()
            }
            Value::Object(members) => {
                members.iter().map(|(name, value)| NODE_BYTES + name.capacity() + json(value)).sum()
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use teamster_types::event::Done;

    use super::*;

    #[test]
    fn the_size_of_an_event_includes_its_contents() {
        let event = |value: Value| serde_json::from_value::<Event>(value).unwrap();
        let nested = serde_json::json!([{"type": "x", "list": vec![serde_json::json!([1]); 20_000]}]);
        let long = "x".repeat(10_000);
        let rows = [
            event(serde_json::json!({"type": "tool_result", "toolId": "t", "output": "", "content": nested})),
            event(serde_json::json!({"type": "tool_result", "toolId": "t", "output": long})),
            event(
                serde_json::json!({"type": "tool_use", "toolId": "t", "toolName": long, "input": {}, "kind": "other"}),
            ),
            event(
                serde_json::json!({"type": "tool_use", "toolId": "t", "toolName": "x", "input": [long], "kind": "other"}),
            ),
            event(serde_json::json!({"type": "text", "messageId": long, "text": "x"})),
            event(serde_json::json!({"type": "plan", "entries": [{"content": long, "status": "pending"}]})),
            event(serde_json::json!({"type": "warning", "message": "", "code": "NOTICE", "data": {"line": long}})),
            event(serde_json::json!({"type": "init", "agent": "x", "sessionId": "s", "tools": [long]})),
            event(serde_json::json!({"type": "question", "requestId": "r", "questions": [
                {"id": "q", "text": "", "options": [{"label": "x", "description": long}]}
            ]})),
            event(serde_json::json!({"type": "permission_request", "requestId": "r", "toolName": "x", "input": {},
                "options": [{"optionId": "o", "name": long, "kind": "allow_once"}]})),
        ];
        for event in rows {
            assert!(in_memory(&event) >= 10_000, "{}: {event:?}", in_memory(&event));
        }
        // Each of the thousand lists is an allocation of its own.
        assert!(
            in_memory(&event(
                serde_json::json!({"type": "tool_result", "toolId": "t", "output": "", "content": nested})
            )) > 64_000
        );
        let mut result = RunResult::default();
        result.text = long.into();
        assert!(in_memory(&Event::Done(Box::new(Done::new(result)))) >= 10_000);
    }
}
