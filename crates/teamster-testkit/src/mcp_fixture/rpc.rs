//! The server's responses, as values: no I/O and no clock.

use std::time::Duration;

use serde_json::{Value, json};

/// A single red pixel.
const PIXEL_PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// The protocol version for a client that names none.
const PROTOCOL_VERSION: &str = "2025-06-18";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// The decision of the tool `approve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decision {
    /// Allows the tool call.
    #[default]
    Allow,
    /// Denies the tool call.
    Deny,
}

/// The response to a message.
#[derive(Debug, PartialEq)]
pub(crate) enum RpcResponse {
    /// No response, because the message was a notification.
    None,
    Immediate(Value),
    Delayed(DelayedResponse),
}

/// The delayed response to a slow call, with a progress notification for each second.
#[derive(Debug, PartialEq)]
pub(crate) struct DelayedResponse {
    pub(crate) takes: Duration,
    pub(crate) answer: Value,
    progress_token: Option<Value>,
}

impl DelayedResponse {
    /// Returns the progress notification after this many seconds, if the client requested progress.
    pub(crate) fn progress(&self, seconds: u64) -> Option<Value> {
        let token = self.progress_token.as_ref()?;
        Some(json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {
                "progressToken": token,
                "progress": seconds,
                "total": self.takes.as_secs_f64(),
                "message": format!("step {seconds}"),
            },
        }))
    }
}

/// Returns the name of the tool that a message calls.
pub(crate) fn called_tool(message: &Value) -> Option<&str> {
    let is_call = message.get("method").and_then(Value::as_str) == Some("tools/call");
    is_call.then(|| message.pointer("/params/name")?.as_str())?
}

pub(crate) fn handle_message(message: &Value, decision: Decision) -> RpcResponse {
    let Some(id) = message.get("id") else {
        return RpcResponse::None;
    };
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        return RpcResponse::None;
    };
    let answer = match method {
        "initialize" => result(
            id,
            &json!({
                "protocolVersion": message
                    .pointer("/params/protocolVersion")
                    .cloned()
                    .unwrap_or_else(|| PROTOCOL_VERSION.into()),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "teamster-mcp-fixture", "version": env!("CARGO_PKG_VERSION")},
            }),
        ),
        "ping" => result(id, &json!({})),
        "tools/list" => result(id, &json!({"tools": tools()})),
        "tools/call" => return call(id, message, decision),
        _ => error(id, METHOD_NOT_FOUND, &format!("method not found: {method}")),
    };
    RpcResponse::Immediate(answer)
}

fn tools() -> Value {
    let number = json!({"type": "number"});
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    };
    json!([
        tool("add", "Add two numbers", json!({"a": number, "b": number}), &["a", "b"]),
        tool("fail", "Always fails", json!({}), &[]),
        tool("image", "Returns an image of one pixel", json!({}), &[]),
        tool("slow", "Takes its time", json!({"seconds": number}), &["seconds"]),
        tool(
            "approve",
            "Decides whether a tool may be used",
            json!({
                "tool_name": {"type": "string"},
                "input": {"type": "object"},
                "tool_use_id": {"type": "string"},
            }),
            &["tool_name", "input"],
        ),
    ])
}

fn call(id: &Value, message: &Value, decision: Decision) -> RpcResponse {
    let number = |name: &str| message.pointer("/params/arguments")?.get(name)?.as_f64();
    let invalid = |what: &str| RpcResponse::Immediate(error(id, INVALID_PARAMS, what));
    let name = called_tool(message).unwrap_or_default();
    let content = match name {
        "add" => match number("a").zip(number("b")) {
            Some((a, b)) => vec![text(&(a + b).to_string())],
            None => return invalid("add: `a` and `b` must be numbers"),
        },
        "fail" => {
            let content = [text("it always fails")];
            return RpcResponse::Immediate(result(id, &json!({"content": content, "isError": true})));
        }
        "image" => vec![text("see the image"), json!({"type": "image", "data": PIXEL_PNG, "mimeType": "image/png"})],
        "slow" => {
            let seconds = number("seconds").and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            let Some(takes) = seconds else {
                return invalid("slow: `seconds` must be a number that is not negative");
            };
            return RpcResponse::Delayed(DelayedResponse {
                takes,
                answer: result(id, &json!({"content": [text("slept")]})),
                progress_token: message.pointer("/params/_meta/progressToken").cloned(),
            });
        }
        "approve" => vec![text(&permission_decision(message, decision).to_string())],
        _ => return invalid(&format!("unknown tool: {name}")),
    };
    RpcResponse::Immediate(result(id, &json!({"content": content})))
}

fn permission_decision(message: &Value, decision: Decision) -> Value {
    match decision {
        Decision::Allow => json!({
            "behavior": "allow",
            "updatedInput": message.pointer("/params/arguments/input").unwrap_or(&Value::Null),
        }),
        Decision::Deny => json!({"behavior": "deny", "message": "the approver says no"}),
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Decision, RpcResponse, handle_message};

    fn call(name: &str, arguments: &Value) -> Value {
        let message = json!({
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments, "_meta": {"progressToken": "t"}},
        });
        match handle_message(&message, Decision::Deny) {
            RpcResponse::Immediate(answer) => answer,
            RpcResponse::Delayed(delayed) => delayed.progress(1).expect("the client requested progress"),
            RpcResponse::None => Value::Null,
        }
    }

    #[test]
    fn whole_sums_are_written_without_a_fraction() {
        let answer = call("add", &json!({"a": 2, "b": 40}));
        assert_eq!(answer["result"]["content"][0]["text"], "42");
    }

    #[test]
    fn invalid_arguments_cause_an_error_response() {
        for (name, arguments) in [("add", json!({"a": 1})), ("slow", json!({"seconds": -1})), ("none", json!({}))] {
            assert_eq!(call(name, &arguments)["error"]["code"], -32602, "{name}");
        }
    }

    #[test]
    fn a_slow_call_reports_its_progress() {
        assert_eq!(call("slow", &json!({"seconds": 2}))["params"]["total"], 2.0);
    }

    #[test]
    fn a_denial_has_the_format_that_the_agent_expects() {
        let answer = call("approve", &json!({"input": {}}));
        let permission_decision = answer["result"]["content"][0]["text"].as_str();
        assert!(
            permission_decision.is_some_and(|permission_decision| permission_decision.contains(r#""behavior":"deny""#))
        );
    }

    #[test]
    fn notifications_get_no_response() {
        let message = json!({"method": "notifications/initialized"});
        assert_eq!(handle_message(&message, Decision::Allow), RpcResponse::None);
    }
}
