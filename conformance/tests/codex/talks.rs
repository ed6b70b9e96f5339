//! Sessions on the app-server, as far as they differ from agent to agent; what is the same stands in `all/sessions.rs`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::event::{ErrorCode, Event, RequestId, WarningCode};
use teamster::request::{Answer, McpServer, PermissionMode, PromptMode};
use teamster::{RunRequest, Sent};
use teamster_conformance::{BOUND, Live, TestEnv, request_of};
use teamster_testkit::provider::{ModelRequest, Reply, Scenario};

use crate::sessions::prompts;
use crate::{add_file, mode, shell};

const PROGRAM: &str = env!("CARGO_BIN_EXE_teamster-conformance-mcp-server");

/// A command for which the model wants to leave its sandbox.
fn leaving(command: &str) -> serde_json::Value {
    json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"})
}

/// A model that wants to make a file, once in its conversation: by a command that may not, by one that does not ask, or by a
/// patch.
fn wants(by: &str) -> Scenario {
    let call = match by {
        "plain command" => Reply::new().tool("exec_command", shell("touch made")),
        "command" => Reply::new().tool("exec_command", leaving("touch made && echo it is made")),
        _ => Reply::new().tool("apply_patch", add_file("made", "x")),
    };
    let reply = move |request: &ModelRequest| {
        let has_tried = !request.all_tool_results().is_empty();
        if has_tried { Reply::new().text("Done.") } else { call.clone() }
    };
    Reply::from_fn(reply).into()
}

async fn asked(live: &mut Live<'_>) -> Result<(RequestId, Event)> {
    let event = live.until("a permission request", |event| request_of(event).is_some()).await?;
    Ok((request_of(&event).cloned().context("no request")?, event))
}

#[tokio::test]
async fn a_command_and_a_patch_need_permission_and_are_allowed_or_denied() -> Result<()> {
    for (by, tool) in [("command", "command_execution"), ("patch", "file_change")] {
        for (answer, made) in [
            (Answer::Allow { input: None }, true),
            (Answer::AllowAlways, true),
            (Answer::Deny { message: Some("Not today.".to_owned()) }, false),
        ] {
            let lab = TestEnv::codex(wants(by)).await?;
            let talk = lab.open(lab.request(""), |opening| opening)?;
            let mut live = talk.send("Make it.")?;
            let (id, event) = asked(&mut live).await?;
            let Event::PermissionRequest(request) = event else { unreachable!() };
            assert_eq!(request.tool_name, tool);
            assert!(!lab.project().join("made").exists(), "it waits");
            talk.session().answer(id, answer.clone()).await?;
            let recording = live.finish().await?;
            assert_eq!(lab.project().join("made").exists(), made, "{by} {answer:?}");
            let (call, result) = recording.only_tool()?;
            assert_eq!((call.tool_name.as_str(), Some(&call.tool_id)), (tool, request.tool_id.as_ref()));
            assert_eq!(result.is_error, Some(!made));
            assert_eq!(recording.result.permission_denials.len(), usize::from(!made));
            assert!(!recording.result.is_error);
            if !made {
                let said = recording.requests.last().context("no request")?;
                assert!(said.prompts().contains(&"Not today."), "the model hears why: {:?}", said.prompts());
            }
            talk.close().await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_unanswered_request_is_denied_after_its_time() -> Result<()> {
    let lab = TestEnv::codex(wants("command")).await?;
    let mut frame = lab.request("");
    frame.limits.answer = Duration::from_millis(300);
    let talk = lab.open(frame, |opening| opening)?;
    let recording = talk.say("Make it.").await?;
    assert_eq!(recording.warnings(&WarningCode::Unanswered).len(), 1);
    assert!(!lab.project().join("made").exists());
    assert_eq!(recording.result.final_text, "Done.");
    talk.close().await
}

#[tokio::test]
async fn a_call_that_a_rule_allows_makes_no_permission_request() -> Result<()> {
    let lab = TestEnv::codex(wants("command")).await?;
    let mut frame = lab.request("");
    frame.permissions.allow = vec!["command_execution(touch made && echo it is made)".to_owned()];
    let talk = lab.open(frame, |opening| opening)?;
    let recording = talk.say("Make it.").await?;
    assert!(!recording.events.iter().any(|event| request_of(event).is_some()));
    assert!(lab.project().join("made").exists());
    talk.close().await
}

#[tokio::test]
async fn an_interrupt_releases_a_request_that_waits() -> Result<()> {
    let lab = TestEnv::codex(wants("command")).await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let mut live = talk.send("Make it.")?;
    let (id, _) = asked(&mut live).await?;
    live.control().interrupt();
    assert!(live.finish().await?.result.aborted);
    assert!(talk.session().answer(id, Answer::AllowAlways).await.is_err());
    assert!(!lab.project().join("made").exists());
    let after = talk.say("And now?").await?;
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    talk.close().await
}

#[tokio::test]
async fn a_mode_decides_which_permissions_are_requested() -> Result<()> {
    // Reading asks for nothing: it refuses. Editing lets a patch pass. In full mode everything passes.
    for (permission, by, made) in [
        (PermissionMode::ReadOnly, "command", false),
        (PermissionMode::ReadOnly, "patch", false),
        (PermissionMode::Edit, "patch", true),
        (PermissionMode::Full, "plain command", true),
    ] {
        let lab = TestEnv::codex(wants(by)).await?;
        fs::create_dir(lab.home().join(".codex/rules"))?;
        if permission == PermissionMode::ReadOnly {
            let rule = "prefix_rule(pattern=[\"touch\"], decision=\"allow\")\n";
            fs::write(lab.home().join(".codex/rules/default.rules"), rule)?;
        }
        let talk = lab.open(mode(lab.request(""), permission), |opening| opening)?;
        let recording = talk.say("Make it.").await?;
        assert!(!recording.events.iter().any(|event| request_of(event).is_some()), "{permission:?}");
        assert_eq!(lab.project().join("made").exists(), made, "{permission:?} {by}");
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn another_model_and_another_mode_hold_from_then_on() -> Result<()> {
    let lab = TestEnv::codex(wants("command")).await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    talk.session().set_model("gpt-5.4")?;
    talk.session().set_permission_mode(PermissionMode::ReadOnly)?;
    for _ in 0..2 {
        let recording = talk.say("Make it.").await?;
        assert!(recording.requests.iter().all(|request| request.model == "gpt-5.4"), "{}", recording.requests[0].model);
        assert_eq!(recording.init()?.model.as_deref(), Some("gpt-5.4"));
        assert!(recording.warnings(&WarningCode::SessionReopened).is_empty(), "it was asked for");
    }
    assert!(!lab.project().join("made").exists());
    talk.session().set_model("gpt-5.5")?;
    assert_eq!(talk.say("And now?").await?.requests[0].model, "gpt-5.5");
    talk.close().await
}

#[tokio::test]
async fn an_interrupt_in_mid_text_ends_the_turn_and_the_next_one_knows_of_it() -> Result<()> {
    let lab = TestEnv::codex(
        Scenario::new()
            .reply(Reply::new().text("It begins and never ends.").gate_after(2, "never"))
            .branch("after", Reply::new().text("Here I am.")),
    )
    .await?;
    let talk = lab.open(lab.request(""), |opening| opening)?;
    let live = talk.send("Begin.")?;
    lab.provider().gate("never").wait_reached(BOUND).await?;
    live.control().interrupt();
    assert!(live.finish().await?.result.aborted);
    let after = talk.say("And now SCN:after").await?;
    assert_eq!(after.result.text, "Here I am.");
    assert!(prompts(&after.requests[0]).contains(&"Begin."));
    assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
    talk.close().await
}

/// With its children: the command is a shell that has started another one.
#[tokio::test]
async fn an_interrupt_in_mid_tool_ends_the_command_and_not_the_session() -> Result<()> {
    let command = "echo begun; (sleep 31417; echo never) ";
    let scenario = Scenario::new()
        .reply(Reply::new().tool("exec_command", shell(command)))
        .branch("after", Reply::new().text("Here I am."));
    for permission in [PermissionMode::Ask, PermissionMode::Full] {
        let lab = TestEnv::codex(scenario.clone()).await?;
        let talk = lab.open(mode(lab.request(""), permission), |opening| opening)?;
        let live = talk.send("Begin.")?;
        talk.trace().wait_for_command("sleep 31417", BOUND).await?;
        live.control().interrupt();
        let recording = live.finish().await?;
        assert!(recording.result.aborted);
        let runs = || talk.trace().processes().iter().any(|process| process.command.contains("sleep 31417"));
        tokio::time::timeout(BOUND, async {
            while runs() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await?;
        let after = talk.say("And now SCN:after").await?;
        assert_eq!(after.result.text, "Here I am.");
        assert!(after.warnings(&WarningCode::SessionReopened).is_empty());
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_message_sent_within_a_turn_reaches_the_model_in_that_turn() -> Result<()> {
    let wait = "until test -e go; do sleep 0.05; done";
    let scenario =
        Scenario::new().reply(Reply::new().tool("exec_command", shell(wait))).reply(Reply::new().text("Done."));
    let lab = TestEnv::codex(scenario).await?;
    let talk = lab.open(mode(lab.request(""), PermissionMode::Full), |opening| opening)?;
    let mut live = talk.send("Wait.")?;
    live.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    let sent = talk.session().send_now("Hurry.").await?;
    assert!(matches!(sent, Sent::Steered), "{sent:?}");
    fs::write(lab.project().join("go"), "")?;
    let recording = live.finish().await?;
    assert!(recording.requests[1].prompts().contains(&"Hurry."), "{:?}", recording.requests[1].prompts());
    talk.close().await
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
        let lab = TestEnv::codex(scenario.reply(Reply::new().text("Done."))).await?;
        let talk = lab.open(with_server(lab.request(""), McpServer::stdio(PROGRAM)), |opening| opening)?;
        let mut live = talk.send("Add.")?;
        let (id, event) = asked(&mut live).await?;
        let Event::PermissionRequest(request) = event else { unreachable!() };
        assert_eq!((request.tool_name.as_str(), request.input.to_value()?), ("mcp__my.calc__add", add.clone()));
        talk.session().answer(id, answer.clone()).await?;
        let recording = live.finish().await?;
        let (call, result) = recording.only_tool()?;
        assert_eq!((call.server.as_deref(), result.output.as_str()), (Some("my.calc"), output));
        assert_eq!(Some(&call.tool_id), request.tool_id.as_ref());
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_a_session_needs_and_that_does_not_start_ends_each_turn() -> Result<()> {
    let lab = TestEnv::codex(Reply::new().text("Unheard.")).await?;
    let frame = with_server(lab.request(""), McpServer::stdio("/nonexistent").required());
    let talk = lab.open(frame, |opening| opening)?;
    for _ in 0..2 {
        let recording = talk.say("Add.").await?;
        assert_eq!(recording.result.error_code, Some(ErrorCode::Config));
        assert!(recording.requests.is_empty(), "the model was asked");
    }
    talk.close().await
}

const SKILL: &str = "---\nname: greet\ndescription: Greets people.\n---\nBODY-OF-THE-SKILL\n";

#[tokio::test]
async fn a_literal_prompt_of_a_session_brings_in_no_skill() -> Result<()> {
    for (prompt_mode, brought_in) in [(PromptMode::Literal, false), (PromptMode::Agent, true)] {
        let lab = TestEnv::codex(Reply::new().text("Read.")).await?;
        let folder: PathBuf = lab.home().join(".codex/skills/greet");
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("SKILL.md"), SKILL)?;
        let mut frame = lab.request("");
        frame.prompt_mode = prompt_mode;
        let talk = lab.open(frame, |opening| opening)?;
        for prompt in ["Use $greet now.", "`$greet`, a$greet: $100"] {
            let recording = talk.say(prompt).await?;
            assert_eq!(recording.requests[0].prompts().last(), Some(&prompt));
            let body = recording.requests[0].body.to_string();
            assert_eq!(body.contains("BODY-OF-THE-SKILL"), brought_in, "{prompt:?} {prompt_mode:?}");
        }
        talk.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_session_that_continues_the_newest_conversation_is_warm() -> Result<()> {
    let lab = TestEnv::codex(Reply::new().text("Read.")).await?;
    let id = lab.run(lab.request("First.")).await?.result.session_id;
    let mut frame = lab.request("");
    frame.conversation = teamster::request::Conversation::Continue;
    let talk = lab.open(frame, |opening| opening)?;
    for said in [vec!["First.", "Second."], vec!["First.", "Second.", "Second."]] {
        let recording = talk.say("Second.").await?;
        assert_eq!(prompts(&recording.requests[0]), said);
        assert_eq!(recording.result.session_id, id);
    }
    talk.trace().wait_for("app-server", BOUND).await?;
    talk.close().await
}
