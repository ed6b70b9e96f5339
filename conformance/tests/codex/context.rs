//! The context of the prompt: system prompts, the model, attachments, schemas, instructions of the project.

use std::fs;
use std::num::NonZeroU32;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::event::{ErrorCode, StopReason, WarningCode};
use teamster::request::{AgentInterface, Attachment, Conversation, PermissionMode, ProjectTrust};
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{ModelRequest, Reply};

use crate::shell;

async fn test_env() -> Result<TestEnv> {
    TestEnv::codex(Reply::new().text("Read.")).await
}

#[tokio::test]
async fn a_system_prompt_replaces_the_agents_own_and_more_is_added_to_either() -> Result<()> {
    let env = test_env().await?;
    let (system, more) = ("You are a \"test\".\nSecond line.", "Add 'this'\n= \\ too. \u{7f}");
    for (system, more) in [(Some(system), None), (None, Some(more)), (Some(system), Some(more))] {
        let mut request = env.request("Hello.");
        request.system_prompt = system.map(str::to_owned);
        request.append_system_prompt = more.map(str::to_owned);
        let recording = env.run(request).await?;
        let instructions = &recording.requests[0].system;
        assert_eq!(instructions.contains("You are Codex"), system.is_none(), "{instructions}");
        assert!(system.is_none_or(|text| instructions.contains(text)), "{instructions}");
        assert!(more.is_none_or(|text| instructions.contains(text)), "{instructions}");
        assert_eq!(recording.prompts(0)?, ["Hello."]);
    }
    Ok(())
}

#[tokio::test]
async fn a_resumed_session_takes_another_system_prompt_and_gets_an_addition_with_the_prompt() -> Result<()> {
    let env = test_env().await?;
    let mut request = env.request("Hello.");
    request.append_system_prompt = Some("Speak softly.".to_owned());
    let session = env.run(request).await?.result.session_id.context("no session id")?;
    for system in [Some("You are loud."), None] {
        let mut request = env.request("Again.");
        request.conversation = Conversation::Resume(session.clone());
        request.system_prompt = system.map(str::to_owned);
        request.append_system_prompt = Some("Shout.".to_owned());
        let recording = env.run(request).await?;
        let instructions = &recording.requests[0].system;
        assert!(instructions.contains("Speak softly."), "{instructions}");
        assert_eq!(instructions.contains("Shout."), system.is_some(), "{instructions}");
        assert!(recording.warnings(&WarningCode::OptionIgnored).is_empty());
        let expected = if system.is_none() { "<instructions>\nShout.\n</instructions>\n\nAgain." } else { "Again." };
        assert_eq!(recording.prompts(0)?.last(), Some(&expected));
    }
    Ok(())
}

#[tokio::test]
async fn model_and_effort_reach_the_vendor() -> Result<()> {
    let env = test_env().await?;
    let mut request = env.request("Hello.");
    request.model = Some("gpt-5.4".to_owned());
    request.effort = Some("low".to_owned());
    let recording = env.run(request).await?;
    assert_eq!(recording.requests[0].model, "gpt-5.4");
    assert_eq!(recording.requests[0].body["reasoning"]["effort"], "low");
    Ok(())
}

/// A PNG of one pixel.
const PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00,
    0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0x1f, 0x15, 0xc4, 0x89, 0x00, 0x00, 0x00, 0x0d, 0x49,
    0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0x00, 0x05, 0x00, 0x01, 0xff, 0x89, 0x99, 0x3d,
    0x1d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

#[tokio::test]
async fn attachments_reach_the_model_in_new_and_resumed_sessions() -> Result<()> {
    let env = test_env().await?;
    fs::write(env.project().join("notes.txt"), "the notes")?;
    fs::write(env.project().join("dot.png"), PNG)?;
    let mut session = None;
    for _ in 0..2 {
        let mut request = env.request("Look.");
        request.attachments = ["notes.txt", "dot.png", "dot.png"].map(|name| Attachment::Path(name.into())).to_vec();
        request.conversation = session.map_or(Conversation::New, Conversation::Resume);
        let recording = env.run(request).await?;
        let prompts = recording.prompts(0)?;
        assert!(prompts.contains(&"Attached file notes.txt:\nthe notes\n\nLook."), "{prompts:?}");
        let body = recording.requests[0].body.to_string();
        assert!(body.matches("data:image/png;base64,iVBOR").count() >= 2);
        session = recording.result.session_id;
    }
    Ok(())
}

#[tokio::test]
async fn an_answer_that_follows_a_schema_is_a_document() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("{\"answer\": 42}")).await?;
    let schema = json!({
        "type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"],
        "additionalProperties": false,
    });
    let mut request = env.request("What is it?");
    request.schema = Some(schema.clone());
    let recording = env.run(request).await?;
    assert_eq!(recording.result.structured_output, Some(json!({"answer": 42}).into()));
    let format = &recording.requests[0].body["text"]["format"];
    assert_eq!((&format["type"], &format["schema"]), (&json!("json_schema"), &schema));
    Ok(())
}

#[tokio::test]
async fn an_answer_that_does_not_follow_the_schema_is_an_error() -> Result<()> {
    for answer in ["No.", "[42]", "{\"other\": 42}"] {
        let env = TestEnv::codex(Reply::new().text(answer)).await?;
        let mut request = env.request("What is it?");
        request.schema = Some(json!({"type": "object", "required": ["answer"]}));
        let recording = env.run(request).await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::StructuredOutput), "{answer}");
        assert_eq!(recording.result.text, answer);
    }
    Ok(())
}

#[tokio::test]
async fn the_limit_of_turns_counts_model_calls_and_is_ignored_in_exec_with_a_warning() -> Result<()> {
    let never_done =
        |request: &ModelRequest| Reply::new().tool("exec_command", shell(&format!("echo {}", request.messages.len())));
    let env = TestEnv::codex(Reply::from_fn(never_done)).await?;
    let mut request = env.request("Never stop.");
    request.max_turns = NonZeroU32::new(2);
    let recording = env.run(request).await?;
    assert_eq!(recording.result.error_code, Some(ErrorCode::MaxTurns));
    assert_eq!(recording.result.stop_reason, Some(StopReason::MaxTurns));
    assert!((2..=3).contains(&recording.requests.len()), "{} calls", recording.requests.len());
    let env = test_env().await?;
    for interface in [AgentInterface::Auto, AgentInterface::Exec] {
        let mut request = env.request("Hello.");
        (request.max_turns, request.interface) = (NonZeroU32::new(1), interface);
        let recording = env.run(request).await?;
        let is_ignored = interface == AgentInterface::Exec;
        assert_eq!(recording.warnings(&WarningCode::OptionIgnored).len(), usize::from(is_ignored));
        assert!(!recording.result.is_error, "{:?}", recording.result);
    }
    Ok(())
}

/// The project contains all kinds of instructions for the agent, each with a marker.
#[tokio::test]
async fn nothing_of_an_untrusted_directory_is_used() -> Result<()> {
    for (trust, used) in [(ProjectTrust::Trusted, true), (ProjectTrust::Untrusted, false)] {
        let env = test_env().await?;
        let project = env.project();
        let (inner, skill) = (project.join("inner"), project.join(".agents/skills/lure"));
        for folder in [&inner.join(".codex"), &project.join(".codex"), &project.join(".git"), &skill] {
            fs::create_dir_all(folder)?;
        }
        fs::write(project.join(".git/HEAD"), "ref: refs/heads/main\n")?;
        fs::write(project.join("AGENTS.md"), "MARKER-OF-AGENTS-MD")?;
        fs::write(skill.join("SKILL.md"), "---\nname: lure\ndescription: MARKER-OF-A-SKILL\n---\nMARKER-IN-A-SKILL\n")?;
        fs::write(project.join(".codex/config.toml"), "developer_instructions = \"MARKER-OF-ITS-CONFIG\"\n")?;
        fs::write(inner.join(".codex/config.toml"), "developer_instructions = \"MARKER-OF-ITS-CONFIG\"\n")?;
        // The user has trusted both directories earlier.
        let config = env.home().join(".codex/config.toml");
        let mut text = fs::read_to_string(&config)?;
        for folder in [&project, &inner] {
            let name = format!("{:?}", folder.canonicalize()?);
            text.extend(["\n[projects.", &name, "]\ntrust_level = \"trusted\"\n"]);
        }
        fs::write(&config, text)?;
        let mut request = env.request("Use $lure.");
        request.cwd = Some(inner);
        request.project_trust = trust;
        let recording = env.run(request).await?;
        let body = recording.requests[0].body.to_string();
        for marker in ["MARKER-OF-AGENTS-MD", "MARKER-OF-A-SKILL", "MARKER-IN-A-SKILL", "MARKER-OF-ITS-CONFIG"] {
            assert_eq!(body.contains(marker), used, "{marker} {trust:?}");
        }
        assert_eq!(recording.prompts(0)?, ["Use $lure."]);
    }
    Ok(())
}

#[tokio::test]
async fn the_users_configuration_stays_as_it_is_and_no_directory_is_trusted_by_a_run() -> Result<()> {
    for mode in [PermissionMode::ReadOnly, PermissionMode::Ask, PermissionMode::Edit, PermissionMode::Full] {
        let env = test_env().await?;
        let config = env.home().join(".codex/config.toml");
        let before = fs::read_to_string(&config)?;
        fs::create_dir(env.project().join(".codex"))?;
        fs::write(env.project().join(".codex/config.toml"), "developer_instructions = \"MARKER-OF-ITS-CONFIG\"\n")?;
        let mut template = env.request("");
        template.permissions.mode = mode;
        let session = env.open(template.clone())?;
        let turn = session.run_turn("Hello.").await?;
        session.close().await?;
        let id = turn.result.session_id.clone().context("no session id")?;
        template.prompt = "Hello.".to_owned();
        let mut recordings = vec![turn];
        for conversation in [Conversation::New, Conversation::Resume(id.clone()), Conversation::Fork(id)] {
            let mut request = template.clone();
            request.conversation = conversation;
            recordings.push(env.run(request).await?);
        }
        for recording in recordings {
            assert_eq!(recording.result.text, "Read.", "{mode:?}");
            assert!(!recording.requests[0].body.to_string().contains("MARKER-OF-ITS-CONFIG"), "{mode:?}");
        }
        assert_eq!(fs::read_to_string(&config)?, before, "{mode:?}");
    }
    Ok(())
}
