//! The context of the prompt: system prompts, directories, and options that the agent does not support.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::RunRequest;
use teamster::event::WarningCode;
use teamster::request::Attachment;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Reply;

use crate::{full, request, tool_then_text};

#[tokio::test]
async fn a_system_prompt_replaces_the_agents_own() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Fine.")).await?;
    let mut asked = request(&env, "Go.");
    asked.system_prompt = Some("You are a lighthouse.\n--help 灯台".to_owned());
    let run = env.run(asked).await?;
    assert!(run.requests[0].system.starts_with("You are a lighthouse.\n--help 灯台"));
    assert!(!run.requests[0].system.contains("CLI agent"));
    Ok(())
}

#[tokio::test]
async fn an_appended_system_prompt_follows_the_agents_own_and_the_users() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Fine.")).await?;
    fs::create_dir(env.home().join(".gemini"))?;
    fs::write(env.home().join(".gemini/GEMINI.md"), "Mine comes first.")?;
    let mut asked = request(&env, "Go.");
    asked.append_system_prompt = Some("And you are a lighthouse.".to_owned());
    let run = env.run(asked.clone()).await?;
    let system = &run.requests[0].system;
    let position = |text: &str| system.find(text);
    assert!(position("Gemini CLI") < position("Mine comes first."));
    assert!(position("Mine comes first.") < position("And you are a lighthouse."));
    assert_eq!(fs::read_to_string(env.home().join(".gemini/GEMINI.md"))?, "Mine comes first.");

    Ok(())
}

#[tokio::test]
async fn an_appended_system_prompt_with_a_path_imports_no_file() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Fine.")).await?;
    fs::create_dir(env.home().join(".gemini"))?;
    fs::write(env.home().join(".gemini/notes.md"), "A line of the file.")?;
    let mut asked = request(&env, "Go.");
    asked.append_system_prompt = Some("@notes.md and @./notes.md are for @ada.".to_owned());
    let run = env.run(asked).await?;
    let system = run.requests[0].system.replace('\u{2060}', "");
    assert!(system.contains("@notes.md and @./notes.md are for @ada."), "{system}");
    assert!(!system.contains("A line of the file.") && !system.contains("Import"), "{system}");
    Ok(())
}

#[tokio::test]
async fn a_directory_beside_the_project_can_be_used() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Fine.")).await?;
    let beside = env.create_directory("beside")?;
    fs::write(beside.join("a.txt"), "from beside")?;
    let env = env;
    let other = TestEnv::gemini(tool_then_text("read_file", json!({"file_path": beside.join("a.txt")}))).await?;
    let denied = other.run(full(&other, "Go.")).await?;
    assert_eq!(denied.only_tool()?.1.is_error, Some(true));
    let mut asked = full(&other, "Go.");
    asked.add_dirs.push(beside.clone());
    let allowed = other.run(asked).await?;
    assert_eq!(allowed.only_tool()?.1.is_error, Some(false));
    assert!(allowed.requests[1].tool_results()[0].output.contains("from beside"));
    drop(env);
    Ok(())
}

#[tokio::test]
async fn unsupported_options_are_refused_before_the_start() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("unused")).await?;
    let changes: [fn(&mut RunRequest); 5] = [
        |request| request.schema = Some(json!({"type": "object"})),
        |request| request.max_budget_usd = Some(1.0),
        |request| request.attachments.push(Attachment::Data { name: "a".to_owned(), data: b"text".to_vec() }),
        |request| request.permissions.deny.push("no such(rule".to_owned()),
        |request| request.prompt = "x".repeat((8 << 20) + 1),
    ];
    for change in changes {
        let mut asked = request(&env, "Go.");
        change(&mut asked);
        assert!(env.start(asked).is_err());
    }
    Ok(())
}

#[tokio::test]
async fn an_effort_is_ignored_with_a_warning() -> Result<()> {
    let env = TestEnv::gemini(Reply::new().text("Fine.")).await?;
    let mut asked = request(&env, "Go.");
    asked.effort = Some("high".to_owned());
    let run = env.run(asked).await?;
    assert_eq!(run.result.text, "Fine.");
    assert_eq!(run.warnings(&WarningCode::OptionIgnored).len(), 1);
    Ok(())
}
