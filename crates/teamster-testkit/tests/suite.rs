//! The suite for agents, held against our own agents, an example, and agents that break what it looks for.

use std::path::Path;

use teamster::Registry;
use teamster::agent::acp::Acp;
use teamster::agent::{Agent, Plan};
use teamster::launch::Launch;
use teamster::protocol::{Action, Input, Protocol};
use teamster::request::{RequestError, RunRequest};
use teamster_testkit::suite::Suite;

#[path = "../../teamster/examples/custom_agent.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod custom_agent;

/// Lines of recorded runs of an agent, a few of each.
fn recorded(agent: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-protocol/tests/captures").join(agent);
    let mut lines: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("stdout.ndjson")).ok())
        .flat_map(|bytes| bytes.split(|byte| *byte == b'\n').take(40).map(<[u8]>::to_vec).collect::<Vec<_>>())
        .filter(|line| (1..4000).contains(&line.len()))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn our_own_agents_keep_what_agents_owe() {
    let mut registry = Registry::default();
    // Without a program it is nobody.
    registry.register(Acp::named("acp", "agent"));
    for name in registry.names() {
        let agent = registry.get(name).unwrap();
        let lines = recorded(name);
        assert!(!lines.is_empty(), "{name} has no recorded runs");
        let suite = lines.into_iter().fold(Suite::new(&*agent), Suite::line);
        assert_eq!(suite.run(), Ok(()), "{name}");
    }
}

#[test]
fn the_example_keeps_what_agents_owe() {
    let suite =
        Suite::new(&custom_agent::Parrot).line(r#"{"say":"hi"}"#).line(r#"{"end":true}"#).line(r#"{"error":"x"}"#);
    assert_eq!(suite.run(), Ok(()));
}

/// Puts the model into argv as it came, and panics at a line.
struct Careless;

struct Panics;

impl Agent for Careless {
    fn name(&self) -> &'static str {
        "careless"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut launch = Launch::new("careless");
        launch.arg(request.prompt.as_str());
        Ok(Plan { launch, protocol: Box::new(Panics) })
    }
}

impl Protocol for Panics {
    fn handle(&mut self, input: Input<'_>, _: &mut Vec<Action>) {
        assert!(!matches!(input, Input::Line([_, ..])), "it cannot read this");
    }
}

#[test]
fn an_agent_that_breaks_its_promises_is_told_which() {
    let broken = Suite::new(&Careless).run().unwrap_err();
    let promises: Vec<_> = broken.iter().map(|broken| broken.promise).collect();
    assert_eq!(promises.len(), 2, "{broken:#?}");
    assert!(broken[0].case.contains("stands as an argument of its own"), "{}", broken[0]);
    assert!(broken[1].case.contains("panicked"), "{}", broken[1]);
}
