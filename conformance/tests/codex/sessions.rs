//! Sessions on Codex's app-server. What is the same on all agents is in `all/sessions.rs`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::{Answer, McpServer, PermissionMode, PromptMode};
use teamster::{RunRequest, Sent};
use teamster_conformance::{TIMEOUT, TestEnv, TestRun, request_id};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario};

use crate::conversations::prompts;
use crate::{add_file, mode, shell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

/// Returns a command that the model wants to run outside of its sandbox.
fn escalated(command: &str) -> serde_json::Value {
    json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"})
}

/// A model that creates a file, once in its conversation: by a command in the sandbox (`plain command`), by a command
/// outside of it (`command`), or by a patch.
fn creates_a_file(by: &str) -> Scenario {
    let call = match by {
        "plain command" => Reply::new().tool("exec_command", shell("touch made")),
        "command" => Reply::new().tool("exec_command", escalated("touch made && echo it is made")),
        _ => Reply::new().tool("apply_patch", add_file("made", "x")),
    };
    let reply = move |request: &ModelRequest| {
        let has_tried = !request.all_tool_results().is_empty();
        if has_tried { Reply::new().text("Done.") } else { call.clone() }
    };
    Reply::from_fn(reply).into()
}

async fn next_request(run: &mut TestRun) -> Result<(RequestId, Event)> {
    let event = run.until("a permission request", |event| request_id(event).is_some()).await?;
    Ok((request_id(&event).cloned().context("no request")?, event))
}

#[tokio::test]
async fn a_command_and_a_patch_need_permission_and_are_allowed_or_denied() -> Result<()> {
    for (by, tool) in [("command", "command_execution"), ("patch", "file_change")] {
        for (answer, made) in [
            (Answer::Allow { input: None }, true),
            (Answer::AllowAlways, true),
            (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
        ] {
            let env = TestEnv::codex(creates_a_file(by)).await?;
            let session = env.open(env.request(""))?;
            let mut run = session.send("Make it.")?;
            let (id, event) = next_request(&mut run).await?;
            let Event::PermissionRequest(request) = event else { unreachable!() };
            assert_eq!(request.tool_name, tool);
            assert!(!env.project().join("made").exists(), "the call waits for the answer");
            session.handle().answer(id, answer.clone()).await?;
            let recording = run.finish().await?;
            assert_eq!(env.project().join("made").exists(), made, "{by} {answer:?}");
            let (call, result) = recording.only_tool()?;
            assert_eq!((call.tool_name.as_str(), Some(&call.tool_id)), (tool, request.tool_id.as_ref()));
            assert_eq!(result.is_error, Some(!made));
            assert_eq!(recording.result.permission_denials.len(), usize::from(!made));
            assert!(!recording.result.is_error);
            if !made {
                let last = recording.requests.last().context("no request")?;
                assert!(last.prompts().contains(&"Not today."), "the model receives the reason: {:?}", last.prompts());
            }
            session.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    let env = TestEnv::codex(creates_a_file("command")).await?;
    let mut template = env.request("");
    template.limits.answer = Duration::from_millis(300);
    let session = env.open(template)?;
    let recording = session.run_turn("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!env.project().join("made").exists());
    assert_eq!(recording.result.final_text, "Done.");
    session.close().await
}

#[tokio::test]
async fn a_call_that_a_rule_allows_makes_no_permission_request() -> Result<()> {
    let env = TestEnv::codex(creates_a_file("command")).await?;
    let mut template = env.request("");
    template.permissions.allow = vec!["command_execution(touch made && echo it is made)".to_owned()];
    let session = env.open(template)?;
    let recording = session.run_turn("Make it.").await?;
    assert!(!recording.events.iter().any(|event| request_id(event).is_some()));
    assert!(env.project().join("made").exists());
    session.close().await
}

#[tokio::test]
async fn an_interrupt_releases_a_request_that_waits() -> Result<()> {
    let env = TestEnv::codex(creates_a_file("command")).await?;
    let session = env.open(env.request(""))?;
    let mut run = session.send("Make it.")?;
    let (id, _) = next_request(&mut run).await?;
    run.control().interrupt();
    assert!(run.finish().await?.result.aborted);
    assert!(session.handle().answer(id, Answer::AllowAlways).await.is_err());
    assert!(!env.project().join("made").exists());
    let after = session.run_turn("And now?").await?;
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

#[tokio::test]
async fn a_mode_decides_which_permissions_are_requested() -> Result<()> {
    // `read-only` refuses without a request. `edit` allows a patch. `full` allows all calls.
    for (permission, by, made) in [
        (PermissionMode::ReadOnly, "command", false),
        (PermissionMode::ReadOnly, "patch", false),
        (PermissionMode::Edit, "patch", true),
        (PermissionMode::Full, "plain command", true),
    ] {
        let env = TestEnv::codex(creates_a_file(by)).await?;
        fs::create_dir(env.home().join(".codex/rules"))?;
        if permission == PermissionMode::ReadOnly {
            let rule = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
            fs::write(env.home().join(".codex/rules/default.rules"), rule)?;
        }
        let session = env.open(mode(env.request(""), permission))?;
        let recording = session.run_turn("Make it.").await?;
        assert!(!recording.events.iter().any(|event| request_id(event).is_some()), "{permission:?}");
        assert_eq!(env.project().join("made").exists(), made, "{permission:?} {by}");
        session.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn another_model_and_another_mode_hold_from_then_on() -> Result<()> {
    let env = TestEnv::codex(creates_a_file("command")).await?;
    let session = env.open(env.request(""))?;
    session.handle().set_model("gpt-5.4")?;
    session.handle().set_permission_mode(PermissionMode::ReadOnly)?;
    for _ in 0..2 {
        let recording = session.run_turn("Make it.").await?;
        assert!(recording.requests.iter().all(|request| request.model == "gpt-5.4"), "{}", recording.requests[0].model);
        assert_eq!(recording.init()?.model.as_deref(), Some("gpt-5.4"));
        assert!(recording.warnings(&WarningCode::SessionReopened).is_empty(), "the caller requested it");
    }
    assert!(!env.project().join("made").exists());
    session.handle().set_model("gpt-5.5")?;
    assert_eq!(session.run_turn("And now?").await?.requests[0].model, "gpt-5.5");
    session.close().await
}

#[tokio::test]
async fn an_interrupt_in_mid_text_ends_the_turn_and_stays_in_the_history() -> Result<()> {
    let env = TestEnv::codex(
        Scenario::new()
            .reply(Reply::new().text("It starts and never ends.").gate_after(2, "never"))
            .branch("after", Reply::new().text("Here I am.")),
    )
    .await?;
    let session = env.open(env.request(""))?;
    let run = session.send("Start.")?;
    env.provider().gate("never").wait_reached(TIMEOUT).await?;
    run.control().interrupt();
    assert!(run.finish().await?.result.aborted);
    let after = session.run_turn("And now SCN:after").await?;
    assert_eq!(after.result.text, "Here I am.");
    assert!(prompts(&after.requests[0]).contains(&"Start."));
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    session.close().await
}

/// The command is a shell with a child process.
#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_command_and_not_the_session() -> Result<()> {
    let command = "echo started; (sleep 31417; echo never) ";
    let scenario = Scenario::new()
        .reply(Reply::new().tool("exec_command", shell(command)))
        .branch("after", Reply::new().text("Here I am."));
    for permission in [PermissionMode::Ask, PermissionMode::Full] {
        let env = TestEnv::codex(scenario.clone()).await?;
        let session = env.open(mode(env.request(""), permission))?;
        let run = session.send("Start.")?;
        session.processes().wait_for_command("sleep 31417", TIMEOUT).await?;
        run.control().interrupt();
        let recording = run.finish().await?;
        assert!(recording.result.aborted);
        let runs = || session.processes().list().iter().any(|process| process.command.contains("sleep 31417"));
        tokio::time::timeout(TIMEOUT, async {
            while runs() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await?;
        let after = session.run_turn("And now SCN:after").await?;
        assert_eq!(after.result.text, "Here I am.");
        assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
        session.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_message_sent_within_a_turn_reaches_the_model_in_that_turn() -> Result<()> {
    let wait = "until test -e go; do sleep 0.05; done";
    let scenario =
        Scenario::new().reply(Reply::new().tool("exec_command", shell(wait))).reply(Reply::new().text("Done."));
    let env = TestEnv::codex(scenario).await?;
    let session = env.open(mode(env.request(""), PermissionMode::Full))?;
    let mut run = session.send("Wait.")?;
    run.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    let sent = session.handle().send_now("Hurry.").await?;
    assert!(matches!(sent, Sent::Steered), "{sent:?}");
    fs::write(env.project().join("go"), "")?;
    let recording = run.finish().await?;
    assert!(recording.requests[1].prompts().contains(&"Hurry."), "{:?}", recording.requests[1].prompts());
    session.close().await
}

fn with_server(mut request: RunRequest, server: McpServer) -> RunRequest {
    request.mcp_servers.insert("my.calc".to_owned(), server);
    request
}

#[tokio::test]
async fn permission_for_a_servers_tool_is_requested_under_the_callers_name() -> Result<()> {
    let add = json!({"a": 40, "b": 2});
    for (answer, output) in
        [(Answer::AllowAlways, "42"), (Answer::Deny { message: None }, "user rejected MCP tool call")]
    {
        let call = || Reply::new().tool("mcp__my_calc/add", add.clone());
        let scenario = Scenario::new().reply(call()).reply(Reply::new().text("Done.")).reply(call());
        let env = TestEnv::codex(scenario.reply(Reply::new().text("Done."))).await?;
        let session = env.open(with_server(env.request(""), McpServer::stdio(PROGRAM)))?;
        let mut run = session.send("Add.")?;
        let (id, event) = next_request(&mut run).await?;
        let Event::PermissionRequest(request) = event else { unreachable!() };
        assert_eq!((request.tool_name.as_str(), request.input.to_value()?), ("mcp__my.calc__add", add.clone()));
        session.handle().answer(id, answer.clone()).await?;
        let recording = run.finish().await?;
        let (call, result) = recording.only_tool()?;
        assert_eq!((call.server.as_deref(), result.output.as_str()), (Some("my.calc"), output));
        assert_eq!(Some(&call.tool_id), request.tool_id.as_ref());
        session.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_required_server_that_does_not_start_fails_each_turn() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Unused.")).await?;
    let template = with_server(env.request(""), McpServer::stdio("/nonexistent").required());
    let session = env.open(template)?;
    for _ in 0..2 {
        let recording = session.run_turn("Add.").await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
        assert!(recording.requests.is_empty(), "a request reached the model");
    }
    session.close().await
}

const SKILL: &str = "---\nname: greet\ndescription: Greets people.\n---\nBODY-OF-THE-SKILL\n";

#[tokio::test]
async fn a_literal_prompt_of_a_session_brings_in_no_skill() -> Result<()> {
    for (prompt_mode, brought_in) in [(PromptMode::Literal, false), (PromptMode::Agent, true)] {
        let env = TestEnv::codex(Reply::new().text("Read.")).await?;
        let folder: PathBuf = env.home().join(".codex/skills/greet");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("SKILL.md"), SKILL)?;
        let mut template = env.request("");
        template.prompt_mode = prompt_mode;
        let session = env.open(template)?;
        for prompt in ["Use $greet now.", "`$greet`, a$greet: $100"] {
            let recording = session.run_turn(prompt).await?;
            assert_eq!(recording.requests[0].prompts().last(), Some(&prompt));
            let body = recording.requests[0].body.to_string();
            assert_eq!(body.contains("BODY-OF-THE-SKILL"), brought_in, "{prompt:?} {prompt_mode:?}");
        }
        session.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_continues_the_newest_conversation_keeps_its_process() -> Result<()> {
    let env = TestEnv::codex(Reply::new().text("Read.")).await?;
    let id = env.run(env.request("First.")).await?.result.session_id;
    let mut template = env.request("");
    template.conversation = teamster::request::Conversation::Continue;
    let session = env.open(template)?;
    for expected in [vec!["First.", "Second."], vec!["First.", "Second.", "Second."]] {
        let recording = session.run_turn("Second.").await?;
        assert_eq!(prompts(&recording.requests[0]), expected);
        assert_eq!(recording.result.session_id, id);
    }
    session.processes().wait_for("app-server", TIMEOUT).await?;
    session.close().await
}
