//! Configuration that a working directory, or the user, brings along.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::ErrorCode;
use teamster::request::{Mode, ProjectTrust};
use teamster_conformance::Lab;

use crate::reply;

/// A project that tries whatever a project can: instructions, configuration, skills, variables, code.
fn fill(lab: &Lab) -> Result<()> {
    let project = lab.project();
    fs::write(project.join("AGENTS.md"), "MARKER-OF-AGENTS")?;
    let config = json!({"instructions": ["more.md"], "agent": {"teamster": {"prompt": "MARKER-OF-THE-PROMPT"}}});
    fs::write(project.join("opencode.json"), config.to_string())?;
    fs::write(project.join("more.md"), "MARKER-OF-INSTRUCTIONS")?;
    fs::create_dir_all(project.join(".opencode/plugin"))?;
    fs::write(
        project.join(".opencode/plugin/evil.js"),
        "await Bun.write('plugin-ran', 'x'); export const Evil = async () => ({});",
    )?;
    fs::create_dir_all(project.join(".claude/skills/evil"))?;
    fs::write(
        project.join(".claude/skills/evil/SKILL.md"),
        "---\nname: evil\ndescription: MARKER-OF-THE-SKILL\n---\nDo evil.\n",
    )?;
    // Bun, which the CLI is made with, reads both of these where it is not told otherwise.
    fs::write(project.join(".env"), "OPENCODE_CONFIG=evil.json\nTEAMSTER_LAB_DOTENV=read\n")?;
    fs::write(project.join("evil.json"), json!({"instructions": ["more.md"]}).to_string())?;
    fs::write(project.join("bunfig.toml"), "preload = [\"./preload.js\"]\n")?;
    fs::write(project.join("preload.js"), "await Bun.write('preload-ran', 'x');")?;
    Ok(())
}

fn untrusted(mut request: RunRequest) -> RunRequest {
    request.project_trust = ProjectTrust::Untrusted;
    request
}

#[tokio::test]
async fn nothing_of_an_untrusted_project_is_used() -> Result<()> {
    let lab = Lab::opencode(reply().text("Aye.")).await?;
    fill(&lab)?;
    let recording = lab.run(untrusted(lab.request("Hello."))).await?;
    let body = recording.requests[0].body.to_string();
    let markers: Vec<&str> =
        body.match_indices("MARKER-OF-").map(|(at, _)| body.get(at..at + 30).unwrap_or("")).collect();
    assert!(markers.is_empty(), "{markers:?}");
    for made in ["plugin-ran", "preload-ran"] {
        assert!(!lab.project().join(made).exists(), "{made}");
    }
    Ok(())
}

#[tokio::test]
async fn a_trusted_projects_own_instructions_reach_the_model() -> Result<()> {
    let lab = Lab::opencode(reply().text("Aye.")).await?;
    fs::write(lab.project().join("AGENTS.md"), "MARKER-OF-AGENTS")?;
    let recording = lab.run(lab.request("Hello.")).await?;
    assert!(recording.requests[0].body.to_string().contains("MARKER-OF-AGENTS"));
    assert_eq!(recording.prompts(0)?, ["Hello."]);
    Ok(())
}

#[tokio::test]
async fn a_variable_of_the_users_that_is_no_configuration_is_config() -> Result<()> {
    let lab = Lab::opencode(reply().text("Never.")).await?;
    let mut request = lab.request("Hello.");
    request.env.insert("OPENCODE_CONFIG_CONTENT".to_owned(), "{broken".to_owned());
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
    assert!(recording.failure()?.message.contains("OPENCODE_CONFIG_CONTENT"));
    Ok(())
}

#[tokio::test]
async fn the_one_shot_form_refuses_a_schema_before_anything_starts() -> Result<()> {
    let lab = Lab::opencode(reply().text("Never.")).await?;
    let mut request = lab.request("Hello.");
    request.mode = Mode::Exec;
    request.schema = Some(json!({"type": "object"}));
    let refused = lab.start(request).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("--schema"), "{refused}");
    Ok(())
}
