//! What of the host's environment reaches the commands of an agent's model.

use anyhow::Result;
use teamster::request::{Inherit, PermissionMode};
use teamster_conformance::{AGENTS, Agent, Recording};
use teamster_testkit::provider::Scenario;

/// Variables of the host's: keys of nobody's here, one that is kept, and something else.
const VARIABLES: [(&str, &str); 5] = [
    ("OTHER_VENDOR_API_KEY", "withheld-vendor"),
    ("AWS_SECRET_ACCESS_KEY", "withheld-cloud"),
    ("NPM_TOKEN", "withheld-registry"),
    ("GITHUB_TOKEN", "kept-token"),
    ("PLAIN", "plain-value"),
];

/// The variables of an agent's lab, without which it would find no model.
fn needed(agent: &Agent) -> &'static [&'static str] {
    match agent.name {
        "claude" => &["ANTHROPIC_*", "CLAUDE_CODE_*", "DISABLE_AUTOUPDATER"],
        "codex" => &["LAB_API_KEY"],
        "gemini" => &["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
        _ => &["OPENCODE_CONFIG_CONTENT", "OPENCODE_MODELS_PATH", "OPENCODE_DISABLE_*", "npm_config_*"],
    }
}

/// Runs a command that prints these variables.
async fn printed(agent: &Agent, inherit: Inherit) -> Result<Recording> {
    let names: Vec<String> = VARIABLES.iter().map(|(name, _)| format!("printenv {name}")).collect();
    let (tool, input) = agent.shell(&format!("{}; echo end", names.join("; ")));
    let scenario = Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text("Done."));
    let lab = agent.lab(scenario).await?.with_variables(VARIABLES);
    let mut request = agent.request(&lab, "Go.");
    request.permissions.mode = PermissionMode::Full;
    request.inherit = inherit;
    let recording = lab.run(request).await?;
    assert!(!recording.result.is_error, "{}: {:?}", agent.name, recording.failure());
    assert_eq!(recording.result.final_text, "Done.", "{}", agent.name);
    Ok(recording)
}

#[tokio::test]
async fn a_withheld_key_does_not_reach_the_agents_commands() -> Result<()> {
    for agent in AGENTS {
        // What the lab's own model needs is no vendor's.
        let keep = ["GITHUB_TOKEN", "LAB_API_KEY"].map(str::to_owned).to_vec();
        let recording = printed(agent, Inherit::WithholdKeys { keep }).await?;
        let output = &recording.only_tool()?.1.output;
        assert!(output.contains("kept-token") && output.contains("plain-value"), "{}: {output:?}", agent.name);
        assert!(!output.contains("withheld-"), "{}: {output:?}", agent.name);
    }
    Ok(())
}

#[tokio::test]
async fn an_agent_works_with_the_variables_that_it_needs_and_its_commands_get_no_others() -> Result<()> {
    for agent in AGENTS {
        let names = needed(agent).iter().chain(&["PLAIN"]).map(|name| (*name).to_owned()).collect();
        let recording = printed(agent, Inherit::Only(names)).await?;
        let output = &recording.only_tool()?.1.output;
        assert!(output.contains("plain-value"), "{}: {output:?}", agent.name);
        assert!(!output.contains("withheld-") && !output.contains("kept-"), "{}: {output:?}", agent.name);
    }
    Ok(())
}
