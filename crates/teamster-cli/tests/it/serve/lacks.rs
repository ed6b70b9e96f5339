//! What an agent lacks in a gateway.

use super::Home;
use crate::command::ended;

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
