//! The screens of the command with the real CLIs, against a provider that plays a scenario.
//!
//! The command is the one that was built together with these tests (`cargo nextest run --workspace`).

#![expect(clippy::indexing_slicing, reason = "the lints take helpers of tests for library code")]

mod screen;

use anyhow::Result;
use serde_json::{Value, json};
use teamster_conformance::{Agent, agent_tests};
use teamster_testkit::provider::Scenario;

use screen::{Script, play};

agent_tests! {
    a_run_shows_a_command_and_its_result: all,
    a_chat_asks_before_a_command: all,
    a_command_that_fails_is_shown_as_failed: all,
    a_tool_that_fails_is_shown_as_failed: [gemini],
    an_edit_is_shown_as_a_diff: [claude],
}

/// A model that calls the shell tool, and then answers.
fn shell_then_text(agent: &Agent, command: &str) -> Scenario {
    let (tool, input) = agent.shell(command);
    call_then_text(agent, tool, input)
}

/// A model that calls a tool, and then answers.
fn call_then_text(agent: &Agent, tool: &str, input: Value) -> Scenario {
    let answer = "**Done.** The file is `made`.";
    Scenario::new().reply(agent.reply().tool(tool, input)).reply(agent.reply().text(answer))
}

async fn a_run_shows_a_command_and_its_result(agent: &Agent) -> Result<()> {
    let env = agent.test_env(shell_then_text(agent, "touch made && ls && echo one && echo two")).await?;
    let script = Script { args: &["run", "--permission", "full", "Make a file"], keys: &[], code: 0 };
    insta::assert_snapshot!(format!("run_{}", agent.name), play(agent, &env, script).await?);
    Ok(())
}

async fn a_chat_asks_before_a_command(agent: &Agent) -> Result<()> {
    let (tool, mut input) = agent.shell("touch made");
    if agent.name == "codex" {
        // It runs other commands in its sandbox, without a request.
        input["sandbox_permissions"] = "require_escalated".into();
        input["justification"] = "Outside of the sandbox?".into();
    }
    let env = agent.test_env(call_then_text(agent, tool, input)).await?;
    // The closing line of the turn ends in its duration.
    let keys = &[("Ctrl-D quits", "Make a file\r"), ("allow? ", "y\r"), (" · Ns", "\u{4}")];
    let script = Script { args: &["chat", "--permission", "ask"], keys, code: 0 };
    let screen = play(agent, &env, script).await?;
    assert!(env.home().join("app/made").exists(), "the command ran:\n{screen}");
    insta::assert_snapshot!(format!("chat_{}", agent.name), screen);
    Ok(())
}

/// Gemini CLI does not report whether a command failed, so its mark is neutral.
async fn a_command_that_fails_is_shown_as_failed(agent: &Agent) -> Result<()> {
    let env = agent.test_env(shell_then_text(agent, "echo it breaks >&2; exit 3")).await?;
    let script = Script { args: &["run", "--permission", "full", "Break it"], keys: &[], code: 0 };
    let screen = play(agent, &env, script).await?;
    insta::assert_snapshot!(format!("failed_command_{}", agent.name), screen);
    Ok(())
}

async fn a_tool_that_fails_is_shown_as_failed(agent: &Agent) -> Result<()> {
    let env = agent.test_env(call_then_text(agent, "read_file", json!({"file_path": "none.js"}))).await?;
    let script = Script { args: &["run", "Read it"], keys: &[], code: 0 };
    insta::assert_snapshot!(format!("failed_tool_{}", agent.name), play(agent, &env, script).await?);
    Ok(())
}

async fn an_edit_is_shown_as_a_diff(agent: &Agent) -> Result<()> {
    let edit = json!({"file_path": "add.js", "old_string": "a - b", "new_string": "a + b"});
    let scenario = Scenario::new()
        .reply(agent.reply().tool("Read", json!({"file_path": "add.js"})))
        .reply(agent.reply().tool("Edit", edit))
        .reply(agent.reply().text("Done."));
    let env = agent.test_env(scenario).await?;
    let file = env.home().join("app/add.js");
    std::fs::create_dir_all(env.home().join("app"))?;
    std::fs::write(&file, "export function add(a, b) {\n  return a - b;\n}\n")?;
    let script = Script { args: &["run", "--permission", "edit", "Correct add"], keys: &[], code: 0 };
    let screen = play(agent, &env, script).await?;
    assert!(std::fs::read_to_string(&file)?.contains("a + b"), "{screen}");
    insta::assert_snapshot!(format!("edit_{}", agent.name), screen);
    Ok(())
}
