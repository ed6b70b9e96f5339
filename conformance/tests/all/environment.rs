//! Which variables of the host's environment reach the commands of the model.

use anyhow::Result;
use teamster::request::{Inherit, PermissionMode};
use teamster_conformance::{Agent, Recording, agent_tests};
use teamster_testkit::provider::Scenario;

/// Variables of the host: API keys that are withheld, one that is kept, and a plain variable.
const VARIABLES: [(&str, &str); 5] = [
    ("OTHER_VENDOR_API_KEY", "withheld-vendor"),
    ("AWS_SECRET_ACCESS_KEY", "withheld-cloud"),
    ("NPM_TOKEN", "withheld-registry"),
    ("GITHUB_TOKEN", "kept-token"),
    ("PLAIN", "plain-value"),
];

agent_tests! {
    a_withheld_key_does_not_reach_the_agents_commands: all,
    an_agent_works_with_the_variables_that_it_needs_and_its_commands_get_no_others: all,
}

/// Returns the variables without which the agent does not find the test's provider.
fn needed(agent: &Agent) -> &'static [&'static str] {
    match agent.name {
        "claude" => &["ANTHROPIC_*", "CLAUDE_CODE_*", "DISABLE_AUTOUPDATER"],
        "codex" => &["TEST_API_KEY"],
        "gemini" => &["GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"],
        _ => &["OPENCODE_CONFIG_CONTENT", "OPENCODE_MODELS_PATH", "OPENCODE_DISABLE_*", "npm_config_*"],
    }
}

/// Runs a command that prints the variables.
async fn print_variables(agent: &Agent, inherit: Inherit) -> Result<Recording> {
    let names: Vec<String> = VARIABLES.iter().map(|(name, _)| format!("printenv {name}")).collect();
    let (tool, input) = agent.shell(&format!("{}; echo end", names.join("; ")));
    let scenario = Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text("Done."));
    let env = agent.test_env(scenario).await?.with_variables(VARIABLES);
    let mut request = agent.request(&env, "Go.");
    request.permissions.mode = PermissionMode::Full;
    request.inherit = inherit;
    let recording = env.run(request).await?;
    assert!(!recording.result.is_error, "{:?}", recording.failure());
    assert_eq!(recording.result.final_text, "Done.");
    Ok(recording)
}

async fn a_withheld_key_does_not_reach_the_agents_commands(agent: &Agent) -> Result<()> {
    // The test's own key does not belong to a vendor.
    let keep = ["GITHUB_TOKEN", "TEST_API_KEY"].map(str::to_owned).to_vec();
    let recording = print_variables(agent, Inherit::WithholdKeys { keep }).await?;
    let output = &recording.only_tool()?.1.output;
    assert!(output.contains("kept-token") && output.contains("plain-value"), "{output:?}");
    assert!(!output.contains("withheld-"), "{output:?}");
    Ok(())
}

async fn an_agent_works_with_the_variables_that_it_needs_and_its_commands_get_no_others(agent: &Agent) -> Result<()> {
    let names = needed(agent).iter().chain(&["PLAIN"]).map(|name| (*name).to_owned()).collect();
    let recording = print_variables(agent, Inherit::Only(names)).await?;
    let output = &recording.only_tool()?.1.output;
    assert!(output.contains("plain-value"), "{output:?}");
    assert!(!output.contains("withheld-") && !output.contains("kept-"), "{output:?}");
    Ok(())
}
