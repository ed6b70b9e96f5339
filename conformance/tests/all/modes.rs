//! One definition of each permission mode on all four CLIs. Each name is a promise.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};
use teamster::request::PermissionMode;
use teamster_conformance::{AGENTS, Agent};
use teamster_testkit::provider::Scenario;

/// What a model's calls came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    read: bool,
    written: bool,
    written_outside: bool,
    /// Of the commands `rm -f`, `mkdir` and `mv` in the project.
    ran: [bool; 3],
}

/// The definition: reading is always allowed, edits of files of the project from `edit` on, and everything else in `full`.
fn defined(mode: PermissionMode) -> Outcome {
    let (edits, all) = (matches!(mode, PermissionMode::Edit | PermissionMode::Full), mode == PermissionMode::Full);
    Outcome { read: true, written: edits, written_outside: all, ran: [all; 3] }
}

/// What the agents do otherwise (docs/agents.md). Codex asks for nothing that its sandbox lets through: in `edit`, commands
/// change files of the project, too. It never runs `rm -f` unasked. The file tools of Gemini CLI never leave the project.
fn expected(agent: &Agent, mode: PermissionMode) -> Outcome {
    let defined = defined(mode);
    match (agent.name, mode) {
        ("codex", PermissionMode::Edit | PermissionMode::Full) => Outcome { ran: [false, true, true], ..defined },
        ("gemini", PermissionMode::Full) => Outcome { written_outside: false, ..defined },
        _ => defined,
    }
}

fn reading(agent: &Agent, path: &str) -> (&'static str, Value) {
    match agent.name {
        "claude" => ("Read", json!({ "file_path": path })),
        "gemini" => ("read_file", json!({ "file_path": path })),
        "opencode" => ("read", json!({ "filePath": path })),
        _ => agent.shell(&format!("cat {path}")),
    }
}

fn writing(agent: &Agent, path: &str) -> (&'static str, Value) {
    match agent.name {
        "claude" => ("Write", json!({ "file_path": path, "content": "written" })),
        "gemini" => ("write_file", json!({ "file_path": path, "content": "written" })),
        "opencode" => ("write", json!({ "filePath": path, "content": "written" })),
        _ => ("apply_patch", json!(format!("*** Begin Patch\n*** Add File: {path}\n+written\n*** End Patch\n"))),
    }
}

/// Has an agent do all of it in one run, in which nobody can be asked.
async fn outcome(agent: &Agent, mode: PermissionMode) -> Result<Outcome> {
    // Codex may write to temporary directories, and so to anything beside the project.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let outside = elsewhere.path().join("outside");
    let calls = [
        reading(agent, "there"),
        writing(agent, "new"),
        writing(agent, &outside.to_string_lossy()),
        agent.shell("rm -f old"),
        agent.shell("mkdir made"),
        agent.shell("mv from to"),
    ];
    let called = calls.into_iter().map(|(tool, input)| agent.reply().tool(tool, input));
    let scenario = called.fold(Scenario::new(), Scenario::reply).reply(agent.reply().text("Done."));
    let lab = agent.lab(scenario).await?;
    let project = lab.project();
    for name in ["there", "old", "from"] {
        fs::write(project.join(name), "content of a file")?;
    }
    let mut request = agent.request(&lab, "Go.");
    request.permissions.mode = mode;
    let recording = lab.run(request).await?;
    assert_eq!(recording.result.final_text, "Done.", "{} {mode:?}: {:?}", agent.name, recording.result);
    let told: Vec<_> = recording.requests.iter().flat_map(|request| request.tool_results()).collect();
    Ok(Outcome {
        read: told.iter().any(|result| result.output.contains("content of a file")),
        written: project.join("new").exists(),
        written_outside: outside.exists(),
        ran: [!project.join("old").exists(), project.join("made").exists(), project.join("to").exists()],
    })
}

async fn every_agent_holds_to(mode: PermissionMode) -> Result<()> {
    let mut wrong = Vec::new();
    for agent in AGENTS {
        let (found, expected) = (outcome(agent, mode).await?, expected(agent, mode));
        if found != expected {
            wrong.push(format!("{}: {found:?}, not {expected:?}", agent.name));
        }
    }
    assert!(wrong.is_empty(), "{mode:?}:\n{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test]
async fn read_only_changes_nothing() -> Result<()> {
    every_agent_holds_to(PermissionMode::ReadOnly).await
}

#[tokio::test]
async fn ask_changes_nothing_without_an_answer() -> Result<()> {
    every_agent_holds_to(PermissionMode::Ask).await
}

#[tokio::test]
async fn edit_edits_the_project_and_only_codex_runs_commands_there() -> Result<()> {
    every_agent_holds_to(PermissionMode::Edit).await
}

#[tokio::test]
async fn full_does_all_that_the_agent_itself_does_not_refuse() -> Result<()> {
    every_agent_holds_to(PermissionMode::Full).await
}
