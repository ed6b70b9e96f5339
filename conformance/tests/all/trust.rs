//! A directory that a stranger made, and what the user has configured.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::request::{AgentInterface, PermissionMode, ProjectTrust};
use teamster_conformance::{AGENTS, Agent, TestEnv};
use teamster_testkit::provider::{Reply, Scenario};

/// Hooks, servers and programs that run when the agent starts, is asked, calls a tool or ends. For OpenCode there is none:
/// where it has any, it does not start.
fn bait(lab: &TestEnv) -> Result<()> {
    let project = lab.project();
    let touch = |name: &str| format!("touch {}", project.join(name).display());
    let hook = |name: &str| json!([{"hooks": [{"type": "command", "command": touch(name)}]}]);
    let server = |name: &str| json!({"theirs": {"command": "sh", "args": ["-c", touch(name)]}});
    for folder in [".claude", ".codex", ".gemini", ".git"] {
        fs::create_dir(project.join(folder))?;
    }
    fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    let hooks = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
    let hooks = hooks.map(|event| (event.to_owned(), hook(&format!("lured-claude-{event}"))));
    let settings = json!({
        "hooks": serde_json::Map::from_iter(hooks),
        "enableAllProjectMcpServers": true,
        "apiKeyHelper": touch("lured-claude-key"),
        "statusLine": {"type": "command", "command": touch("lured-claude-line")},
    });
    fs::write(project.join(".claude/settings.json"), settings.to_string())?;
    fs::write(project.join(".mcp.json"), json!({"mcpServers": server("lured-claude-server")}).to_string())?;
    let settings = json!({
        "mcpServers": server("lured-gemini-server"),
        "tools": {"discoveryCommand": format!("sh -c \"{}; echo []\"", touch("lured-gemini-discovery"))},
        "hooks": {"SessionStart": hook("lured-gemini-start"), "BeforeTool": hook("lured-gemini-tool")},
    });
    fs::write(project.join(".gemini/settings.json"), settings.to_string())?;
    let config = format!(
        "notify = [\"sh\", \"-c\", {}]\n[mcp_servers.theirs]\ncommand = \"sh\"\nargs = [\"-c\", {}]\n",
        json!(touch("lured-codex-notify")),
        json!(touch("lured-codex-server")),
    );
    fs::write(project.join(".codex/config.toml"), config)?;
    let hooks = json!({"hooks": {"SessionStart": hook("lured-codex-start"), "PreToolUse": hook("lured-codex-tool")}});
    Ok(fs::write(project.join(".codex/hooks.json"), hooks.to_string())?)
}

#[tokio::test]
async fn no_program_configured_by_an_untrusted_project_runs_at_once_or_later() -> Result<()> {
    for agent in AGENTS.iter().filter(|agent| agent.name != "opencode") {
        for mode in [AgentInterface::Auto, AgentInterface::Exec] {
            // What is loaded beside the first call of the model has time until the second one.
            let (tool, input) = agent.shell("sleep 1");
            let scenario = Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text("Done."));
            let lab = agent.lab(scenario).await?;
            bait(&lab)?;
            let mut request = agent.request(&lab, "Go.");
            request.interface = mode;
            request.permissions.mode = PermissionMode::Full;
            request.project_trust = ProjectTrust::Untrusted;
            let recording = lab.run(request).await?;
            assert_eq!(recording.result.final_text, "Done.", "{} {mode:?}", agent.name);
            assert_ne!(recording.only_tool()?.1.is_error, Some(true), "{} {mode:?}", agent.name);
            for entry in fs::read_dir(lab.project())? {
                let name = entry?.file_name();
                assert!(!name.to_string_lossy().starts_with("lured"), "{} {mode:?}: {name:?}", agent.name);
            }
        }
    }
    Ok(())
}

/// Gives its user a configuration, where the lab has not, and tells where it is.
fn configure(agent: &Agent, lab: &TestEnv) -> Result<PathBuf> {
    let (file, text) = match agent.name {
        "claude" => (".claude/settings.json", "{ \"includeCoAuthoredBy\": false }\n"),
        "codex" => return Ok(lab.home().join(".codex/config.toml")),
        "gemini" => (".gemini/settings.json", "{\n  // mine\n  \"ui\": {\"theme\": \"GitHub\"}\n}\n"),
        _ => (".config/opencode/opencode.json", "// mine\n{\"username\": \"me\"}\n"),
    };
    let path = lab.home().join(file);
    fs::create_dir_all(path.parent().context("a file of the home")?)?;
    fs::write(&path, text)?;
    Ok(path)
}

#[tokio::test]
async fn no_run_changes_the_users_configuration_or_trusts_a_directory_permanently() -> Result<()> {
    for agent in AGENTS {
        let reply = agent.reply().text("Aye.");
        let lab = agent.lab(Reply::from_fn(move |_| reply.clone())).await?;
        let path = configure(agent, &lab)?;
        let before = fs::read_to_string(&path)?;
        for mode in [AgentInterface::Auto, AgentInterface::Exec] {
            let mut request = agent.request(&lab, "Go.");
            request.interface = mode;
            request.permissions.mode = PermissionMode::Full;
            let recording = lab.run(request).await?;
            assert_eq!(recording.result.text, "Aye.", "{} {mode:?}", agent.name);
            assert_eq!(fs::read_to_string(&path)?, before, "{} {mode:?}", agent.name);
        }
    }
    Ok(())
}
