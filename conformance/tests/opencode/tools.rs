//! The agent's own tools.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::Event;
use teamster::event::ToolKind;
use teamster::request::PermissionMode;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::Scenario;

use crate::{bash, bash_then_text, full, mode, reply, tool_then_text, usage_of};

#[tokio::test]
async fn a_shell_command_is_reported_with_its_output() -> Result<()> {
    let env = TestEnv::opencode(
        Scenario::new()
            .reply(reply().text("Let me see. ").tool("bash", bash("echo sum-$((40 + 2))")))
            .reply(reply().text("Done.")),
    )
    .await?;
    let recording = env.run(full(env.request("Add."))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!((tool.tool_name.as_str(), &tool.kind), ("bash", &ToolKind::Execute));
    assert_eq!(tool.input.to_value()?["command"], "echo sum-$((40 + 2))");
    assert_eq!(result.output.trim_end(), "sum-42");
    assert_eq!(result.is_error, Some(false));
    assert_eq!(recording.requests[1].tool_results()[0].output.trim_end(), "sum-42");
    assert_eq!(recording.result.text, "Let me see. \n\nDone.");
    assert_eq!(recording.result.final_text, "Done.");
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

#[tokio::test]
async fn a_command_that_fails_is_an_error_of_the_tool_not_of_the_run() -> Result<()> {
    let env = TestEnv::opencode(bash_then_text("echo out; echo boom >&2; exit 3")).await?;
    let recording = env.run(full(env.request("Fail."))).await?;
    let (_, result) = recording.only_tool()?;
    assert_eq!(result.is_error, Some(true));
    assert!(result.output.contains("out") && result.output.contains("boom"), "{}", result.output.as_str());
    assert!(!recording.result.is_error);
    assert!(recording.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_file_is_written_read_and_edited_on_disk() -> Result<()> {
    let env = TestEnv::opencode(
        Scenario::new()
            .reply(reply().tool("write", json!({"filePath": "note.txt", "content": "one\ntwo\n"})))
            .reply(reply().tool("read", json!({"filePath": "note.txt"})))
            .reply(reply().tool("edit", json!({"filePath": "note.txt", "oldString": "two", "newString": "2"})))
            .reply(reply().text("Edited.")),
    )
    .await?;
    let recording = env.run(mode(env.request("Edit."), PermissionMode::Edit)).await?;
    assert_eq!(fs::read_to_string(env.project().join("note.txt"))?, "one\n2\n");
    let kinds: Vec<_> = recording.tools().iter().map(|(tool, _)| tool.kind.clone()).collect();
    assert_eq!(kinds, [ToolKind::Edit, ToolKind::Read, ToolKind::Edit]);
    assert!(recording.tools().iter().all(|(_, result)| result.is_error == Some(false)));
    Ok(())
}

#[tokio::test]
async fn parallel_calls_each_get_their_own_result() -> Result<()> {
    let env = TestEnv::opencode(
        Scenario::new()
            .reply(
                reply()
                    .tool("bash", bash("sleep 0.3; echo first"))
                    .tool("bash", bash("echo second"))
                    .tool("bash", bash("echo third")),
            )
            .reply(reply().text("Three.")),
    )
    .await?;
    let recording = env.run(full(env.request("Run three."))).await?;
    let mut outputs: Vec<_> = recording
        .tools()
        .iter()
        .map(|(tool, result)| {
            (tool.input.to_value().unwrap()["command"].to_string(), result.output.trim_end().to_owned())
        })
        .collect();
    outputs.sort();
    let expected = [("echo second", "second"), ("echo third", "third"), ("sleep 0.3; echo first", "first")];
    assert_eq!(outputs, expected.map(|(command, output)| (json!(command).to_string(), output.to_owned())));
    assert_eq!(recording.requests[1].tool_results().len(), 3);
    Ok(())
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_of_the_call() -> Result<()> {
    let env = TestEnv::opencode(tool_then_text("teleport", json!({"to": "Mars"}))).await?;
    let recording = env.run(full(env.request("Go."))).await?;
    let (tool, result) = recording.only_tool()?;
    assert_eq!(tool.tool_name, "teleport");
    assert_eq!(result.is_error, Some(true));
    assert!(recording.result.permission_denials.is_empty());
    assert!(!recording.result.is_error);
    Ok(())
}

#[tokio::test]
async fn input_that_is_no_json_still_gives_one_call_with_one_result() -> Result<()> {
    let env = TestEnv::opencode(
        Scenario::new()
            .reply(reply().tool_raw("bash", ["{\"command\": \"echo", " hi"]))
            .reply(reply().text("Never mind.")),
    )
    .await?;
    let recording = env.run(full(env.request("Break."))).await?;
    assert_eq!(recording.only_tool()?.1.is_error, Some(true));
    assert_eq!(recording.result.final_text, "Never mind.");
    Ok(())
}

#[tokio::test]
async fn the_to_do_list_is_emitted_as_a_plan() -> Result<()> {
    let todos = json!({"todos": [{"content": "One", "status": "in_progress", "priority": "high"}]});
    let env = TestEnv::opencode(tool_then_text("todowrite", todos)).await?;
    let recording = env.run(env.request("Plan.")).await?;
    let plan = recording.events.iter().find_map(|event| match event {
        Event::Plan(plan) => Some(plan.entries.clone()),
        _ => None,
    });
    assert_eq!(plan.map(|entries| entries.len()), Some(1));
    Ok(())
}
