//! `cargo xtask demo`: runs a real agent CLI under `teamster run`, with a scripted model on the loopback. The part of the
//! gateway is `conformance/examples/gateway_demo.rs`.
//!
//! The agent has its own home and a clean environment, so it finds no account, no key and no settings. They are removed at the
//! end. The model is `examples/demo_provider.rs`, a process that exits at the end of its standard input.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use self::agent::Agent;
use self::directory::DemoDirectory;
use crate::command::{built, cargo, program, run as run_command};
use crate::install_clis;
use crate::tools::Tools;

mod agent;
mod directory;

const PROMPT: &str = "Which system is this, and what is in this folder?";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The agent to watch; all of them, one after the other, if none is named
    #[arg(long, value_enum)]
    agent: Option<Agent>,
    /// Watch only the gateway: a conversation over HTTP with two CLIs, which survives a kill
    #[arg(long, conflicts_with = "agent")]
    gateway: bool,
    /// More arguments for `teamster run`, such as `--output ndjson`
    #[arg(last = true, value_name = "ARG")]
    teamster_args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    Tools::find().require_node()?;
    install_clis::run()?;
    run_command(build(args.agent.is_none()))?;
    // Ctrl-C reaches teamster too, which ends its agent. This process continues and removes the directory.
    ctrlc::set_handler(|| {}).context("cannot watch for Ctrl-C")?;

    let agents = match args.agent {
        Some(agent) => vec![agent],
        None if args.gateway => Vec::new(),
        None => Agent::value_variants().to_vec(),
    };
    for agent in agents {
        let status = show(agent, &args.teamster_args)?;
        if !status.success() {
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    if args.agent.is_none() {
        println!("\nOne conversation over the HTTP API of a gateway, with two real CLIs; their models are scripts:\n");
        run_command(program(built("examples/gateway_demo")?, &[]))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the command that builds all programs of the demo at once. Cargo shows its progress.
fn build(with_gateway: bool) -> Command {
    println!("Compiling. The first time takes minutes.");
    let mut command = cargo(&["build", "--package", "teamster-cli", "--bin", "teamster"]);
    command.args(["--package", "xtask", "--example", "demo_provider"]);
    if with_gateway {
        command.args(["--package", "teamster-conformance", "--example", "gateway_demo"]);
    }
    command
}

fn show(agent: Agent, more: &[String]) -> Result<ExitStatus> {
    let directory = DemoDirectory::new()?;
    let provider = Provider::start(agent)?;
    println!("\nA real {} works under `teamster run`; its model is a script on {}.", agent.title(), provider.url);
    println!("It announces a command, runs it, reads the result and answers, event by event:\n");

    let variables = agent.configure(&directory, &provider.url)?;
    let mut teamster = program(built("teamster")?, &["run", "--agent", agent.name(), "--cli-path"]);
    teamster
        .arg(install_clis::bin_dir().join(agent.name()))
        .args(agent.options())
        .args(more)
        .arg(PROMPT)
        .env_clear()
        .envs(variables);
    directory.apply(&mut teamster);
    let status = teamster.status().context("cannot start teamster")?;
    drop(provider);
    directory.remove()?;
    Ok(status)
}

struct Provider {
    child: Child,
    url: String,
}

impl Provider {
    fn start(agent: Agent) -> Result<Self> {
        let mut child = Command::new(built("examples/demo_provider")?)
            .arg(agent.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0) // Ctrl-C must not reach the model while the agent ends
            .spawn()
            .context("cannot start the scripted model")?;
        let stdout = child.stdout.take().context("the scripted model has no standard output")?;
        let mut provider = Self { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut provider.url).context("cannot read the scripted model's address")?;
        provider.url.truncate(provider.url.trim_end().len());
        ensure!(provider.url.starts_with("http://127.0.0.1:"), "the scripted model did not start");
        Ok(provider)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        drop(self.child.stdin.take()); // it ends at the end of its input
        if let Err(error) = self.child.wait() {
            eprintln!("cannot wait for the scripted model: {error}");
        }
    }
}
