//! Recorded runs of Claude Code in the format `pretty`.

use std::path::Path;

use teamster::RunRequest;
use teamster::agent::Agent as _;
use teamster::agent::claude::Claude;
use teamster::agent::protocol::{Action, Input, Protocol};
use teamster::agent::transcript::{End, Transcript};

use super::*;

/// Returns the events of a recorded run of Claude Code.
fn recorded(name: &str) -> Vec<Event> {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures/claude");
    let lines = std::fs::read(captures.join(name).join("stdout.ndjson")).unwrap();
    let mut protocol = Claude.plan(&RunRequest::new("hi")).unwrap().protocol;
    let (mut transcript, mut events) = (Transcript::new(), Vec::new());
    for line in lines.split(|byte| *byte == b'\n') {
        feed(&mut *protocol, Input::Line(line), &mut transcript, &mut events);
    }
    transcript.end(&End { duration_ms: 2_300, ..End::default() }, &mut events);
    events
}

fn feed(protocol: &mut dyn Protocol, input: Input<'_>, transcript: &mut Transcript, events: &mut Vec<Event>) {
    let mut actions = Vec::new();
    protocol.handle(input, &mut actions);
    for action in actions {
        match action {
            Action::Emit(event) => transcript.push(event, events),
            Action::Outcome(outcome) => transcript.set_outcome(*outcome),
            _ => {}
        }
    }
}

#[test]
fn tools_of_an_mcp_server() {
    assert_snapshot!(pretty(&recorded("mcp_file")), @r"
    claude 2.1.197 · claude-opus-4-8[1m]

    Adding.

    ● calc: add a=2 b=40  ✓ 0.1s
    ● calc: fail  ✗ it always fails
    ● calc: image  ✓ 0.1s

    42; the second call failed, the third was an image.
    claude-opus-4-8 · 4 turns · 700 in (200 cached) / 160 out · $0.0071 · 2.3s
    session 37dbea23-eb3e-44a3-8f92-63a39a53e952
    ");
}

#[test]
fn subagents_at_work_together() {
    assert_snapshot!(pretty(&recorded("subagent_parallel")), @r"
    claude 2.1.197 · claude-opus-4-8[1m]

    Two agents.

    ● Agent Worker A
    ● Agent Worker B
    ┄ Agent Worker A
      ● Run echo from-subagent
    ┄ Agent Worker B
      ● Run echo from-subagent
    ┄ Agent Worker A
      ✓ Run echo from-subagent (0.2s)
    ┄ Agent Worker B
      ✓ Run echo from-subagent (0.2s)
    ✓ Agent Worker A (0.7s)
    ✓ Agent Worker B (0.7s)

    Both reported.
    claude-opus-4-8 · 3 turns · 1.0k in (300 cached) / 240 out · $0.0106 · 2.3s
    session 45560e01-e55a-4220-ab63-c388dee79fdd
    ");
}

#[test]
fn a_connection_that_broke() {
    assert_snapshot!(pretty(&recorded("err_cut_once")), @r"
    claude 2.1.197 · claude-opus-4-8[1m]

    This stream will be cut in t

    ↺ the last message is retracted: the answer starts again

    Whole answer.
    claude-opus-4-8 · 1 turn · 175 in (50 cached) / 40 out · $0.0018 · 2.3s
    session a2c622ce-ed0d-435f-a9a0-fb2b621da098
    ");
}

#[test]
fn a_vendor_that_refuses_the_key() {
    assert_snapshot!(pretty(&recorded("err_forbidden403")), @r"
    claude 2.1.197 · claude-opus-4-8[1m]
    claude-opus-4-8[1m] · 1 turn · 2.3s
    session f319f5eb-e550-47ff-a4fb-f11dc895b63b
    error: Failed to authenticate. API Error: 403 Your API key does not have permission to use the specified resource. [AUTH]
     hint: run `claude` and type /login, or set ANTHROPIC_API_KEY
    ");
}
