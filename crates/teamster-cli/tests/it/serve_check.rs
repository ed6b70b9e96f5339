//! `teamster serve --check`, and the start of a gateway whose agent cannot be used.

use crate::command::ended;
use crate::serve::Home;

#[test]
fn check_starts_nothing_and_its_exit_code_is_0_only_if_a_start_would_succeed() {
    let home = Home::new("", "");
    let valid = home.ended(&["serve", "--check"]);
    assert_eq!(valid.code, Some(0), "{}", valid.err);
    assert!(!home.data().exists());
    let mut command = home.command(&["serve", "--check"]);
    command.env("AGENT_BACKEND", "claud");
    let unknown = ended(command);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("did you mean \"claude\"?; valid are: acp, claude, codex"), "{}", unknown.err);
    let mut command = home.command(&["serve"]);
    command.env("BACKEND_CLI_PATH", "/no/such/cli");
    let missing = ended(command);
    assert_eq!((missing.code, missing.err.lines().count()), (Some(1), 1), "{}", missing.err);
    assert!(missing.err.contains("claude") && missing.err.contains("/no/such/cli"), "{}", missing.err);
}

#[test]
fn an_agent_that_uses_keys_of_any_vendor_starts_only_if_its_keys_are_known() {
    let home = Home::new("", "");
    let check = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["serve", "--check"]);
        command.env("AGENT_BACKEND", "opencode").env("BACKEND_CLI_PATH", home.path().join("agent.sh"));
        command.envs(variables.iter().copied());
        ended(command)
    };
    let refused = check(&[]);
    assert_eq!((refused.code, refused.err.lines().count()), (Some(1), 1), "{}", refused.err);
    assert!(refused.err.contains("PROVIDER/MODEL") && refused.err.contains("serve.keep_keys"), "{}", refused.err);
    for variable in [("BACKEND_MODEL", "acme/large"), ("TEAMSTER_KEEP_KEY", "ACME_API_KEY")] {
        let valid = check(&[variable]);
        assert_eq!(valid.code, Some(0), "{variable:?}: {}", valid.err);
    }
}

#[test]
fn what_an_agent_does_without_is_reported_before_it_starts() {
    let home = Home::new("", "");
    let mut command = home.command(&["serve", "--check"]);
    command.env("AGENT_BACKEND", "gemini").env("BACKEND_CLI_PATH", home.path().join("agent.sh"));
    let checked = ended(command);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    assert!(checked.err.contains("max_turns is not used") && checked.err.contains("project_trust"), "{}", checked.err);
    assert!(!home.ended(&["serve", "--check"]).err.contains("is not used"), "Claude Code lacks nothing");
}
