//! The agent suite, applied to the built-in agents, an example, and agents that break a promise.

use std::path::Path;

use teamster::Registry;
use teamster::agent::acp::Acp;
use teamster::agent::launch::Launch;
use teamster::agent::protocol::{Action, Command, Input, Protocol};
use teamster::agent::{Agent, Plan};
use teamster::request::{RequestError, RunRequest};
use teamster_testkit::suite::Suite;

#[path = "../../teamster/examples/custom_agent.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod custom_agent;

/// Returns lines of an agent's recorded runs, at most 40 of each run.
fn recorded(agent: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../teamster-agents/tests/captures").join(agent);
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
fn the_built_in_agents_keep_all_promises() {
    let mut registry = Registry::default();
    // Without a program the generic ACP agent has no command.
    registry.register(Acp::named("acp", "agent"));
    for name in registry.names() {
        let agent = registry.get(name).unwrap();
        let lines = recorded(name);
        assert!(!lines.is_empty(), "{name} has no recorded runs");
        let suite = lines.into_iter().fold(Suite::new(&*agent), Suite::line);
        let suite = suite.greeting("opencode server listening on http://127.0.0.1:4096");
        assert_eq!(suite.run(), Ok(()), "{name}");
    }
}

#[test]
fn the_example_keeps_all_promises() {
    let suite =
        Suite::new(&custom_agent::Parrot).line(r#"{"text":"hi"}"#).line(r#"{"end":true}"#).line(r#"{"error":"x"}"#);
    // It only repeats its input.
    assert_eq!(suite.without_tools().run(), Ok(()));
}

/// Passes the prompt as a separate argument, and panics on every line.
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
        assert!(!matches!(input, Input::Line([_, ..])), "this protocol panics on every line");
    }
}

#[test]
fn broken_promises_of_an_agent_are_named() {
    let broken = Suite::new(&Careless).run().unwrap_err();
    let promises: Vec<_> = broken.iter().map(|broken| broken.promise).collect();
    assert!(promises.len() > 2, "{broken:#?}");
    assert!(broken[0].case.contains("is a separate argument"), "{}", broken[0]);
    assert!(broken[1].case.contains("panicked"), "{}", broken[1]);
}

/// A defect of an agent that is otherwise correct.
#[derive(Clone, Copy, PartialEq, Eq)]
enum But {
    Nothing,
    IgnoresTheSchema,
    IgnoresDenyRules,
    IgnoresDenyRulesOfServers,
    IgnoresMcpServers,
    IgnoresReadOnly,
    IgnoresTheSchemaInSessions,
    IgnoresReadOnlyInSessions,
    PanicsInSessions,
}

struct Good(But);

impl Good {
    fn planned(&self, request: &RunRequest, is_session: bool) -> Plan {
        let Self(but) = self;
        let mut launch = Launch::new("good");
        if *but != But::IgnoresTheSchema && !(is_session && *but == But::IgnoresTheSchemaInSessions) {
            launch.arg(format!("--schema={:?}", request.schema));
        }
        for rule in &request.permissions.deny {
            let ignored =
                if rule.starts_with("mcp__") { But::IgnoresDenyRulesOfServers } else { But::IgnoresDenyRules };
            if *but != ignored {
                launch.arg(format!("--deny={rule}"));
            }
        }
        if *but != But::IgnoresMcpServers {
            launch.arg(format!("--servers={}", request.mcp_servers.len()));
        }
        if *but != But::IgnoresReadOnly && !(is_session && *but == But::IgnoresReadOnlyInSessions) {
            launch.arg(format!("--mode={:?}", request.permissions.mode));
        }
        Plan { launch, protocol: Box::new(Talks { panics: is_session && *but == But::PanicsInSessions }) }
    }
}

impl Agent for Good {
    fn name(&self) -> &'static str {
        "good"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        Ok(self.planned(request, false))
    }

    fn plan_session(&self, request: &RunRequest) -> Result<Option<Plan>, RequestError> {
        Ok(Some(self.planned(request, true)))
    }
}

/// A protocol without output.
struct Talks {
    panics: bool,
}

impl Protocol for Talks {
    fn handle(&mut self, input: Input<'_>, _: &mut Vec<Action>) {
        let is_bad = matches!(input, Input::Command(Command::SetModel(_)));
        assert!(!(self.panics && is_bad), "it has one model");
    }
}

fn promises(agent: &Good) -> Vec<String> {
    let broken = Suite::new(agent).cases(64).run().err().unwrap_or_default();
    broken.iter().map(ToString::to_string).collect()
}

#[test]
fn an_agent_that_ignores_nothing_passes() {
    assert_eq!(promises(&Good(But::Nothing)), [""; 0]);
}

#[test]
fn an_ignored_option_or_a_panic_in_a_session_is_the_only_reported_broken_promise() {
    for (but, promise) in [
        (But::IgnoresTheSchema, "a schema is applied or rejected: a run"),
        (But::IgnoresDenyRules, "a deny rule for one of the agent's tools is applied or rejected: a run"),
        (But::IgnoresDenyRulesOfServers, "a deny rule for an MCP server's tool is applied or rejected: a run"),
        (But::IgnoresMcpServers, "an MCP server is applied or rejected: a run"),
        (But::IgnoresReadOnly, "read-only is applied or rejected: a run"),
        (But::IgnoresTheSchemaInSessions, "a schema is applied or rejected: a session"),
        (But::IgnoresReadOnlyInSessions, "read-only is applied or rejected: a session"),
        (But::PanicsInSessions, "a session's protocol is total, and its streams follow the rules"),
    ] {
        let promises = promises(&Good(but));
        assert!(promises.len() == 1 && promises[0].starts_with(promise), "{promise}: {promises:#?}");
    }
}
