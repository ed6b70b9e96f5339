//! The request of a cell, and the environment of its host.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use teamster::RunRequest;
use teamster::request::PermissionMode;
use teamster_conformance::TestEnv;
use teamster_testkit::fake::SCRIPT_ENV;

use crate::cell_env::CellEnv;
use crate::fault::{Cli, Fault};
use crate::row::Column;

/// The request of a cell, before the fault's own changes.
pub(crate) struct Prepared {
    pub(crate) agent: &'static str,
    pub(crate) request: RunRequest,
    /// The environment of the host.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The environment of a real CLI.
    pub(crate) env: Option<TestEnv>,
}

/// Writes the files of the CLI, and returns the request that runs it.
pub(crate) async fn prepare(cell: &CellEnv, fault: &Fault) -> Result<Prepared> {
    let mut prepared = match cell.column {
        Column::Fake => {
            Prepared { agent: "claude", request: fake_request(cell), environment: fake_environment(cell)?, env: None }
        }
        Column::Real(agent) => {
            let scenario = match &fault.cli {
                Cli::Real(scenario) => scenario.clone(),
                _ => agent.reply().into(),
            };
            let env = agent.test_env(scenario).await?;
            let mut request = agent.request(&env, "Go.");
            request.permissions.mode = PermissionMode::Full;
            Prepared { agent: agent.name, request, environment: env.environment().to_vec(), env: Some(env) }
        }
    };
    let request = &mut prepared.request;
    request.cli_path = Some(write_cli(cell, fault, request)?);
    // Files that the CLI itself leaves there do not count.
    for (name, directory) in [("TMPDIR", "cli-tmp"), ("XDG_RUNTIME_DIR", "cli-tmp"), ("XDG_STATE_HOME", "cli-state")] {
        request.env.insert(name.to_owned(), cell.path(directory).display().to_string());
    }
    // It is sent in a private file.
    request.system_prompt = Some("Be brief.".to_owned());
    Ok(prepared)
}

/// Writes the program that runs as the CLI, and returns its path.
fn write_cli(cell: &CellEnv, fault: &Fault, request: &mut RunRequest) -> Result<PathBuf> {
    match (&fault.cli, &request.cli_path) {
        (Cli::File(file), _) => Ok(file.clone()),
        (Cli::Fake(script), _) => {
            fs::write(cell.path("script"), script.to_json())?;
            request.env.insert(SCRIPT_ENV.to_owned(), cell.path("script").display().to_string());
            cell.wrapper(&std::env::current_exe()?, &fault.shell)
        }
        (Cli::Real(_), Some(cli)) => cell.wrapper(cli, &fault.shell),
        (Cli::Real(_), None) => bail!("the test environment names no CLI"),
    }
}

fn fake_request(cell: &CellEnv) -> RunRequest {
    let mut request = RunRequest::new("Go.");
    request.cwd = Some(cell.path("project"));
    request.limits.deadline = teamster_conformance::DEADLINE;
    request
}

fn fake_environment(cell: &CellEnv) -> Result<Vec<(OsString, OsString)>> {
    let path = std::env::var_os("PATH").context("there is no PATH")?;
    Ok(vec![("PATH".into(), path), ("HOME".into(), cell.path("home").into()), ("LANG".into(), "C.UTF-8".into())])
}
