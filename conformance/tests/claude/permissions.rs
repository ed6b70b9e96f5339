//! Permission modes and rules of Claude Code. The table of modes is in `all/modes.rs`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use anyhow::Result;
use serde_json::{Value, json};
use teamster::RunRequest;
use teamster::event::ErrorCode;
use teamster::request::PermissionMode;
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::Reply;

use crate::{bash_then_text, full, tool_then_text};

fn mode(mut request: RunRequest, mode: PermissionMode) -> RunRequest {
    request.permissions.mode = mode;
    request
}

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "written"})
}

/// The only call was refused, and the run continued.
fn assert_refused(recording: &Recording) -> Result<()> {
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    assert!(!recording.result.is_error);
    Ok(())
}

fn assert_allowed(recording: &Recording) -> Result<()> {
    let (_, result) = recording.only_tool()?;
    assert_ne!(result.is_error, Some(true), "{}", result.output.as_str());
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn ask_mode_denies_changes_and_reports_the_denials() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("touch made")).await?;
    let recording = env.run(env.request("Make it.")).await?;
    assert_refused(&recording)?;
    let [denial] = &recording.result.permission_denials[..] else { panic!("one denial") };
    assert_eq!(denial.tool_name, "Bash");
    assert_eq!(denial.tool_id.as_ref(), Some(&recording.only_tool()?.0.tool_id));
    assert_eq!(denial.input.as_ref().unwrap().to_value()?["command"], "touch made");
    assert!(!env.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn ask_denies_a_write() -> Result<()> {
    let env = TestEnv::claude(tool_then_text("Write", write("made"))).await?;
    let recording = env.run(env.request("Make it.")).await?;
    assert_refused(&recording)?;
    assert_eq!(recording.result.permission_denials.len(), 1);
    assert!(!env.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn read_only_allows_a_read() -> Result<()> {
    let env = TestEnv::claude(tool_then_text("Read", json!({"file_path": "there"}))).await?;
    fs::write(env.project().join("there"), "content")?;
    let recording = env.run(mode(env.request("Read it."), PermissionMode::ReadOnly)).await?;
    assert_allowed(&recording)?;
    assert!(recording.only_tool()?.1.output.contains("content"));
    Ok(())
}

#[tokio::test]
async fn read_only_refuses_a_write_even_where_the_user_allows_it() -> Result<()> {
    let change = [tool_then_text("Write", write("made")), bash_then_text("touch made")];
    for scenario in change {
        let env = TestEnv::claude(scenario).await?;
        fs::create_dir(env.home().join(".claude"))?;
        let settings = json!({"permissions": {"allow": ["Write", "Edit", "Bash"]}});
        fs::write(env.home().join(".claude/settings.json"), settings.to_string())?;
        let recording = env.run(mode(env.request("Make it."), PermissionMode::ReadOnly)).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists());
    }
    Ok(())
}

#[tokio::test]
async fn read_only_refuses_a_command_that_changes_something() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("touch made")).await?;
    let recording = env.run(mode(env.request("Make it."), PermissionMode::ReadOnly)).await?;
    assert_refused(&recording)?;
    assert!(!env.project().join("made").exists());
    Ok(())
}

/// 2.1.197 allows these tools without permission, although they change the project.
#[tokio::test]
async fn only_full_allows_a_worktree_or_a_scheduled_prompt() -> Result<()> {
    use PermissionMode::{Ask, Edit, ReadOnly};
    let worktree = json!({"name": "made"});
    let schedule = json!({"cron": "* * * * *", "prompt": "Again.", "recurring": true, "durable": true});
    for (permission, tool, input) in [
        (ReadOnly, "EnterWorktree", worktree.clone()),
        (Ask, "EnterWorktree", worktree.clone()),
        (Edit, "EnterWorktree", worktree),
        (ReadOnly, "CronCreate", schedule),
    ] {
        let env = TestEnv::claude(tool_then_text(tool, input)).await?;
        let made = Command::new("git").args(["init", "--quiet"]).arg(env.project()).status()?;
        assert!(made.success());
        let recording = env.run(mode(env.request("Go."), permission)).await?;
        assert_refused(&recording)?;
        assert!(!recording.requests[0].tools().contains(&tool));
        assert!(!env.project().join(".claude").exists());
    }
    Ok(())
}

#[tokio::test]
async fn edit_allows_a_write() -> Result<()> {
    let env = TestEnv::claude(tool_then_text("Write", write("made"))).await?;
    let recording = env.run(mode(env.request("Make it."), PermissionMode::Edit)).await?;
    assert_allowed(&recording)?;
    assert_eq!(fs::read_to_string(env.project().join("made"))?, "written");
    Ok(())
}

#[tokio::test]
async fn edit_refuses_a_command_that_changes_something() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("chmod 700 there && git init made")).await?;
    fs::write(env.project().join("there"), "content")?;
    let recording = env.run(mode(env.request("Make it."), PermissionMode::Edit)).await?;
    assert_refused(&recording)?;
    assert!(!env.project().join("made").exists());
    Ok(())
}

/// In its own mode `acceptEdits`, 2.1.197 runs all of these commands.
#[tokio::test]
async fn edit_runs_no_command_that_changes_a_file() -> Result<()> {
    for command in ["rm -f there", "touch made", "mkdir made"] {
        let env = TestEnv::claude(bash_then_text(command)).await?;
        fs::write(env.project().join("there"), "content")?;
        let recording = env.run(mode(env.request("Go."), PermissionMode::Edit)).await?;
        assert_refused(&recording)?;
        assert!(env.project().join("there").exists() && !env.project().join("made").exists(), "{command}");
    }
    Ok(())
}

#[tokio::test]
async fn edit_refuses_a_write_outside_of_the_project() -> Result<()> {
    let outside = tempfile::tempdir()?;
    let target = outside.path().join("made");
    let env = TestEnv::claude(tool_then_text("Write", write(&target.to_string_lossy()))).await?;
    let recording = env.run(mode(env.request("Make it."), PermissionMode::Edit)).await?;
    assert_refused(&recording)?;
    assert!(!target.exists());
    Ok(())
}

#[tokio::test]
async fn full_allows_a_command() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("touch made")).await?;
    let recording = env.run(full(env.request("Make it."))).await?;
    assert_allowed(&recording)?;
    assert!(env.project().join("made").exists());
    Ok(())
}

#[tokio::test]
async fn full_for_root_outside_of_a_sandbox_is_config() -> Result<()> {
    let env = TestEnv::claude(Reply::new().text("Hello.")).await?;
    let recording = env.run(mode(env.request("Hi."), PermissionMode::Full)).await?;
    let root = fs::metadata("/proc/self")?.uid() == 0;
    if root {
        assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
        assert!(recording.failure()?.message.contains("IS_SANDBOX=1"), "the message states the remedy");
        assert!(recording.requests.is_empty());
    } else {
        assert_eq!(recording.result.text, "Hello.");
    }
    Ok(())
}

#[tokio::test]
async fn an_allowed_tool_needs_no_answer() -> Result<()> {
    for rules in [&["Bash(touch:*)", "Bash(mkdir:*)"][..], &["Bash(touch made,too:*)", "Bash(mkdir:*)"], &["Bash"]] {
        let env = TestEnv::claude(bash_then_text("mkdir folder && touch made,too")).await?;
        let mut request = env.request("Make it.");
        request.permissions.allow = rules.iter().map(|&rule| rule.to_owned()).collect();
        let recording = env.run(request).await?;
        assert_allowed(&recording)?;
        assert!(env.project().join("made,too").exists(), "{rules:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_tool_is_refused_even_in_full() -> Result<()> {
    for rules in [&["Bash(mkdir:*)", "Bash(touch:*)"][..], &["Bash(touch made now:*)"], &["Read", "Bash"]] {
        let env = TestEnv::claude(bash_then_text("touch made now")).await?;
        let mut request = full(env.request("Make it."));
        request.permissions.deny = rules.iter().map(|&rule| rule.to_owned()).collect();
        let recording = env.run(request).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists(), "{rules:?}");
    }
    Ok(())
}
