//! Permission modes and rules of Codex. The table of modes is in `all/modes.rs`.

use std::fs;

use anyhow::{Context, Result};
use teamster::request::PermissionMode;
use teamster_conformance::{Recording, TestEnv};

use crate::{add_file, full, mode, shell_then_text, tool_then_text};

/// The only call failed in the sandbox, and the run continued. The model receives the failure. The agent often does not
/// report a command that the sandbox stops.
fn assert_refused(recording: &Recording) -> Result<()> {
    if !recording.tools().is_empty() {
        let (_, result) = recording.only_tool()?;
        assert_eq!(result.is_error, Some(true), "{}", result.output.as_str());
    }
    let output = &recording.requests[1].tool_results()[0].output;
    let words = ["Read-only file system", "Operation not permitted", "Permission denied"];
    assert!(words.iter().any(|words| output.contains(words)), "{output}");
    assert_eq!(recording.result.final_text, "Done.");
    assert!(!recording.result.is_error);
    Ok(())
}

fn assert_allowed(recording: &Recording) -> Result<()> {
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(false), "{}", result.output.as_str());
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

/// An existing directory that the sandbox does not treat as temporary, as it does the directories of the test environment.
const ELSEWHERE: &str = "/var/tmp";

const WITHOUT_EDITS: [PermissionMode; 2] = [PermissionMode::ReadOnly, PermissionMode::Ask];

#[tokio::test]
async fn read_only_and_ask_allow_a_command_that_reads() -> Result<()> {
    for permission in WITHOUT_EDITS {
        let env = TestEnv::codex(shell_then_text("cat there")).await?;
        fs::write(env.project().join("there"), "content")?;
        let recording = env.run(mode(env.request("Read it."), permission)).await?;
        assert_allowed(&recording)?;
        assert_eq!(recording.only_tool()?.1.output, "content");
    }
    Ok(())
}

#[tokio::test]
async fn read_only_and_ask_refuse_a_command_that_writes() -> Result<()> {
    for permission in WITHOUT_EDITS {
        let env = TestEnv::codex(shell_then_text("touch made")).await?;
        let recording = env.run(mode(env.request("Make it."), permission)).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists());
    }
    Ok(())
}

/// The agent runs a command outside of the sandbox if a rule of the user allows it.
#[tokio::test]
async fn read_only_and_ask_refuse_a_write_even_where_the_user_allows_it() -> Result<()> {
    for permission in WITHOUT_EDITS {
        let env = TestEnv::codex(shell_then_text("touch made")).await?;
        fs::create_dir(env.home().join(".codex/rules"))?;
        fs::write(
            env.home().join(".codex/rules/default.rules"),
            "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n",
        )?;
        let config = env.home().join(".codex/config.toml");
        let trusting = fs::read_to_string(&config)?;
        fs::write(&config, format!("sandbox_mode = \"danger-full-access\"\n{trusting}"))?;
        let recording = env.run(mode(env.request("Make it."), permission)).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists());
    }
    Ok(())
}

#[tokio::test]
async fn read_only_and_ask_refuse_a_patch_and_report_it() -> Result<()> {
    for permission in WITHOUT_EDITS {
        let env = TestEnv::codex(tool_then_text("apply_patch", add_file("made", "x"))).await?;
        let recording = env.run(mode(env.request("Make it."), permission)).await?;
        assert!(recording.tools().is_empty(), "the agent does not report a call that it refuses");
        let denial = recording.result.permission_denials.first().context("no denial")?;
        assert_eq!(denial.tool_name, "file_change");
        assert_eq!(recording.result.final_text, "Done.");
        assert!(!env.project().join("made").exists());
    }
    Ok(())
}

#[tokio::test]
async fn ask_is_the_default() -> Result<()> {
    let env = TestEnv::codex(shell_then_text("touch made")).await?;
    assert_refused(&env.run(env.request("Make it.")).await?)?;
    assert!(!env.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn edit_allows_a_patch() -> Result<()> {
    let env = TestEnv::codex(tool_then_text("apply_patch", add_file("made", "written"))).await?;
    let recording = env.run(mode(env.request("Make it."), PermissionMode::Edit)).await?;
    assert_allowed(&recording)?;
    assert_eq!(fs::read_to_string(env.project().join("made"))?, "written\n");
    Ok(())
}

#[tokio::test]
async fn edit_refuses_a_write_outside_of_the_project() -> Result<()> {
    // Temporary directories are writable, so also all directories beside the project.
    let outside = tempfile::tempdir_in(ELSEWHERE)?;
    let target = outside.path().join("made");
    let env = TestEnv::codex(shell_then_text(&format!("touch {}", target.display()))).await?;
    assert_refused(&env.run(mode(env.request("Make it."), PermissionMode::Edit)).await?)?;
    assert!(!target.exists());
    Ok(())
}

#[tokio::test]
async fn edit_allows_a_write_in_a_directory_that_was_added() -> Result<()> {
    let more = tempfile::tempdir_in(ELSEWHERE)?;
    let target = more.path().join("made");
    let env = TestEnv::codex(shell_then_text(&format!("touch {}", target.display()))).await?;
    let mut request = mode(env.request("Make it."), PermissionMode::Edit);
    request.add_dirs = vec![more.path().to_owned()];
    assert_allowed(&env.run(request).await?)?;
    assert!(target.exists());
    Ok(())
}

#[tokio::test]
async fn edit_has_no_network_and_full_has() -> Result<()> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr()?.port());
    let env = TestEnv::codex(shell_then_text(&command)).await?;
    assert_refused(&env.run(mode(env.request("Call."), PermissionMode::Edit)).await?)?;
    assert_allowed(&env.run(full(env.request("Call."))).await?)
}

#[tokio::test]
async fn full_allows_a_command_to_write_anywhere() -> Result<()> {
    let env = TestEnv::codex(shell_then_text("touch ../home/made")).await?;
    assert_allowed(&env.run(full(env.request("Make it."))).await?)?;
    assert!(env.home().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn rules_that_the_agent_cannot_enforce_are_refused() -> Result<()> {
    let env = TestEnv::codex(shell_then_text("touch made")).await?;
    let mut denying = env.request("Make it.");
    denying.permissions.deny.push("Bash".to_owned());
    let mut allowing = env.request("Make it.");
    allowing.permissions.allow.push("Bash(touch:*)".to_owned());
    let mut sparing = env.request("Make it.");
    sparing.max_budget_usd = Some(1.0);
    for request in [denying, allowing, sparing] {
        assert!(env.start(request).is_err());
    }
    assert!(env.provider().requests().is_empty());
    Ok(())
}
