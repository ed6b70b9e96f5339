//! Permission modes and rules of OpenCode. The table of modes is in `all/modes.rs`.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::request::PermissionMode;
use teamster_conformance::{Recording, TestEnv};
use teamster_testkit::provider::{Scenario, Script};

use crate::{bash, bash_then_text, full, mode, reply, tool_then_text};

/// The only call was refused and reported as a denial, and the run continued.
fn assert_refused(recording: &Recording) -> Result<()> {
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    assert!(!recording.result.is_error);
    let denials: Vec<_> = recording.result.permission_denials.iter().map(|denial| denial.tool_id.clone()).collect();
    assert_eq!(denials, [Some(recording.only_tool()?.0.tool_id.clone())]);
    Ok(())
}

fn assert_allowed(recording: &Recording) -> Result<()> {
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(false), "{}", result.output.as_str());
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn only_full_runs_a_command_whatever_the_user_allows() -> Result<()> {
    use PermissionMode::{Ask, Edit, ReadOnly};
    for permission in [ReadOnly, Ask, Edit] {
        let env = TestEnv::opencode(bash_then_text("touch made")).await?;
        let user = json!({"permission": {"*": "allow", "bash": "allow"}, "agent": {"build": {"permission": {"bash": "allow"}}}});
        fs::create_dir_all(env.home().join(".config/opencode"))?;
        fs::write(env.home().join(".config/opencode/opencode.json"), user.to_string())?;
        let mut request = mode(env.request("Make it."), permission);
        request.env.insert("OPENCODE_PERMISSION".to_owned(), json!({"bash": "allow"}).to_string());
        let recording = env.run(request).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists());
    }
    Ok(())
}

#[tokio::test]
async fn every_mode_allows_a_read() -> Result<()> {
    use PermissionMode::{Ask, ReadOnly};
    for permission in [ReadOnly, Ask] {
        let env = TestEnv::opencode(tool_then_text("read", json!({"filePath": "there"}))).await?;
        fs::write(env.project().join("there"), "content")?;
        let recording = env.run(mode(env.request("Read it."), permission)).await?;
        assert_allowed(&recording)?;
        assert!(recording.only_tool()?.1.output.contains("content"));
    }
    Ok(())
}

#[tokio::test]
async fn a_write_is_refused_unless_edits_are_allowed() -> Result<()> {
    use PermissionMode::{Ask, Edit, Full, ReadOnly};
    for (permission, allowed) in [(ReadOnly, false), (Ask, false), (Edit, true), (Full, true)] {
        let env = TestEnv::opencode(tool_then_text("write", json!({"filePath": "made", "content": "written"}))).await?;
        let mut request = mode(env.request("Make it."), permission);
        if permission == ReadOnly {
            request.permissions.allow = vec!["edit".to_owned()];
        }
        let recording = env.run(request).await?;
        if allowed {
            assert_allowed(&recording)?;
        } else {
            assert_refused(&recording)?;
        }
        assert_eq!(env.project().join("made").exists(), allowed, "{permission:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_secret_file_of_the_project_is_not_read_without_permission() -> Result<()> {
    let env = TestEnv::opencode(tool_then_text("read", json!({"filePath": ".env"}))).await?;
    fs::write(env.project().join(".env"), "MADE_UP_SECRET=1\n")?;
    let recording = env.run(env.request("Read it.")).await?;
    assert_refused(&recording)?;
    assert!(!recording.only_tool()?.1.output.contains("MADE_UP_SECRET"));
    Ok(())
}

#[tokio::test]
async fn edit_refuses_a_write_outside_of_the_project_and_of_further_directories() -> Result<()> {
    for further in [false, true] {
        let outside = tempfile::tempdir()?;
        let target = outside.path().join("made");
        let env = TestEnv::opencode(tool_then_text("write", json!({"filePath": target, "content": "written"}))).await?;
        let mut request = mode(env.request("Make it."), PermissionMode::Edit);
        if further {
            request.add_dirs = vec![outside.path().to_owned()];
        }
        let recording = env.run(request).await?;
        if further {
            assert_allowed(&recording)?;
        } else {
            assert_refused(&recording)?;
        }
        assert_eq!(target.exists(), further);
    }
    Ok(())
}

#[tokio::test]
async fn an_allowed_tool_needs_no_answer() -> Result<()> {
    for (rule, allowed) in [("bash", true), ("bash(touch *)", true), ("bash(mkdir *)", false)] {
        let env = TestEnv::opencode(bash_then_text("touch made")).await?;
        let mut request = env.request("Make it.");
        request.permissions.allow = vec![rule.to_owned()];
        let recording = env.run(request).await?;
        if allowed {
            assert_allowed(&recording)?;
        } else {
            assert_refused(&recording)?;
        }
        assert_eq!(env.project().join("made").exists(), allowed, "{rule}");
    }
    Ok(())
}

#[tokio::test]
async fn a_denied_tool_is_refused_even_in_full() -> Result<()> {
    for rules in [&["bash"][..], &["bash(touch *)"], &["b*"]] {
        let env = TestEnv::opencode(bash_then_text("touch made")).await?;
        let mut request = full(env.request("Make it."));
        request.permissions.allow = vec!["bash".to_owned(), "bash(touch made)".to_owned()];
        request.permissions.deny = rules.iter().map(|&rule| rule.to_owned()).collect();
        let recording = env.run(request).await?;
        assert_refused(&recording)?;
        assert!(!env.project().join("made").exists(), "{rules:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_subagent_has_only_the_permissions_of_the_run() -> Result<()> {
    let task = json!({"description": "Work", "prompt": "Do it. SCN:worker", "subagent_type": "general"});
    let scenario = Scenario::new()
        .reply(reply().tool("task", task))
        .reply(reply().text("Done."))
        .branch("worker", Script::new().reply(reply().tool("bash", bash("touch made"))).reply(reply().text("Tried.")));
    let env = TestEnv::opencode(scenario).await?;
    let mut request = env.request("Delegate.");
    request.permissions.allow = vec!["task".to_owned()];
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.");
    assert!(recording.requests.iter().any(|request| request.branch == "worker"), "no subagent worked");
    assert!(!env.project().join("made").exists());
    Ok(())
}
