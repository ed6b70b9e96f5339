//! One definition of each permission mode on all four CLIs.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use teamster::request::PermissionMode;
use teamster_conformance::{Agent, agent_tests};
use teamster_testkit::provider::Scenario;

agent_tests! {
    read_only_changes_nothing: all,
    ask_changes_nothing_without_an_answer: all,
    edit_edits_the_project_and_only_codex_runs_commands_there: all,
    full_does_all_that_the_agent_itself_does_not_refuse: all,
}

/// The effects of a model's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effects {
    read: bool,
    written: bool,
    written_outside: bool,
    /// Of the commands `rm -f`, `mkdir` and `mv` in the project.
    ran: [bool; 3],
}

/// The definition: reading is always allowed, edits of files of the project from `edit` on, and all other calls in `full`.
fn defined(mode: PermissionMode) -> Effects {
    let (edits, all) = (matches!(mode, PermissionMode::Edit | PermissionMode::Full), mode == PermissionMode::Full);
    Effects { read: true, written: edits, written_outside: all, ran: [all; 3] }
}

/// The agents' differences from the definition (docs/agents.md). Codex does not ask before a command that its sandbox
/// permits: in `edit`, commands change files of the project too. It never runs `rm -f` without permission. The file tools
/// of Gemini CLI do not leave the project.
fn expected(agent: &Agent, mode: PermissionMode) -> Effects {
    let defined = defined(mode);
    match (agent.name, mode) {
        ("codex", PermissionMode::Edit | PermissionMode::Full) => Effects { ran: [false, true, true], ..defined },
        ("gemini", PermissionMode::Full) => Effects { written_outside: false, ..defined },
        _ => defined,
    }
}

fn read_call(agent: &Agent, path: &str) -> (&'static str, Value) {
    match agent.name {
        "claude" => ("Read", json!({ "file_path": path })),
        "gemini" => ("read_file", json!({ "file_path": path })),
        "opencode" => ("read", json!({ "filePath": path })),
        _ => agent.shell(&format!("cat {path}")),
    }
}

fn write_call(agent: &Agent, path: &str) -> (&'static str, Value) {
    match agent.name {
        "claude" => ("Write", json!({ "file_path": path, "content": "written" })),
        "gemini" => ("write_file", json!({ "file_path": path, "content": "written" })),
        "opencode" => ("write", json!({ "filePath": path, "content": "written" })),
        _ => ("apply_patch", json!(format!("*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n"))),
    }
}

/// Makes all calls in one run without a caller that answers, and returns their effects.
async fn effects(agent: &Agent, mode: PermissionMode) -> Result<Effects> {
    // Codex may write to temporary directories, and so to all directories beside the project.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let outside = elsewhere.path().join("outside");
    let calls = [
        read_call(agent, "there"),
        write_call(agent, "new"),
        write_call(agent, &outside.to_string_lossy()),
        agent.shell("rm -f old"),
        agent.shell("mkdir made"),
        agent.shell("mv from to"),
    ];
    let calls = calls.into_iter().map(|(tool, input)| agent.reply().tool(tool, input));
    let scenario = calls.fold(Scenario::new(), Scenario::reply).reply(agent.reply().text("Done."));
    let env = agent.test_env(scenario).await?;
    let project = env.project();
    for name in ["there", "old", "from"] {
        fs::write(project.join(name), "content of a file")?;
    }
    let mut request = agent.request(&env, "Go.");
    request.permissions.mode = mode;
    let recording = env.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{:?}", recording.result);
    let results: Vec<_> = recording.requests.iter().flat_map(|request| request.tool_results()).collect();
    Ok(Effects {
        read: results.iter().any(|result| result.output.contains("content of a file")),
        written: project.join("new").exists(),
        written_outside: outside.exists(),
        ran: [!project.join("old").exists(), project.join("made").exists(), project.join("to").exists()],
    })
}

async fn follows_the_definition(agent: &Agent, mode: PermissionMode) -> Result<()> {
    assert_eq!(effects(agent, mode).await?, expected(agent, mode));
    Ok(())
}

async fn read_only_changes_nothing(agent: &Agent) -> Result<()> {
    follows_the_definition(agent, PermissionMode::ReadOnly).await
}

async fn ask_changes_nothing_without_an_answer(agent: &Agent) -> Result<()> {
    follows_the_definition(agent, PermissionMode::Ask).await
}

async fn edit_edits_the_project_and_only_codex_runs_commands_there(agent: &Agent) -> Result<()> {
    follows_the_definition(agent, PermissionMode::Edit).await
}

async fn full_does_all_that_the_agent_itself_does_not_refuse(agent: &Agent) -> Result<()> {
    follows_the_definition(agent, PermissionMode::Full).await
}
