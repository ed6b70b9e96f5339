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

    let home = Home::new("", "[[serve.rules]]\nchannel = 'ci'\nagent = 'codex'\n");
    let mut command = home.command(&["serve", "--check"]);
    command.env("PATH", home.path());
    let refused = ended(command);
    assert_eq!(refused.code, Some(1), "{}", refused.err);
    assert!(refused.err.contains("the agent codex of a rule cannot run"), "{}", refused.err);
}
