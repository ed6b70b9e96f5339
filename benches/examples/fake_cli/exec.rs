//! Codex 0.169.0: `codex exec --json`. It has no deltas: each is an item of its own.

use teamster_benches::scenario::Scenario;

use crate::output::Output;
use crate::play::{self, Wire};

struct Exec;

pub(crate) fn run(scenario: &Scenario) {
    crate::read_prompt();
    let _children = play::turn(&Exec, &mut Output::new(), scenario);
    if scenario.wait {
        crate::wait_forever();
    }
}

impl Wire for Exec {
    fn start(&self, out: &mut Output) {
        out.line(r#"{"type":"thread.started","thread_id":"01a2007e-c733-7cb1-a9d2-f7d64af38c0f"}"#);
        out.line(r#"{"type":"turn.started"}"#);
    }

    fn tool(&self, out: &mut Output, number: u64) {
        out.line(&format!(r#"{{"type":"item.started","item":{{"id":"item_t{number}","type":"command_execution","command":"/bin/bash -lc 'cat big'","aggregated_output":"","exit_code":null,"status":"in_progress"}}}}"#));
    }

    fn tool_result(&self, out: &mut Output, number: u64, piece: &str, times: u64) {
        let id = format!("item_t{number}");
        out.put(r#"{"type":"item.completed","item":{"id":""#).put(&id);
        out.put(r#"","type":"command_execution","command":"/bin/bash -lc 'cat big'","aggregated_output":""#);
        out.repeat(piece, times).line(r#"","exit_code":0,"status":"completed"}}"#);
    }

    fn open_text(&self, _: &mut Output) {}

    fn delta(&self, number: u64, text: &str) -> String {
        format!(r#"{{"type":"item.completed","item":{{"id":"item_{number}","type":"agent_message","text":"{text}"}}}}"#)
    }

    fn end(&self, out: &mut Output, _: &str, _: u64) {
        out.line(r#"{"type":"turn.completed","usage":{"input_tokens":1000,"cached_input_tokens":400,"cache_write_input_tokens":0,"output_tokens":50,"reasoning_output_tokens":20}}"#);
    }
}
