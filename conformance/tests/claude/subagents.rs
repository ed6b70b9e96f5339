//! Subagents.

use anyhow::Result;
use serde_json::json;
use teamster::Event;
use teamster::event::ToolKind;
use teamster_conformance::TestEnv;
use teamster_testkit::provider::{Reply, Scenario, Script, Usage, marker};

use crate::{bash, full, usage_of};

fn delegating() -> Scenario {
    let task = format!("Look around. {}", marker("worker"));
    let input = json!({"description": "Look around", "prompt": task, "subagent_type": "general-purpose"});
    Scenario::new()
        .reply(Reply::new().text("I delegate. ").tool("Agent", input))
        .reply(Reply::new().text("The worker is done."))
        .branch(
            "worker",
            Script::new()
                .reply(Reply::new().text("Working. ").tool("Bash", bash("echo seen")).usage(Usage {
                    input: 7,
                    cache_read: 70,
                    cache_write: 700,
                    output: 7000,
                }))
                .reply(Reply::new().text("I saw it.")),
        )
}

#[tokio::test]
async fn a_subagent_is_reported_under_its_call_and_kept_out_of_the_answer() -> Result<()> {
    let env = TestEnv::claude(delegating()).await?;
    let recording = env.run(full(env.request("Have a look."))).await?;

    let tools = recording.tools();
    let (agent, _) = tools[0];
    assert_eq!((agent.tool_name.as_str(), &agent.kind), ("Agent", &ToolKind::Agent));
    assert_eq!(agent.parent_tool_id, None);
    let (bash, bash_result) = tools[1];
    assert_eq!(bash.parent_tool_id.as_ref(), Some(&agent.tool_id));
    assert_eq!(bash_result.parent_tool_id.as_ref(), Some(&agent.tool_id));
    assert_eq!(bash_result.output, "seen");
    let subagent_text: String = recording
        .texts()
        .iter()
        .filter(|delta| delta.parent_tool_id.as_ref() == Some(&agent.tool_id))
        .map(|delta| delta.text.as_str())
        .collect();
    assert_eq!(subagent_text, "Working. I saw it.");

    assert_eq!(recording.result.text, "I delegate. \n\nThe worker is done.");
    assert_eq!(recording.result.final_text, "The worker is done.");
    Ok(())
}

#[tokio::test]
async fn the_usage_of_a_subagent_is_included() -> Result<()> {
    let env = TestEnv::claude(delegating()).await?;
    let recording = env.run(full(env.request("Have a look."))).await?;
    assert_eq!(env.provider().usage_where(|request| request.branch == "worker").output, 7040);
    assert_eq!(usage_of(&recording.result), Some(env.provider().usage_total()));
    Ok(())
}

#[tokio::test]
async fn the_result_of_a_subagents_call_follows_all_of_its_events() -> Result<()> {
    let env = TestEnv::claude(delegating()).await?;
    let recording = env.run(full(env.request("Have a look."))).await?;
    let agent = recording.tools()[0].0.tool_id.clone();
    let ended = recording.events.iter().position(|event| match event {
        Event::ToolResult(result) => result.tool_id == agent,
        _ => false,
    });
    let last_work = recording.events.iter().rposition(|event| match event {
        Event::ToolResult(result) => result.parent_tool_id.as_ref() == Some(&agent),
        Event::Text(delta) => delta.parent_tool_id.as_ref() == Some(&agent),
        _ => false,
    });
    assert!(last_work < ended, "{last_work:?} {ended:?}");
    Ok(())
}
