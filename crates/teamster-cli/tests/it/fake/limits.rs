//! Budgets of runs and sessions, on a fake CLI.

use std::process::Stdio;

use super::{FILES, ScenarioDir};
use crate::command::Running;

#[test]
fn a_session_without_budget_rejects_further_turns() {
    let scenario = ScenarioDir::with("[[turns]]\nsteps = [{ say = \"Hi\" }]\n");
    let tokens = ["claude", "codex", "opencode"].map(|agent| (agent, ["--max-session-tokens", "100"]));
    let cost = ["claude", "opencode"].map(|agent| (agent, ["--max-session-budget", "0.0005"]));
    for (agent, limit) in tokens.into_iter().chain(cost) {
        let mut session = scenario.command("session", agent, &scenario.file("scenario"), &limit);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        session.write_line(r#"{"type":"send","text":"one"}"#);
        session.next_event("done");
        session.write_line(r#"{"type":"send","text":"two"}"#);
        let rejected = session.next_event("error");
        assert_eq!(rejected["code"], "BUDGET", "{agent} {limit:?}: {rejected}");
        assert!(rejected["message"].as_str().unwrap().contains("nothing was sent"), "{agent} {limit:?}: {rejected}");
        session.write_line(r#"{"type":"close"}"#);
        session.end();
    }
}

#[test]
fn a_turn_that_exceeds_its_tokens_is_stopped_and_the_next_one_runs() {
    let scenario =
        ScenarioDir::with("[[turns]]\nsteps = [{ say = \"Hi\" }, { waitMs = 600000 }]\n[[turns]]\nsteps = []\n");
    for agent in ["claude", "codex"] {
        let limit = ["--max-tokens", "100"];
        let mut session = scenario.command("session", agent, &scenario.file("scenario"), &limit);
        let mut session = Running::start(session.stdin(Stdio::piped()));
        session.write_line(r#"{"type":"send","text":"one"}"#);
        let done = session.next_event("done");
        assert_eq!(
            (&done["result"]["errorCode"], &done["result"]["aborted"]),
            (&"BUDGET".into(), &false.into()),
            "{agent}"
        );
        session.write_line(r#"{"type":"send","text":"two"}"#);
        assert_ne!(session.next_event("done")["result"]["errorCode"], "BUDGET", "{agent}");
        session.write_line(r#"{"type":"close"}"#);
        session.end();
    }
}

#[test]
fn a_budget_that_an_agent_does_not_report_is_rejected_before_anything_is_sent() {
    let scenario = ScenarioDir::with(FILES);
    for (agent, args) in [
        ("codex", &["--max-budget", "1"][..]),
        ("codex", &["--max-session-budget", "1"]),
        ("codex", &["--max-tokens", "100", "--mode", "exec"]),
        ("gemini", &["--max-budget", "1"]),
        ("gemini", &["--max-tokens", "100"]),
        ("gemini", &["--max-session-tokens", "100"]),
        ("claude", &["--max-tokens", "100", "--batch"]),
    ] {
        let end = scenario.run(agent, args);
        assert_eq!((end.code, end.out.as_str()), (Some(2), ""), "{agent} {args:?}: {}", end.err);
        assert!(end.err.contains(args[0]), "{agent} {args:?}: {}", end.err);
    }
}
