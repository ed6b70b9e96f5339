//! The agent's own tools.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::Event;
use teamster::event::ToolKind;
use teamster::request::PermissionMode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{add_file, full, mode, shell, shell_then_text, tool_then_text, usage_of};

#[tokio::test]
async fn a_shell_command_is_reported_with_its_output() -> Result<()> {
    let env = TestEnv::codex(
        Scenario::new()
            .reply(Reply::new().text("Let me see. ").tool("exec_command", shell("echo sum-$((40 + 2))")))
            .reply(Reply::new().text("Done.")),
    )
    .await?;
    let recording = env.run(full(env.request("Add."))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.tool_name.as_str(), &tool.kind), ("command_execution", &ToolKind::Execute));
    assert!(tool.input.to_value()?["command"].as_str().context("no command")?.contains("echo sum-$((40 + 2))"));
    assert_eq!(result.output, "sum-42\n");
    assert_eq!(result.is_error, Some(false));
    assert!(recording.requests[1].tool_results()[0].output.contains("sum-42"));
    assert_eq!(recording.result.text, "Let me see. \n\nDone.");
    assert_eq!(recording.result.final_text, "Done.");
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

#[tokio::test]
async fn a_command_that_fails_is_an_error_of_the_tool_not_of_the_run() -> Result<()> {
    for (command, output) in [("echo out; echo boom >&2; exit 3", "boom\nout"), ("exit 3", "exit code 3")] {
        let env = TestEnv::codex(shell_then_text(command)).await?;
        let recording = env.run(full(env.request("Fail."))).await?;
        let (_, result) = recording.only_tool()?;
        assert_eq!(result.is_error, Some(true));
        // The order of the two streams is random.
        let mut lines: Vec<&str> = result.output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.join("\n"), output);
        assert!(!recording.result.is_error);
    }
    Ok(())
}

#[tokio::test]
async fn a_file_is_added_and_changed_on_disk() -> Result<()> {
    let change = "*** Begin Patch\n*** Update File: note.txt\n@@\n-one\n+two\n*** End Patch\n";
    let env = TestEnv::codex(
        Scenario::new()
            .reply(Reply::new().tool("apply_patch", add_file("note.txt", "one")))
            .reply(Reply::new().tool("apply_patch", change))
            .reply(Reply::new().text("Edited.")),
    )
    .await?;
    let recording = env.run(mode(env.request("Edit."), PermissionMode::Edit)).await?;
    assert_eq!(fs::read_to_string(env.project().join("note.txt"))?, "two\n");
    let path = env.project().canonicalize()?.join("note.txt");
    let kinds: Vec<_> =
        recording.tools().iter().map(|(tool, _)| (tool.kind.clone(), tool.input.to_value().unwrap())).collect();
    let input = |kind: &str| json!({"changes": [{"path": path, "kind": kind}]});
    assert_eq!(kinds, [(ToolKind::Edit, input("add")), (ToolKind::Edit, input("update"))]);
    assert!(recording.tools().iter().all(|(_, result)| result.is_error == Some(false)));
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn parallel_calls_each_get_their_own_result() -> Result<()> {
    let env = TestEnv::codex(
        Scenario::new()
            .reply(
                Reply::new()
                    .tool("exec_command", shell("sleep 0.3; echo first"))
                    .tool("exec_command", shell("echo second"))
                    .tool("exec_command", shell("echo third")),
            )
            .reply(Reply::new().text("Three.")),
    )
    .await?;
    let recording = env.run(full(env.request("Run three."))).await?;
    assert_eq!(recording.tools().len(), 3);
    for (tool, result) in recording.tools() {
        let input = tool.input.to_value()?;
        let command = input["command"].as_str().unwrap_or_default();
        assert!(command.contains(&format!("echo {}", result.output.trim())), "{command}: {}", result.output.as_str());
    }
    assert_eq!(recording.requests[1].tool_results().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_call_is_reported_before_its_tool_has_run() -> Result<()> {
    let env = TestEnv::codex(shell_then_text("until test -e go; do sleep 0.05; done; echo went")).await?;
    let mut run = env.start(full(env.request("Wait.")))?;
    run.until("the call", |event| matches!(event, Event::ToolUse(_))).await?;
    fs::write(env.project().join("go"), "")?;
    let recording = run.finish().await?;
    assert_eq!(recording.only_tool()?.1.output, "went\n");
    Ok(())
}

#[tokio::test]
async fn a_tool_that_does_not_exist_does_not_end_the_run() -> Result<()> {
    let env = TestEnv::codex(tool_then_text("teleport", json!({"to": "Mars"}))).await?;
    let recording = env.run(env.request("Go.")).await?;
    assert!(recording.tools().is_empty(), "the agent does not report it");
    assert!(recording.requests[1].tool_results()[0].output.contains("unsupported call"));
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}

#[tokio::test]
async fn a_web_search_is_reported_once_with_its_query() -> Result<()> {
    let env = TestEnv::codex(Reply::new().server_tool("web_search", json!({"query": "horses"})).text("Found.")).await?;
    let recording = env.run(env.request("Search.")).await?;
    let (tool, _) = recording.only_tool()?;
    assert_eq!((tool.tool_name.as_str(), &tool.kind), ("web_search", &ToolKind::Search));
    assert_eq!(tool.input.to_value()?["query"], "horses");
    assert_eq!(recording.result.text, "Found.");
    Ok(())
}

#[tokio::test]
async fn a_command_left_in_the_background_ends_with_the_run() -> Result<()> {
    let env = TestEnv::codex(shell_then_text("nohup setsid sleep 27182 >/dev/null 2>&1 & echo left")).await?;
    let recording = env.run(full(env.request("Leave it."))).await?;
    // `finish` checks that no process outlives the run.
    assert_eq!(recording.only_tool()?.1.output, "left\n");
    assert_eq!(recording.result.final_text, "Done.");
    Ok(())
}
