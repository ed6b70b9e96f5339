//! Measures the time from a prompt to the first text of the answer, on the real CLIs with a provider that answers at once:
//! on a live process, with a process for each turn, and with the CLI's one-shot form. The forms alternate turn by turn, so
//! that other load on the machine slows all of them down.
//!
//! `cargo xtask latency [--turns N] [AGENT...]` prints a table in Markdown.

#![expect(clippy::print_stdout, reason = "it is read by a person")]

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use teamster::request::AgentInterface;
use teamster::{Event, Session};
use teamster_conformance::{AGENTS, Agent, TIMEOUT};
use tokio::time::{Instant, timeout};

/// The default number of measured turns.
const TURNS: usize = 11;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut turns = TURNS;
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--turns" {
            turns = arguments.next().context("--turns needs a number")?.parse()?;
        } else {
            names.push(argument);
        }
    }
    ensure!(turns > 0, "--turns must be above zero");
    for name in &names {
        ensure!(AGENTS.iter().any(|agent| agent.name == name), "{name} is no agent");
    }
    println!("Median (and slowest) of {turns} turns in milliseconds, from `send` to the first text event.\n");
    println!(
        "| agent | warm process | a process each turn | one-shot form | warm is faster than a process each turn |"
    );
    println!("|---|---|---|---|---|");
    for agent in AGENTS.iter().filter(|agent| names.is_empty() || names.iter().any(|name| name == agent.name)) {
        measure(agent, turns).await.with_context(|| agent.name.to_owned())?;
    }
    Ok(())
}

async fn measure(agent: &Agent, turns: usize) -> Result<()> {
    let env = agent.test_env(agent.reply().text("Hello.")).await?;
    let mut sessions = Vec::new();
    for mode in [AgentInterface::Auto, AgentInterface::Spawn, AgentInterface::Exec] {
        let mut template = agent.request(&env, "");
        template.interface = mode;
        let session = env.open(template)?;
        // In the first turn, the process is still starting.
        first_text(session.handle()).await?;
        sessions.push((session, Vec::with_capacity(turns)));
    }
    for _ in 0..turns {
        for (session, times) in &mut sessions {
            times.push(first_text(session.handle()).await?);
        }
    }
    let mut medians = Vec::new();
    let mut cells = Vec::new();
    for (session, mut times) in sessions {
        session.close().await?;
        times.sort_unstable();
        let median = times.get(times.len() / 2).context("no turn was measured")?;
        let slowest = times.last().context("no turn was measured")?;
        cells.push(format!("{} ({})", median.as_millis(), slowest.as_millis()));
        medians.push(median.as_secs_f64());
    }
    let [warm, spawned, ..] = medians.as_slice() else { return Ok(()) };
    println!("| {} | {} | {:.0} times |", agent.title, cells.join(" | "), spawned / warm);
    Ok(())
}

/// Runs a turn, and returns the time until its first text.
async fn first_text(session: &Session) -> Result<Duration> {
    let began = Instant::now();
    let mut run = session.send("Hi.")?;
    let mut first = None;
    while let Some(event) = timeout(TIMEOUT, run.next()).await? {
        match event {
            Event::Text(_) => _ = first.get_or_insert_with(|| began.elapsed()),
            Event::Error(failure) => anyhow::bail!("{failure:?}"),
            _ => {}
        }
    }
    first.context("no text")
}
