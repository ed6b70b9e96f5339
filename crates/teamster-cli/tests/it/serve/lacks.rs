//! What an agent lacks in a gateway, and what a gateway lacks to start.

use super::Home;
use crate::command::ended;

#[test]
fn what_a_session_omits_is_reported_before_the_agent_starts() {
    let home = Home::new("", "");
    let mut command = home.command(&["serve", "--check"]);
    command.env("AGENT_BACKEND", "gemini").env("BACKEND_CLI_PATH", home.path().join("agent.sh"));
    let checked = ended(command);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    assert!(checked.err.contains("max_turns is not used") && checked.err.contains("project_trust"), "{}", checked.err);
    assert!(!home.ended(&["serve", "--check"]).err.contains("is not used"), "Claude Code lacks nothing");
}

#[test]
fn check_asks_for_each_channel_and_for_the_agents_of_rules() {
    let webhook = "[[serve.webhooks]]\nname = 'ci'\nurl = 'https://localhost/'\nsecrets = ['0123456789abcdef']\n";
    let home = Home::new("", webhook);
    let refused = home.ended(&["serve", "--check"]);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("the webhook ci cannot be used"), "{}", refused.err);
    let permitted = Home::new("", &format!("{webhook}allow_loopback = true\n")).ended(&["serve", "--check"]);
    assert_eq!(permitted.code, Some(0), "{}", permitted.err);

    let home = Home::new("", "[[serve.rules]]\nchannel = 'http'\nagent = 'codex'\n");
    let mut command = home.command(&["serve", "--check"]);
    command.env("PATH", home.path());
    let refused = ended(command);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("the agent codex of a rule cannot run"), "{}", refused.err);
}

#[test]
fn check_finds_a_gateway_that_runs_and_a_port_in_use() {
    let home = Home::new("", "");
    let gateway = home.serve();
    let running = home.ended(&["serve", "--check"]);
    assert_eq!(running.code, Some(1), "{}", running.err);
    assert!(running.err.contains("the gateway with process id"), "{}", running.err);
    let address = gateway.url.strip_prefix("http://").unwrap().to_owned();
    let taken = home.ended(&["serve", "--check", "--data-dir", "../other", "--listen", &address]);
    assert_eq!(taken.code, Some(1), "{}", taken.err);
    assert_eq!(taken.err.matches("Address already in use").count(), 1, "{}", taken.err);
    gateway.stop();
}

#[test]
fn an_agent_without_a_login_is_a_warning_that_names_what_to_do() {
    let home = Home::new("", "");
    let checked = home.ended(&["serve", "--check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    assert!(checked.err.contains("warning: no login of the agent claude was found"), "{}", checked.err);
    assert!(checked.err.contains("claude auth login"), "{}", checked.err);
    let mut command = home.command(&["serve", "--check"]);
    let with_key = ended({
        command.env("ANTHROPIC_API_KEY", "a-key");
        command
    });
    assert!(!with_key.err.contains("no login"), "{}", with_key.err);
}

#[test]
fn an_agent_that_cannot_run_is_reported_with_its_program_its_reason_and_the_key() {
    let home = Home::new("", "");
    std::fs::write(home.path().join("agent.sh"), "#!/bin/sh\necho 'no such library' >&2\nexit 3\n").unwrap();
    let refused = home.ended(&["serve", "--check"]);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(1), 1), "{}", refused.err);
    for part in ["the agent claude cannot run", "agent.sh", "no such library", "serve.cli_path"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
}

#[test]
fn the_permission_of_the_environment_applies() {
    let home = Home::new("", "permission = 'ask'\n");
    let mut command = home.command(&["config", "show"]);
    command.env("TEAMSTER_PERMISSION", "read-only");
    let shown = ended(command);
    let line = shown.out.lines().find(|line| line.starts_with("serve.permission ")).unwrap_or_default();
    assert!(line.contains("read-only") && line.contains("TEAMSTER_PERMISSION"), "{}", shown.out);
}
