//! The real CLIs, as a person sees them on the gateway's web page in a real browser.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use teamster_conformance::{Agent, PagePerson, TestGateway, agent_tests, print};
use teamster_testkit::provider::Scenario;

use crate::gateway_turns::creates;

agent_tests! {
    a_newcomer_starts_a_gateway_and_gets_an_answer_on_the_first_page: all,
    a_person_allows_a_command_on_the_page_and_sees_the_answer_once_after_a_restart: all,
}

/// Prints how long a newcomer waits: docs/gateway.md has these times.
async fn a_newcomer_starts_a_gateway_and_gets_an_answer_on_the_first_page(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new().branch("hello", agent.reply().text("Hello from the agent."));
    let env = agent.test_env(scenario).await?;
    let start = Instant::now();
    let gateway = TestGateway::start(agent, &env, "").await?;
    let ready = start.elapsed();
    let Some(mut person) = PagePerson::open(gateway.url()).await? else { return gateway.stop().await };
    person.start().await?;
    let shown = start.elapsed();
    person.write("Hi! SCN:hello").await?;
    person.sees_answer("Hello from the agent.").await?;
    let answered = start.elapsed();
    print(&format!("{}: ready after {ready:.1?}, page after {shown:.1?}, answer after {answered:.1?}", agent.name));
    gateway.stop().await
}

async fn a_person_allows_a_command_on_the_page_and_sees_the_answer_once_after_a_restart(agent: &Agent) -> Result<()> {
    let scenario = Scenario::new().branch("good", creates(agent, "good")).branch("more", creates(agent, "more"));
    let env = agent.test_env(scenario).await?;
    let mut gateway = TestGateway::start(agent, &env, "").await?;
    let conversation = gateway.create_conversation(&json!({})).await?;
    let Some(mut person) = PagePerson::open(gateway.url()).await? else { return gateway.stop().await };
    person.enter(&conversation).await?;
    person.write("Make the first one. SCN:good").await?;
    person.press("Allow once").await?;
    person.sees_answer("About good.").await?;
    ensure!(env.project().join("good").exists(), "the command has run");

    person.write("Make the second one. SCN:more").await?;
    person.press("Deny").await?;
    person.sees_answer("About more.").await?;
    ensure!(!env.project().join("more").exists(), "the command has not run");
    person.reload().await?;
    person.sees_answer("About more.").await?;
    let shown = person.transcript().await?;
    for text in ["Make the first one.", "About good.", "Make the second one.", "About more."] {
        ensure!(shown.matches(text).count() == 1, "{text:?} is not shown once: {shown}");
    }
    drop(person);

    gateway.kill().await?;
    gateway.restart().await?;
    let Some(mut person) = PagePerson::open(gateway.url()).await? else { return gateway.stop().await };
    person.enter(&conversation).await?;
    person.sees_answer("About more.").await?;
    gateway.stop().await
}
