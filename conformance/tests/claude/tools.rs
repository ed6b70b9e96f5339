//! The agent's own tools.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::Event;
use teamster::event::ToolKind;
use teamster::request::PermissionMode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{bash, bash_then_text, full, tool_then_text, usage_of};

#[tokio::test]
async fn a_shell_command_is_reported_with_its_output() -> Result<()> {
    let env = TestEnv::claude(
        Scenario::new()
            .reply(Reply::new().text("Let me see. ").tool("Bash", bash("echo sum-$((40 + 2))")))
            .reply(Reply::new().text("Done.")),
    )
    .await?;
    let recording = env.run(full(env.request("Add."))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.tool_name.as_str(), &tool.kind), ("Bash", &ToolKind::Execute));
    assert_eq!(tool.input.to_value()?["command"], "echo sum-$((40 + 2))");
    assert_eq!(result.output, "sum-42");
    assert_ne!(result.is_error, Some(true));
    assert_eq!(recording.requests[1].tool_results()[0].output, "sum-42");
    assert_eq!(recording.result.text, "Let me see. \n\nDone.");
    assert_eq!(recording.result.final_text, "Done.");
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

#[tokio::test]
async fn a_command_that_fails_is_an_error_of_the_tool_not_of_the_run() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("echo out; echo boom >&2; exit 3")).await?;
    let recording = env.run(full(env.request("Fail."))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert_eq!(result.output, "Exit code 3\nout\nboom");
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn a_file_is_written_read_and_edited_on_disk() -> Result<()> {
    let env = TestEnv::claude(
        Scenario::new()
            .reply(Reply::new().tool("Write", json!({"file_path": "note.txt", "content": "one\ntwo\n"})))
            .reply(Reply::new().tool("Read", json!({"file_path": "note.txt"})))
            .reply(Reply::new().tool("Edit", json!({"file_path": "note.txt", "old_string": "two", "new_string": "2"})))
            .reply(Reply::new().text("Edited.")),
    )
    .await?;
    let mut request = env.request("Edit.");
    request.permissions.mode = PermissionMode::Edit;
    let recording = env.run(request).await?;
    assert_eq!(fs::read_to_string(env.project().join("note.txt"))?, "one\n2\n");
    let kinds: Vec<_> = recording.tools().iter().map(|(tool, _)| tool.kind.clone()).collect();
    assert_eq!(kinds, [ToolKind::Edit, ToolKind::Read, ToolKind::Edit]);
    assert!(recording.tools().iter().all(|(_, result)| result.is_error != Some(true)));
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn parallel_calls_each_get_their_own_result() -> Result<()> {
    let env = TestEnv::claude(
        Scenario::new()
            .reply(
                Reply::new()
                    .tool("Bash", bash("sleep 0.3; echo first"))
                    .tool("Bash", bash("echo second"))
                    .tool("Bash", bash("echo third")),
            )
            .reply(Reply::new().text("Three.")),
    )
    .await?;
    let recording = env.run(full(env.request("Run three."))).await?;
    let outputs: Vec<&str> = recording.tools().iter().map(|(_, result)| result.output.as_str()).collect();
    assert_eq!(outputs, ["first", "second", "third"]);
    assert_eq!(recording.requests[1].tool_results().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_call_is_reported_before_its_tool_has_run() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("until test -e go; do sleep 0.05; done; echo went")).await?;
    let mut run = env.start(full(env.request("Wait.")))?;
    run.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    fs::write(env.project().join("go"), "")?;
    let recording = run.finish().await?;
    assert_eq!(recording.only_tool()?.1.output, "went");
    Ok(())
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_of_the_call() -> Result<()> {
    let env = TestEnv::claude(tool_then_text("Teleport", json!({"to": "Mars"}))).await?;
    let recording = env.run(env.request("Go.")).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!(tool.tool_name, "Teleport");
    assert_eq!(result.is_error, Some(true));
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn input_that_is_no_json_still_gives_one_call_with_one_result() -> Result<()> {
    let env = TestEnv::claude(
        Scenario::new()
            .reply(Reply::new().tool_raw("Bash", ["{\"command\": \"echo", " hi"]))
            .reply(Reply::new().text("Never mind.")),
    )
    .await?;
    let recording = env.run(full(env.request("Break."))).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Never mind.");
    Ok(())
}

#[tokio::test]
async fn a_command_over_its_time_limit_is_killed_and_leaves_nothing() -> Result<()> {
    let input = json!({"command": "sleep 300", "description": "Sleep", "timeout": 1000});
    let env = TestEnv::claude(tool_then_text("Bash", input)).await?;
    let recording = env.run(full(env.request("Sleep."))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("timed out after 1s"), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

#[tokio::test]
async fn no_command_of_a_run_stays_in_the_background() -> Result<()> {
    let input = json!({"command": "sleep 302", "description": "Sleep", "run_in_background": true});
    let env = TestEnv::claude(tool_then_text("Bash", input)).await?;
    let recording = env.run(full(env.request("Sleep."))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("run_in_background"), "{}", result.output.as_str());
    assert_eq!(recording.result.final_text, "Done.");
    // The model is not offered the option either.
    assert!(!recording.requests[0].body.to_string().contains("\"run_in_background\""));
    Ok(())
}

#[tokio::test]
async fn a_process_that_a_command_leaves_behind_does_not_outlive_the_run() -> Result<()> {
    let env = TestEnv::claude(bash_then_text("setsid sleep 301 >/dev/null 2>&1 & echo left")).await?;
    let recording = env.run(full(env.request("Leave something."))).await?;
    assert_eq!(recording.only_tool()?.1.output, "left");
    assert!(!recording.result.is_error);
    Ok(())
}
