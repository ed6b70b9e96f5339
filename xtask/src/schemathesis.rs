//! `cargo xtask schemathesis`: requests that Schemathesis generates from the description of the gateway's API, against a
//! gateway with a fake agent.
//!
//! What is configured, and each exception with its reason, is in `conformance/python/schemathesis.toml`.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::command::{built, cargo, program, run as run_command};
use crate::python::{SCHEMATHESIS, environment, sources};

/// The token of the operator.
const TOKEN: &str = "made-up-token-of-the-operator";

/// What the agent does with each message.
const SCENARIO: &str =
    "[[turns]]\nsteps = [{ run = { command = \"ls\", output = \"a\\n\" } }, { say = \"You said: {prompt}\" }]\n";

/// Generated requests are sent as fast as possible. A test must not reach the limits of a caller.
const CONFIGURATION: &str = "[serve]\nlisten = \"127.0.0.1:0\"\nagent = \"claude\"\ncli_path = \"./agent\"\n\
                             directory = \"./work\"\ndata_dir = \"./data\"\n\
                             [serve.limits]\nrequests_per_second = 100000\nconcurrent_requests = 1000\n\
                             [serve.retries]\nmax = 0\n";

/// Check the gateway's API with requests that Schemathesis generates from its description
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// More arguments for `schemathesis run`, such as `--include-operation-id sendMessage`
    #[arg(last = true, value_name = "ARG")]
    schemathesis_args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let python = environment(SCHEMATHESIS)?;
    run_command(cargo(&["build", "--package", "teamster-cli", "--bin", "teamster"]))?;
    let directory = tempfile::Builder::new().prefix("teamster-schemathesis-").tempdir();
    let directory = directory.context("cannot create a temporary directory")?;
    let gateway = Gateway::start(directory.path())?;
    let mut schemathesis = program(python.join("bin/schemathesis"), &["--config-file"]);
    schemathesis.arg(sources().join("schemathesis.toml")).arg("run").arg(format!("{}/v1/openapi.json", gateway.url));
    // It stores examples of failures in its working directory.
    schemathesis.args(&args.schemathesis_args).current_dir(directory.path()).env("TEAMSTER_TOKEN", TOKEN);
    let checked = run_command(schemathesis);
    if checked.is_err() {
        println!("\nThe end of the gateway's log:\n{}", gateway.end_of_log());
    }
    drop(gateway);
    checked
}

/// A gateway whose agent is a fake Claude Code.
struct Gateway<'a> {
    child: Child,
    url: String,
    directory: &'a Path,
}

impl<'a> Gateway<'a> {
    fn start(directory: &'a Path) -> Result<Self> {
        let teamster = built("teamster")?;
        let write = |name: &str, text: &str| {
            let path = directory.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir(directory.join("work")).context("cannot create a directory")?;
        write("config.toml", CONFIGURATION)?;
        write("scenario.toml", SCENARIO)?;
        let scenario = directory.join("scenario.toml");
        let (command, scenario) = (teamster.display(), scenario.display());
        write("agent", &format!("#!/bin/sh\nexec '{command}' fake --agent claude --script '{scenario}' -- \"$@\"\n"))?;
        fs::set_permissions(directory.join("agent"), fs::Permissions::from_mode(0o755)).context("cannot set a mode")?;
        let log = fs::File::create(directory.join("log")).context("cannot create a log")?;
        let mut serve = Command::new(&teamster);
        serve.args(["serve", "--config", "config.toml"]).current_dir(directory).env_clear();
        serve.env("PATH", env::var_os("PATH").unwrap_or_default()).env("HOME", directory).env("TEAMSTER_TOKEN", TOKEN);
        serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let child = serve.spawn().context("cannot start the gateway")?;
        let mut gateway = Self { child, url: String::new(), directory };
        let Some(stdout) = gateway.child.stdout.take() else { bail!("the gateway has no output") };
        BufReader::new(stdout).read_line(&mut gateway.url).context("cannot read the gateway's URL")?;
        gateway.url.truncate(gateway.url.trim_end().len());
        ensure!(gateway.url.starts_with("http://"), "the gateway does not start:\n{}", gateway.end_of_log());
        Ok(gateway)
    }

    fn end_of_log(&self) -> String {
        let text = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(30)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("cannot stop the gateway: {error}");
        }
    }
}
