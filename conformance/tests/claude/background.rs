//! Background tasks of a session, and the turns that the agent starts when they end.

use std::fs::File;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::event::WarningCode;
use teamster::request::PermissionMode;
use teamster::{Event, Run};
use teamster_conformance::{TIMEOUT, TestEnv, TestSession};
use teamster_testkit::provider::{ModelRequest, Reply};

/// Returns a command that ends when this file exists.
fn wait_for_file(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done; echo {file} is there")
}

fn model(request: &ModelRequest) -> Reply {
    let results = request.tool_results();
    if let Some(result) = results.last() {
        return Reply::new().text(if result.output.contains("more is there") { "And more." } else { "Started." });
    }
    let prompt = request.prompts().last().copied().unwrap_or_default();
    let command = |file: &str, in_background: bool| json!({"command": wait_for_file(file), "description": format!("Wait for the {file}"), "run_in_background": in_background});
    match prompt.split_once(' ') {
        Some(("Start", file)) => Reply::new().tool("Bash", command(file, true)),
        _ if prompt.contains("task-notification") && prompt.contains("second") => Reply::new().text("Ended again."),
        _ if prompt.contains("task-notification") => {
            Reply::new().text("It ended. ").tool("Bash", command("more", false))
        }
        _ => Reply::new().text(format!("You sent {prompt}")),
    }
}

async fn agent_turn(session: &TestSession) -> Result<Run> {
    let run =
        tokio::time::timeout(TIMEOUT, session.handle().next_agent_turn()).await.context("no turn of the agent")?;
    run.context("the agent starts no turns")
}

async fn events(mut run: Run) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    while let Some(event) = tokio::time::timeout(TIMEOUT, run.next()).await.context("the turn does not end")? {
        events.push(event);
    }
    Ok(events)
}

fn text(events: &[Event]) -> &str {
    match events.last() {
        Some(Event::Done(done)) => &done.result.text,
        _ => "",
    }
}

#[tokio::test]
async fn a_background_task_that_ends_starts_an_agent_turn_and_a_prompt_meanwhile_gets_its_own() -> Result<()> {
    let env = TestEnv::claude(Reply::from_fn(model)).await?;
    let mut template = env.request("");
    template.permissions.mode = PermissionMode::Full;
    template.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
    let session = env.open_with(template, teamster::SessionOptions::with_background_tasks)?;
    assert_eq!(session.run_turn("Start first").await?.result.text, "Started.");
    File::create(env.project().join("first"))?;
    let mut agent_run = agent_turn(&session).await?;
    // Its turn waits for a file. Meanwhile, the caller sends a prompt.
    let mut events_so_far = Vec::new();
    while !events_so_far.iter().any(|event| matches!(event, Event::ToolUse(_))) {
        events_so_far.push(tokio::time::timeout(TIMEOUT, agent_run.next()).await?.context("no tool call")?);
    }
    let next = session.send("Next.")?;
    File::create(env.project().join("more"))?;
    events_so_far.extend(events(agent_run).await?);
    assert_eq!(text(&events_so_far), "It ended. \n\nAnd more.");
    let notice = events_so_far.iter().find_map(|event| match event {
        Event::Warning(warning) if warning.code == WarningCode::BackgroundTask => Some(warning),
        _ => None,
    });
    assert_eq!(json!(notice.context("no warning reports the task that ended")?.data)["status"], "completed");
    assert_eq!(next.finish().await?.result.text, "You sent Next.");

    // Both at once: each has its turn, in either order.
    assert_eq!(session.run_turn("Start second").await?.result.text, "Started.");
    File::create(env.project().join("second"))?;
    let last = session.send("Last.")?;
    let (agent_events, last) = tokio::join!(async { events(agent_turn(&session).await?).await }, last.finish());
    assert_eq!((text(&agent_events?), last?.result.text.as_str()), ("Ended again.", "You sent Last."));
    let requests = env.provider().requests();
    let prompts = requests.last().context("no request")?.prompts().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut once = prompts.clone();
    once.dedup();
    assert_eq!(prompts, once, "a prompt reached the model twice");
    session.close().await
}
