//! Codex 0.169.0: `codex app-server`.

use teamster_benches::scenario::Scenario;

use crate::output::Output;
use crate::play::{self, Wire};
use crate::rpc;

struct AppServer;

const THREAD: &str = "01a2030c-f6da-78b1-bd03-67f1f3db419a";
const TURN: &str = "01a2030c-f702-7e90-94d1-5bee497445c9";
const AT: u64 = 1_795_347_511_207;

pub(crate) fn run(scenario: &Scenario) {
    let mut out = Output::new();
    let mut children = Vec::new();
    for call in rpc::calls() {
        let Some(id) = call.id else { continue };
        let starts_turn = call.method == "turn/start";
        let result = match call.method.as_str() {
            "initialize" => r#"{"userAgent":"codex/0.169.0 (Debian 12.0.0; x86_64)","codexHome":"/home/dev/.codex","platformFamily":"unix","platformOs":"linux"}"#.to_owned(),
            "thread/start" | "thread/resume" => format!(r#"{{"thread":{{"id":"{THREAD}","model":"gpt-5.5","cwd":"/home/dev/project","cliVersion":"0.169.0","status":{{"type":"idle"}}}},"model":"gpt-5.5","cwd":"/home/dev/project","approvalPolicy":"never","sandbox":{{"type":"dangerFullAccess"}}}}"#),
            "turn/start" => format!(r#"{{"turn":{}}}"#, turn("inProgress")),
            _ => "{}".to_owned(),
        };
        out.line(&format!(r#"{{"id":{id},"result":{result}}}"#));
        if starts_turn {
            children.push(play::turn(&AppServer, &mut out, scenario));
        }
        if call.method == "turn/interrupt" {
            out.line(&notification("turn/completed", &format!(r#""turn":{}"#, turn("interrupted"))));
        }
        out.flush();
    }
}

fn turn(status: &str) -> String {
    format!(
        r#"{{"id":"{TURN}","rootTurnId":"{TURN}","items":[],"itemsView":"notLoaded","status":"{status}","error":null,"startedAt":1795347511,"completedAt":null,"durationMs":null}}"#
    )
}

fn notification(method: &str, params: &str) -> String {
    format!(
        r#"{{"method":"{method}","params":{{{params},"threadId":"{THREAD}","turnId":"{TURN}"}},"emittedAtMs":{AT}}}"#
    )
}

fn command(number: u64, status: &str) -> String {
    format!(
        r#""type":"commandExecution","id":"call_{number}","command":"/bin/bash -lc 'cat big'","cwd":"/home/dev/project","processId":null,"source":"agent","status":"{status}","commandActions":[]"#
    )
}

const MESSAGE: &str = r#""item":{"type":"agentMessage","moderation":null,"id":"msg_0001_0","text":""#;
const MESSAGE_END: &str = r#"","phase":null,"memoryCitation":null,"delivery":null,"questions":null}"#;

impl Wire for AppServer {
    fn start(&self, out: &mut Output) {
        out.line(&notification("turn/started", &format!(r#""turn":{}"#, turn("inProgress"))));
    }

    fn tool(&self, out: &mut Output, number: u64) {
        let item = command(number, "inProgress");
        let item = format!(r#""item":{{{item},"aggregatedOutput":null,"exitCode":null,"durationMs":null}}"#);
        out.line(&notification("item/started", &item));
    }

    fn tool_result(&self, out: &mut Output, number: u64, piece: &str, times: u64) {
        out.put(r#"{"method":"item/completed","params":{"item":{"#).put(&command(number, "completed"));
        out.put(r#","aggregatedOutput":""#).repeat(piece, times);
        out.put(r#"","exitCode":0,"durationMs":12},"threadId":""#).put(THREAD).put(r#"","turnId":""#).put(TURN);
        out.line(&format!(r#""}},"emittedAtMs":{AT}}}"#));
    }

    fn open_text(&self, out: &mut Output) {
        out.line(&notification("item/started", &format!("{MESSAGE}{MESSAGE_END}")));
    }

    fn delta(&self, _: u64, text: &str) -> String {
        format!(
            r#"{{"method":"item/agentMessage/delta","params":{{"threadId":"{THREAD}","turnId":"{TURN}","itemId":"msg_0001_0","delta":"{text}"}},"emittedAtMs":{AT}}}"#
        )
    }

    fn end(&self, out: &mut Output, piece: &str, times: u64) {
        out.put(r#"{"method":"item/completed","params":{"#).put(MESSAGE).repeat(piece, times).put(MESSAGE_END);
        out.line(&format!(r#","threadId":"{THREAD}","turnId":"{TURN}"}},"emittedAtMs":{AT}}}"#));
        let usage = r#"{"totalTokens":1050,"inputTokens":1000,"cachedInputTokens":400,"cacheWriteInputTokens":0,"outputTokens":50,"reasoningOutputTokens":20}"#;
        let usage = format!(r#""tokenUsage":{{"total":{usage},"last":{usage},"modelContextWindow":258400}}"#);
        out.line(&notification("thread/tokenUsage/updated", &usage));
        out.line(&notification("turn/completed", &format!(r#""turn":{}"#, turn("completed"))));
    }
}
