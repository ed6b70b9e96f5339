//! What `teamster doctor` tells.

use std::process::Command;

use serde_json::Value;

use crate::command::{Ended, ended};

/// `teamster doctor` where the agent's CLI is this script.
fn doctor(script: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster"));
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("FAKE_CLI", script);
    command.env("BACKEND_CLI_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/fake-cli.sh"));
    command.arg("doctor").args(args);
    command
}

fn claude(ended: &Ended) -> Value {
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    let agents = document["agents"].as_array().unwrap();
    agents.iter().find(|agent| agent["agent"] == "claude").unwrap().clone()
}

#[test]
fn an_agent_that_can_run_is_told_with_its_version_and_what_it_can_do() {
    let told = ended(doctor("echo '2.1.197 (Claude Code)'", &["--json"]));
    assert_eq!(told.code, Some(0), "{}", told.err);
    let claude = claude(&told);
    assert_eq!(claude["canRun"], true);
    assert_eq!(claude["version"], "2.1.197");
    assert_eq!(claude["versionStatus"], "tested");
    assert_eq!(claude["features"]["--schema"]["support"], "yes");
}

#[test]
fn names_of_credentials_are_told_but_never_their_values() {
    let mut command = doctor("echo 9.9.9", &[]);
    command.env("ANTHROPIC_API_KEY", "sk-the-secret").env("ANTHROPIC_AUTH_TOKEN", "");
    let told = ended(command);
    assert!(told.out.contains("ANTHROPIC_API_KEY"), "{}", told.out);
    assert!(!told.out.contains("ANTHROPIC_AUTH_TOKEN"), "an empty variable is none");
    assert!(!told.out.contains("sk-the-secret"));
    assert!(told.out.contains("newer than 2.1.197"), "{}", told.out);
}

#[test]
fn an_agent_that_cannot_run_is_told_with_what_to_do_and_code_1() {
    let mut command = doctor("", &[]);
    command.env("BACKEND_CLI_PATH", "no-such-cli");
    let told = ended(command);
    assert_eq!(told.code, Some(1));
    assert!(told.out.contains("claude: cannot run"), "{}", told.out);
    assert!(told.out.contains("npm install -g @anthropic-ai/claude-code"), "{}", told.out);
}

#[test]
fn a_program_that_is_no_agent_is_told() {
    for (script, told) in [("echo usage: something", "no version"), ("exit 3", "says nothing")] {
        let ended = ended(doctor(script, &[]));
        assert_eq!(ended.code, Some(1));
        assert!(ended.out.contains(told), "{}", ended.out);
    }
}
