//! `cargo xtask demo`: a real agent CLI at work under `teamster run`, with a scripted model on the loopback.
//!
//! The agent gets a home of its own and a clean environment, so it finds no account, no key and no settings; all of it
//! is gone afterwards. The model is `examples/demo_provider.rs`, a process that lives as long as our end of its stdin.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use self::agent::Agent;
use crate::command::{cargo, program, run as run_command};
use crate::install_clis;
use crate::tools::Tools;

mod agent;

const PROMPT: &str = "Which system is this, and what is in this folder?";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The agent to watch; all of them, one after the other, if none is named
    #[arg(long, value_enum)]
    agent: Option<Agent>,
    /// More arguments for `teamster run`, such as `--output ndjson`
    #[arg(last = true, value_name = "ARG")]
    teamster_args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    Tools::find().require_node()?;
    install_clis::run()?;
    run_command(cargo(&["build", "--quiet", "--package", "teamster-cli", "--bin", "teamster"]))?;
    run_command(cargo(&["build", "--quiet", "--package", "xtask", "--example", "demo_provider"]))?;
    // Ctrl-C reaches teamster too, which ends its agent; we stay to clean up.
    ctrlc::set_handler(|| {}).context("cannot watch for Ctrl-C")?;

    let agents = args.agent.map_or_else(|| Agent::value_variants().to_vec(), |agent| vec![agent]);
    for agent in agents {
        let status = show(agent, &args.teamster_args)?;
        if !status.success() {
            return Ok(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(agent: Agent, more: &[String]) -> Result<ExitStatus> {
    let place = Place::new()?;
    let provider = Provider::start(agent)?;
    println!("\nA real {} works under `teamster run`; its model is a script on {}.", agent.title(), provider.url);
    println!("It will say what it is about to do, run a command, read the result and answer, event by event:\n");

    let variables = agent.settle(&place, &provider.url)?;
    let mut teamster = program(built("teamster")?, &["run", "--agent", agent.name(), "--cli-path"]);
    teamster
        .arg(install_clis::bin_dir().join(agent.name()))
        .args(agent.options())
        .args(more)
        .arg(PROMPT)
        .env_clear()
        .envs(variables);
    place.apply(&mut teamster);
    let status = teamster.status().context("cannot start teamster")?;
    drop(provider);
    place.remove()?;
    Ok(status)
}

/// A home, a project and a folder for temporary files, gone when the demo is over.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Result<Self> {
        let root = tempfile::Builder::new().prefix("teamster-demo-").tempdir();
        let place = Self { root: root.context("cannot create a temporary directory")? };
        for folder in [place.home(), place.project(), place.temporary()] {
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        for (name, text) in [("README.md", "# A folder to look at\n"), ("main.rs", "fn main() {}\n")] {
            let file = place.project().join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(place)
    }

    /// Runs the command here, with nothing of our own environment but what a terminal needs.
    fn apply(&self, command: &mut Command) {
        for name in ["PATH", "LANG", "LC_ALL", "TERM", "COLORTERM", "NO_COLOR"] {
            if let Some(value) = env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", self.home()).env("TMPDIR", self.temporary()).current_dir(self.project());
    }

    fn remove(self) -> Result<()> {
        self.root.close().context("cannot remove the temporary directory")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    fn temporary(&self) -> PathBuf {
        self.root.path().join("tmp")
    }
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
            .process_group(0) // Ctrl-C is for the agent: its model must not vanish meanwhile
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

/// What cargo built beside us.
fn built(name: &str) -> Result<PathBuf> {
    let xtask = env::current_exe().context("cannot find xtask's own file")?;
    let path = xtask.parent().unwrap_or(Path::new(".")).join(name);
    ensure!(path.is_file(), "{} is not there: was it built into another target directory?", path.display());
    Ok(path)
}
