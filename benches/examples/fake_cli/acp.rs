//! An agent that speaks the Agent Client Protocol, version 1, on its standard streams.

use serde_json::Value;
use teamster_benches::scenario::Scenario;

use crate::output::Output;
use crate::play::{self, Wire};
use crate::rpc;

struct Acp {
    /// The id of the request `session/prompt`.
    prompt: Value,
}

const SESSION: &str = "b606adba-1503-4044-a891-3c1debe3f763";

pub(crate) fn run(scenario: &Scenario) {
    let mut out = Output::new();
    let (mut children, mut open) = (Vec::new(), None);
    for call in rpc::calls() {
        match (call.method.as_str(), call.id) {
            ("session/prompt", Some(prompt)) => {
                let acp = Acp { prompt };
                children.push(play::turn(&acp, &mut out, scenario));
                open = scenario.wait.then_some(acp);
            }
            ("session/cancel", _) => {
                if let Some(acp) = open.take() {
                    out.line(&acp.stopped("cancelled"));
                }
            }
            (method, Some(id)) => out.line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result(method))),
            _ => {}
        }
        out.flush();
    }
}

fn result(method: &str) -> String {
    match method {
        "initialize" => r#"{"protocolVersion":1,"authMethods":[],"agentInfo":{"name":"fake","title":"Fake","version":"0.61.0"},"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true}}}"#.to_owned(),
        "session/new" => format!(r#"{{"sessionId":"{SESSION}"}}"#),
        _ => "{}".to_owned(),
    }
}

fn update(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{SESSION}","update":{{{update}}}}}}}"#
    )
}

impl Acp {
    fn stopped(&self, reason: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"stopReason":"{reason}"}}}}"#, self.prompt)
    }
}

impl Wire for Acp {
    fn start(&self, _: &mut Output) {}

    fn tool(&self, out: &mut Output, number: u64) {
        out.line(&update(&format!(r#""sessionUpdate":"tool_call","toolCallId":"call_{number}","status":"in_progress","title":"cat big","content":[],"locations":[],"kind":"execute""#)));
    }

    fn tool_result(&self, out: &mut Output, number: u64, piece: &str, times: u64) {
        out.put(r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#).put(SESSION);
        out.put(&format!(r#"","update":{{"sessionUpdate":"tool_call_update","toolCallId":"call_{number}","status":"completed","title":"cat big","content":[{{"type":"content","content":{{"type":"text","text":""#));
        out.repeat(piece, times).line(r#""}}],"locations":[],"kind":"execute"}}}"#);
    }

    fn open_text(&self, _: &mut Output) {}

    fn delta(&self, _: u64, text: &str) -> String {
        update(&format!(r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#))
    }

    fn end(&self, out: &mut Output, _: &str, _: u64) {
        out.line(&self.stopped("end_turn"));
    }
}
