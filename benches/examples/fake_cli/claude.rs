//! Claude Code 2.1.197: `-p --output-format stream-json`, with and without `--input-format stream-json`.

use std::io::{self, BufRead as _};

use serde_json::{Value, json};
use teamster_benches::scenario::Scenario;

use crate::output::Output;
use crate::play::{self, Wire};

struct Claude;

const SESSION: &str = "1d656fa1-cf2d-44bf-9c7d-ce61a99c998d";
const USAGE: &str = r#"{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard","inference_geo":"not_available"}"#;

/// One prompt on standard input.
pub(crate) fn one_shot(scenario: &Scenario) {
    crate::read_prompt();
    let _children = play::turn(&Claude, &mut Output::new(), scenario);
    if scenario.wait {
        crate::wait_forever();
    }
}

/// Prompts and control requests on standard input, to its end.
pub(crate) fn session(scenario: &Scenario, replays: bool) {
    let mut out = Output::new();
    let mut children = Vec::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        match message.get("type").and_then(Value::as_str) {
            Some("control_request") => control(&mut out, &message),
            Some("user") => {
                if replays && let Some(uuid) = message.get("uuid") {
                    out.line(&replay(&message, uuid));
                }
                children.push(play::turn(&Claude, &mut out, scenario));
            }
            _ => {}
        }
        out.flush();
    }
}

fn control(out: &mut Output, message: &Value) {
    let id = message.get("request_id").cloned().unwrap_or_default();
    let response = json!({ "commands": [], "agents": [], "output_style": "default", "models": [], "account": {} });
    let answer = json!({ "subtype": "success", "request_id": id, "response": response });
    out.line(&json!({ "type": "control_response", "response": answer }).to_string());
    let subtype = message.pointer("/request/subtype").and_then(Value::as_str);
    if subtype == Some("interrupt") {
        out.line(&result("error_during_execution", true));
    }
}

fn replay(message: &Value, uuid: &Value) -> String {
    let content = message.get("message");
    json!({ "type": "user", "message": content, "session_id": SESSION, "uuid": uuid, "isReplay": true }).to_string()
}

fn uuid(number: u64) -> String {
    format!("{:08x}-88a0-4bb4-97ba-{:012x}", number ^ 0x5ca1_ab1e, number * 0x9e37)
}

fn ids(number: u64) -> String {
    format!(r#""session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{}""#, uuid(number))
}

fn stream_event(number: u64, event: &str) -> String {
    format!(r#"{{"type":"stream_event","event":{event},{}}}"#, ids(number))
}

fn message_start(id: &str) -> String {
    format!(
        r#"{{"type":"message_start","message":{{"id":"{id}","type":"message","role":"assistant","model":"claude-opus-4-8","content":[],"stop_reason":null,"stop_sequence":null,"usage":{USAGE}}}}}"#
    )
}

/// Writes an `assistant` line with one block.
fn assistant(out: &mut Output, id: &str, block: impl FnOnce(&mut Output)) {
    out.put(r#"{"type":"assistant","message":{"id":""#).put(id);
    out.put(r#"","type":"message","role":"assistant","model":"claude-opus-4-8","content":["#);
    block(out);
    out.put(r#"],"stop_reason":null,"stop_sequence":null,"usage":"#).put(USAGE);
    out.put(r#","context_management":null},"#).put(&ids(2));
    out.line(r#","request_id":"req_mock000003"}"#);
}

fn message_end(out: &mut Output, stop_reason: &str) {
    out.line(&stream_event(3, r#"{"type":"content_block_stop","index":0}"#));
    out.line(&stream_event(4, &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop_reason}","stop_sequence":null}},"usage":{{"input_tokens":25,"cache_creation_input_tokens":100,"cache_read_input_tokens":50,"output_tokens":40}}}}"#)));
    out.line(&stream_event(5, r#"{"type":"message_stop"}"#));
}

fn result(subtype: &str, is_error: bool) -> String {
    format!(
        r#"{{"type":"result","subtype":"{subtype}","is_error":{is_error},"errors":[],"duration_ms":708,"duration_api_ms":370,"num_turns":1,"stop_reason":null,"session_id":"{SESSION}","total_cost_usd":0,"usage":{{"input_tokens":0,"output_tokens":0}},"modelUsage":{{}},"permission_denials":[],"uuid":"{}"}}"#,
        uuid(6)
    )
}

impl Wire for Claude {
    fn start(&self, out: &mut Output) {
        out.line(&format!(r#"{{"type":"system","subtype":"init","cwd":"/home/dev/project","session_id":"{SESSION}","tools":["Task","Bash","Edit","Read","WebFetch","Write"],"mcp_servers":[],"model":"claude-opus-4-8[1m]","permissionMode":"bypassPermissions","slash_commands":["clear","compact","context","init","review","usage"],"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.197","output_style":"default","agents":["general-purpose"],"skills":[],"plugins":[],"uuid":"{}","fast_mode_state":"off"}}"#, uuid(0)));
        out.line(&format!(
            r#"{{"type":"system","subtype":"status","status":"requesting","uuid":"{}","session_id":"{SESSION}"}}"#,
            uuid(1)
        ));
    }

    fn tool(&self, out: &mut Output, number: u64) {
        let (id, call) = (format!("msg_tool{number}"), format!("toolu_mock{number:08}"));
        out.line(&stream_event(1, &message_start(&id)));
        out.line(&stream_event(1, &format!(r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"{call}","name":"Bash","input":{{}}}}}}"#)));
        out.line(&stream_event(1, r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"cat big\"}"}}"#));
        let block = format!(r#"{{"type":"tool_use","id":"{call}","name":"Bash","input":{{"command":"cat big"}}}}"#);
        assistant(out, &id, |out| {
            out.put(&block);
        });
        message_end(out, "tool_use");
    }

    fn tool_result(&self, out: &mut Output, number: u64, piece: &str, times: u64) {
        let call = format!("toolu_mock{number:08}");
        out.put(r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":""#).put(&call);
        out.put(r#"","type":"tool_result","content":""#).repeat(piece, times);
        out.put(r#"","is_error":false}]},"#).put(&ids(7)).line("}");
    }

    fn open_text(&self, out: &mut Output) {
        out.line(&stream_event(1, &message_start("msg_mock0002")));
        out.line(&stream_event(
            1,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ));
    }

    fn delta(&self, number: u64, text: &str) -> String {
        stream_event(
            number + 16,
            &format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#),
        )
    }

    fn end(&self, out: &mut Output, piece: &str, times: u64) {
        assistant(out, "msg_mock0002", |out| {
            out.put(r#"{"type":"text","text":""#).repeat(piece, times).put(r#""}"#);
        });
        message_end(out, "end_turn");
        out.put(r#"{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":708,"duration_api_ms":370,"num_turns":1,"result":""#);
        out.repeat(piece, times);
        out.line(&format!(r#"","stop_reason":"end_turn","session_id":"{SESSION}","total_cost_usd":0.00355,"usage":{{"input_tokens":50,"cache_creation_input_tokens":200,"cache_read_input_tokens":100,"output_tokens":80}},"modelUsage":{{"claude-opus-4-8[1m]":{{"inputTokens":50,"outputTokens":80,"cacheReadInputTokens":100,"cacheCreationInputTokens":200,"webSearchRequests":0,"costUSD":0.00355,"contextWindow":1000000,"maxOutputTokens":64000}}}},"permission_denials":[],"terminal_reason":"completed","uuid":"{}"}}"#, uuid(6)));
    }
}
