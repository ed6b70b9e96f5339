//! What goes on in the background of a session, and the turns that the agent begins when it has ended.

use std::fs::File;

use anyhow::{Context, Result};
use serde_json::json;
use teamster::event::WarningCode;
use teamster::request::PermissionMode;
use teamster::{Event, Run};
use teamster_conformance::{TIMEOUT, TestEnv, TestSession};
use teamster_testkit::provider::{ModelRequest, Reply};

/// A command that ends when there is this file.
fn until(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done; echo {file} is there")
}

fn model(request: &ModelRequest) -> Reply {
    let results = request.tool_results();
    if let Some(result) = results.last() {
        return Reply::new().text(if result.output.contains("more is there") { "And more." } else { "Started." });
    }
    let prompt = request.prompts().last().copied().unwrap_or_default();
    let command = |file: &str, behind: bool| json!({"command": until(file), "description": format!("Wait for the {file}"), "run_in_background": behind});
    match prompt.split_once(' ') {
        Some(("Begin", file)) => Reply::new().tool("Bash", command(file, true)),
        _ if prompt.contains("task-notification") && prompt.contains("second") => Reply::new().text("Over again."),
        _ if prompt.contains("task-notification") => {
            Reply::new().text("It is over. ").tool("Bash", command("more", false))
        }
        _ => Reply::new().text(format!("You said {prompt}")),
    }
}

async fn own(session: &TestSession) -> Result<Run> {
    let run = tokio::time::timeout(TIMEOUT, session.handle().next_agent_turn())
        .await
        .context("no turn of the agent's own")?;
    run.context("there are none")
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
    assert_eq!(session.run_turn("Begin first").await?.result.text, "Started.");
    File::create(env.project().join("first"))?;
    let mut mine = own(&session).await?;
    // While its own turn runs, which waits for a file, it is told something.
    let mut said = Vec::new();
    while !said.iter().any(|event| matches!(event, Event::ToolUse(_))) {
        said.push(tokio::time::timeout(TIMEOUT, mine.next()).await?.context("no call of a tool")?);
    }
    let next = session.send("Next.")?;
    File::create(env.project().join("more"))?;
    said.extend(events(mine).await?);
    assert_eq!(text(&said), "It is over. And more.");
    let notice = said.iter().find_map(|event| match event {
        Event::Warning(warning) if warning.code == WarningCode::BackgroundTask => Some(warning),
        _ => None,
    });
    assert_eq!(json!(notice.context("nothing tells what has ended")?.data)["status"], "completed");
    assert_eq!(next.finish().await?.result.text, "You said Next.");

    // Both at once: whichever the agent takes first, each has its turn.
    assert_eq!(session.run_turn("Begin second").await?.result.text, "Started.");
    File::create(env.project().join("second"))?;
    let last = session.send("Last.")?;
    let (mine, last) = tokio::join!(async { events(own(&session).await?).await }, last.finish());
    assert_eq!((text(&mine?), last?.result.text.as_str()), ("Over again.", "You said Last."));
    let requests = env.provider().requests();
    let prompts = requests.last().context("no request")?.prompts().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let mut once = prompts.clone();
    once.dedup();
    assert_eq!(prompts, once, "it was told something twice");
    session.close().await
}
