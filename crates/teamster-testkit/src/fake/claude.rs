//! Script builders for the output of Claude Code 2.1.197 in stream-json mode with partial messages.
//!
//! The lines have the shape of the runs recorded in `teamster-agents` (`tests/captures/claude`:
//! `perm_write`, `stream_interrupt_tool`), without the fields that contain only figures.

use serde_json::{Value, json};

use super::script::Script;

/// The session id in every line of a [`Script`] for Claude Code.
pub const CLAUDE_SESSION: &str = "078672f8-b675-400d-816b-6dfdee66f8d8";

const MODEL: &str = "claude-opus-4-8";
const UUID: &str = "59b8836a-aa5a-49be-9b33-ad51e6a2c71d";

/// Characters per delta. The CLI's deltas have about this length when a model responds slowly.
const DELTA_CHARS: usize = 7;

impl Script {
    /// Adds the `init` line.
    #[must_use]
    pub fn claude_init(self) -> Self {
        self.line(json!({
            "type": "system", "subtype": "init", "cwd": "/home/dev/project", "session_id": CLAUDE_SESSION,
            "tools": ["Bash", "Edit", "Read", "Write"], "mcp_servers": [], "model": MODEL,
            "permissionMode": "default", "claude_code_version": "2.1.197", "uuid": UUID,
        }))
    }

    /// Adds a whole text message, streamed in deltas.
    #[must_use]
    pub fn claude_text(self, text: &str) -> Self {
        let id = self.message_id();
        let characters: Vec<char> = text.chars().collect();
        let deltas = characters.chunks(DELTA_CHARS).map(|part| text_delta(&part.iter().collect::<String>()));
        self.lines(message_start(&id))
            .lines(block_start(&json!({"type": "text", "text": ""})))
            .then(deltas.fold(Script::new(), Script::line))
            .line(assistant(&id, &json!({"type": "text", "text": text})))
            .lines(message_end("end_turn"))
    }

    /// Adds the beginning of a text message, which remains incomplete.
    #[must_use]
    pub fn claude_partial_text(self, text: &str) -> Self {
        let id = self.message_id();
        self.lines(message_start(&id)).lines(block_start(&json!({"type": "text", "text": ""}))).line(text_delta(text))
    }

    /// Adds a message of many deltas (`0 1 2 ` and so on), written as fast as the pipe takes them.
    #[must_use]
    pub fn claude_burst(self, deltas: u64) -> Self {
        let id = self.message_id();
        self.lines(message_start(&id))
            .lines(block_start(&json!({"type": "text", "text": ""})))
            .burst(deltas, text_delta("{n} "))
            .lines(message_end("end_turn"))
    }

    /// Adds a message that calls a tool.
    #[must_use]
    pub fn claude_tool(self, tool_id: &str, name: &str, input: &Value) -> Self {
        let id = self.message_id();
        let block = |input: &Value| json!({"type": "tool_use", "id": tool_id, "name": name, "input": input});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        self.lines(message_start(&id))
            .lines(block_start(&block(&json!({}))))
            .line(stream_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})))
            .line(assistant(&id, &block(input)))
            .lines(message_end("tool_use"))
    }

    /// Adds the echo of the prompt that was found last (`--replay-user-messages`): the model is
    /// about to receive it.
    #[must_use]
    pub fn claude_echo(self) -> Self {
        self.echo([("isReplay", true.into()), ("session_id", CLAUDE_SESSION.into())])
    }

    /// Adds the output of a tool.
    #[must_use]
    pub fn claude_tool_result(self, tool_id: &str, output: &str) -> Self {
        let block = json!({"tool_use_id": tool_id, "type": "tool_result", "content": output});
        self.line(user(&block))
    }

    /// Adds the error output of a tool call that failed or was denied.
    #[must_use]
    pub fn claude_tool_failed(self, tool_id: &str, output: &str) -> Self {
        let block = json!({"tool_use_id": tool_id, "type": "tool_result", "content": output, "is_error": true});
        self.line(user(&block))
    }

    /// Adds a thinking message.
    #[must_use]
    pub fn claude_thinking(self, text: &str) -> Self {
        let id = self.message_id();
        let block = |text: &str| json!({"type": "thinking", "thinking": text, "signature": ""});
        let delta = json!({"type": "thinking_delta", "thinking": text});
        self.lines(message_start(&id))
            .lines(block_start(&block("")))
            .line(stream_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})))
            .line(assistant(&id, &block(text)))
            .lines(message_end("end_turn"))
    }

    /// Adds the result line of a successful turn. The real CLI then reads stdin to its end and
    /// exits.
    #[must_use]
    pub fn claude_result(self, text: &str) -> Self {
        self.line(result_line(text))
    }

    /// Adds the result line without its newline.
    #[must_use]
    pub fn claude_result_unterminated(self, text: &str) -> Self {
        self.text(result_line(text).to_string())
    }

    /// Adds the first half of the result line.
    #[must_use]
    pub fn claude_result_truncated(self, text: &str) -> Self {
        let line = result_line(text).to_string();
        let half = line.chars().take(line.chars().count() / 2).collect::<String>();
        self.text(half)
    }

    /// Adds the last lines of a turn that the vendor rejected with this HTTP status, after the
    /// CLI's own retries. The real CLI then reads stdin to its end and exits with code 1.
    #[must_use]
    pub fn claude_api_error(self, status: u16, message: &str) -> Self {
        let text = format!("API Error: {status} {message}");
        let error = match status {
            401 | 403 => "authentication_failed",
            429 => "rate_limit",
            500.. => "server_error",
            _ => "invalid_request",
        };
        self.line(json!({
            "type": "assistant", "error": error, "parent_tool_use_id": null, "session_id": CLAUDE_SESSION, "uuid": UUID,
            "message": {
                "id": "caed317d-0fae-4e6f-a5e8-ec5a4d89a947", "type": "message", "role": "assistant",
                "model": "<synthetic>", "content": [{"type": "text", "text": text}], "stop_reason": "stop_sequence",
            },
        }))
        .line(json!({
            "type": "result", "subtype": "success", "is_error": true, "api_error_status": status, "duration_ms": 387,
            "duration_api_ms": 372, "num_turns": 1, "result": text, "stop_reason": "stop_sequence",
            "session_id": CLAUDE_SESSION, "total_cost_usd": 0.003_55, "usage": usage(), "permission_denials": [],
            "terminal_reason": "completed", "uuid": UUID,
        }))
    }

    /// Adds the CLI's notice that a plan's limit is reached until this time, in seconds since 1970.
    #[must_use]
    pub fn claude_rate_limited_until(self, unix_seconds: i64) -> Self {
        self.line(json!({
            "type": "rate_limit_event", "session_id": CLAUDE_SESSION, "uuid": UUID,
            "rate_limit_info": {"status": "rejected", "resetsAt": unix_seconds, "rateLimitType": "five_hour"},
        }))
    }

    /// Adds the lines of an interrupted turn: the response to the control request, and the result
    /// line.
    #[must_use]
    pub fn claude_interrupted(self) -> Self {
        let interrupted = json!({"type": "text", "text": "[Request interrupted by user]"});
        self.line(json!({
            "type": "control_response",
            "response": {"subtype": "success", "request_id": "teamster-interrupt", "response": {}},
        }))
        .line(user(&interrupted))
        .line(json!({
            "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 1637,
            "duration_api_ms": 438, "num_turns": 1, "stop_reason": null, "session_id": CLAUDE_SESSION,
            "total_cost_usd": 0.001_775, "usage": usage(), "permission_denials": [],
            "terminal_reason": "aborted_streaming", "uuid": UUID, "errors": [],
        }))
    }

    /// From now on responds to an interrupt request as the real CLI does: it confirms, ends the
    /// turn, waits for the end of stdin, and exits.
    #[must_use]
    pub fn claude_answers_interrupts(self) -> Self {
        self.on_line(INTERRUPT, Script::new().claude_interrupted())
    }

    /// Adds a heartbeat, which does not report the agent's progress.
    #[must_use]
    pub fn claude_keep_alive(self) -> Self {
        self.line(json!({"type": "keep_alive"}))
    }

    fn lines<const COUNT: usize>(self, lines: [Value; COUNT]) -> Self {
        lines.into_iter().fold(self, Script::line)
    }

    /// Returns an id for the message that starts at the end of this script.
    fn message_id(&self) -> String {
        format!("msg_fake{:04}", self.steps().len())
    }
}

/// A text that every interrupt request contains.
const INTERRUPT: &str = r#""subtype":"interrupt""#;

fn stream_event(event: &Value) -> Value {
    json!({
        "type": "stream_event", "event": event, "session_id": CLAUDE_SESSION, "parent_tool_use_id": null, "uuid": UUID,
    })
}

fn message_start(id: &str) -> [Value; 1] {
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": MODEL, "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage(),
    });
    [stream_event(&json!({"type": "message_start", "message": message}))]
}

fn block_start(block: &Value) -> [Value; 1] {
    [stream_event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))]
}

fn text_delta(text: &str) -> Value {
    let delta = json!({"type": "text_delta", "text": text});
    stream_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

fn message_end(stop_reason: &str) -> [Value; 3] {
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    [
        stream_event(&json!({"type": "content_block_stop", "index": 0})),
        stream_event(&json!({"type": "message_delta", "delta": delta, "usage": usage()})),
        stream_event(&json!({"type": "message_stop"})),
    ]
}

fn assistant(id: &str, block: &Value) -> Value {
    json!({
        "type": "assistant",
        "message": {
            "id": id, "type": "message", "role": "assistant", "model": MODEL, "content": [block], "stop_reason": null,
            "stop_sequence": null, "usage": usage(),
        },
        "parent_tool_use_id": null, "session_id": CLAUDE_SESSION, "uuid": UUID,
    })
}

fn user(block: &Value) -> Value {
    json!({
        "type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null,
        "session_id": CLAUDE_SESSION, "uuid": UUID,
    })
}

fn result_line(text: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "duration_ms": 510,
        "duration_api_ms": 372, "num_turns": 1, "result": text, "stop_reason": "end_turn",
        "session_id": CLAUDE_SESSION, "total_cost_usd": 0.003_55, "usage": usage(), "permission_denials": [],
        "terminal_reason": "completed", "uuid": UUID,
    })
}

fn usage() -> Value {
    json!({
        "input_tokens": 25, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 40,
    })
}
