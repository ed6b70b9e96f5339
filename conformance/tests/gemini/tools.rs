//! The agent's own tools.

use std::fs;

use anyhow::Result;
use serde_json::json;
use teamster::event::ToolKind;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario};

use crate::{full, shell, shell_then_text, tool_then_text};

#[tokio::test]
async fn a_command_is_reported_with_its_output() -> Result<()> {
    let env = TestEnv::gemini(shell_then_text("echo a; printf 'b 👋'")).await?;
    let run = env.run(full(&env, "Go.")).await?;
    let (tool, result) = run.only_tool()?;
    assert_eq!((tool.tool_name.as_str(), &tool.kind), ("run_shell_command", &ToolKind::Execute));
    assert_eq!(tool.input, shell("echo a; printf 'b 👋'"));
    assert_eq!((result.output.as_str(), result.is_error), ("a\nb 👋", None));
    assert_eq!(run.result.text, "Done.");
    assert!(run.requests[1].tool_results()[0].output.contains("b 👋"));
    Ok(())
}

#[tokio::test]
async fn the_output_of_a_command_that_fails_is_unchanged() -> Result<()> {
    let env = TestEnv::gemini(shell_then_text("echo oops >&2; exit 3")).await?;
    let run = env.run(full(&env, "Go.")).await?;
    let (_, result) = run.only_tool()?;
    assert_eq!((result.output.as_str(), result.is_error), ("oops", None), "the CLI does not report the exit code");
    Ok(())
}

#[tokio::test]
async fn a_tool_that_fails_is_an_error_result() -> Result<()> {
    let env = TestEnv::gemini(tool_then_text("read_file", json!({"file_path": "missing.txt"}))).await?;
    let run = env.run(full(&env, "Go.")).await?;
    let (tool, result) = run.only_tool()?;
    assert_eq!((&tool.kind, result.is_error), (&ToolKind::Read, Some(true)));
    assert!(result.output.contains("not found"), "{}", result.output.as_str());
    assert!(run.result.permission_denials.is_empty());
    Ok(())
}

#[tokio::test]
async fn files_are_written_and_changed() -> Result<()> {
    let scenario = Scenario::new()
        .reply(Reply::new().tool("write_file", json!({"file_path": "a.txt", "content": "one two"})))
        .reply(Reply::new().tool(
            "replace",
            json!({"file_path": "a.txt", "old_string": "two", "new_string": "three", "instruction": "x"}),
        ))
        .reply(Reply::new().text("Done."));
    let env = TestEnv::gemini(scenario).await?;
    let run = env.run(full(&env, "Go.")).await?;
    assert!(run.tools().iter().all(|(tool, result)| tool.kind == ToolKind::Edit && result.is_error == Some(false)));
    assert_eq!(fs::read_to_string(env.project().join("a.txt"))?, "one three");
    Ok(())
}

#[tokio::test]
async fn calls_of_one_turn_each_get_their_result() -> Result<()> {
    let calls = Reply::new()
        .tool("run_shell_command", shell("sleep 0.3; echo first"))
        .tool("run_shell_command", shell("echo second"));
    let env = TestEnv::gemini(Scenario::new().reply(calls).reply(Reply::new().text("Done."))).await?;
    let run = env.run(full(&env, "Go.")).await?;
    let outputs: Vec<_> = run.tools().iter().map(|(_, result)| result.output.clone()).collect();
    assert_eq!(outputs, ["first", "second"]);
    Ok(())
}

#[tokio::test]
async fn a_command_in_the_background_does_not_outlive_its_run() -> Result<()> {
    let input = json!({"command": "sleep 31416", "description": "x", "is_background": true});
    let env = TestEnv::gemini(tool_then_text("run_shell_command", input)).await?;
    // `finish` checks that no process outlives the run.
    let run = env.run(full(&env, "Go.")).await?;
    assert_eq!(run.result.text, "Done.");
    Ok(())
}

#[tokio::test]
async fn a_to_do_list_is_a_plan() -> Result<()> {
    let todos = json!({"todos": [{"description": "one", "status": "in_progress"}]});
    let env = TestEnv::gemini(tool_then_text("write_todos", todos)).await?;
    let run = env.run(full(&env, "Go.")).await?;
    let plans = run.events.iter().filter_map(|event| match event {
        teamster::Event::Plan(plan) => Some(plan.entries[0].content.as_str()),
        _ => None,
    });
    assert_eq!(plans.collect::<Vec<_>>(), ["one"]);
    Ok(())
}
