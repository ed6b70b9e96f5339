//! The checked configuration of a gateway, and the agent that it will use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster::backend::{Backend, BackendConfig, BackendError, variables};
use teamster::request::{Inherit, PromptMode, RunRequest};
use teamster::{HostLease, Inspection, Registry, Runtime};
use teamster_gateway::config::file::{Serve, ServeTable, build, store_file};
use teamster_gateway::config::{Config, with_keys};
use teamster_gateway::{Omission, omissions};

use super::data_dir;
use super::values::ServeValues;
use crate::config::ConfigError;
use crate::plan::Inputs;
use crate::printable::{Printable, printable};
use crate::render::write_warning;
use crate::vendor;

/// What will be started.
#[derive(Debug)]
pub(super) struct ServePlan {
    pub(super) serve: Serve,
    pub(super) runtime: Arc<Runtime>,
    /// The fixed token of the operator.
    pub(super) token: Option<String>,
}

/// Checks the values.
///
/// # Errors
/// Returns every problem of the files, variables and options.
pub(super) fn plan(values: &ServeValues, inputs: &impl Inputs) -> Result<ServePlan, Vec<ConfigError>> {
    let mut problems: Vec<String> = values.problems.iter().map(ToString::to_string).collect();
    let built = table(values, inputs).map_err(|error| vec![error]).and_then(|table| {
        let default = data_dir::default_directory(inputs).or_else(|| table.data_dir.clone());
        let default = default.ok_or_else(|| vec![no_directory()])?;
        let errors = build(&table, &default, &values.registry);
        errors.map_err(|found| {
            let found = found.iter().filter(|found| !values.section.is_incomplete(&found.key));
            found.map(|found| values.error(&found.key, &found.problem)).collect()
        })
    });
    match built {
        Ok(mut serve) if problems.is_empty() => {
            serve.config.file = Some(values.section.file.clone());
            let lease = HostLease::new().map_err(|error| {
                vec![ConfigError::Serve(format!("no shared memory for the lease of the agents: {error}"))]
            })?;
            let runtime = Arc::new(runtime(values.registry.clone(), &serve.config, lease));
            let token = inputs.variable(variables::GATEWAY_TOKEN).filter(|token| !token.is_empty());
            Ok(ServePlan { serve, runtime, token })
        }
        Ok(_) => Err(problems.into_iter().map(ConfigError::Serve).collect()),
        Err(found) => {
            problems.extend(found.iter().map(ToString::to_string));
            Err(problems.into_iter().map(ConfigError::Serve).collect())
        }
    }
}

/// Returns the data directory and the file of the store.
///
/// # Errors
/// A value is invalid, or no data directory can be determined.
pub(super) fn locations(values: &ServeValues, inputs: &impl Inputs) -> Result<(PathBuf, PathBuf), ConfigError> {
    let table = table(values, inputs)?;
    let directory = table.data_dir.clone().or_else(|| data_dir::default_directory(inputs)).ok_or_else(no_directory)?;
    let store = store_file(table.store.as_deref(), &directory);
    store.map(|store| (directory, store)).map_err(|problem| values.error("store", &problem))
}

fn no_directory() -> ConfigError {
    ConfigError::Serve("there is no directory for the data: set HOME, or name one with --data-dir".to_owned())
}

/// Returns the values as a table with absolute paths. Those of the file are absolute already.
fn table(values: &ServeValues, inputs: &impl Inputs) -> Result<ServeTable, ConfigError> {
    let mut table = values.table()?;
    let base = inputs
        .working_directory()
        .map_err(|error| ConfigError::Serve(format!("the working directory cannot be used: {error}")))?;
    table.directory.get_or_insert_with(|| base.clone());
    let home = inputs.variable("HOME").map(PathBuf::from);
    table.resolve_paths(&base, home.as_deref().map(Path::new));
    Ok(table)
}

/// Returns the runtime of the agents. They do not get the gateway's own secrets.
fn runtime(registry: Registry, config: &Config, lease: HostLease) -> Runtime {
    let own = config.secret_variables(&registry);
    let environment = std::env::vars_os().filter(|(name, _)| !own.iter().any(|own| name == own.as_str()));
    Runtime::builder().registry(registry).environment(environment).host_lease(lease).build()
}

/// Checks that the agent can run, and drops rules of tools that it cannot enforce.
///
/// # Errors
/// The agent cannot run: one line with its name and its path.
pub(super) async fn check_agent(plan: &mut ServePlan) -> Result<(Inspection, Vec<Printable>), Printable> {
    let mut left_out = Vec::new();
    if let Ok(agent) = plan.runtime.registry().get(&plan.serve.config.turn.agent) {
        left_out = omissions(&*agent, &plan.serve.config);
    }
    let turn = &mut plan.serve.config.turn;
    let mut request = RunRequest::default();
    request.cli_path.clone_from(&turn.cli_path);
    request.model.clone_from(&turn.model);
    request.max_turns = turn.max_turns.filter(|_| !left_out.contains(&Omission::MaxTurns));
    request.permissions.mode = turn.permission;
    request.permissions.allow.clone_from(&turn.allow_tools);
    request.inherit = Inherit::WithholdKeys { keep: turn.keep_keys.clone() };
    request.project_trust = turn.project_trust;
    if !left_out.contains(&Omission::LiteralPrompts) {
        request.prompt_mode = PromptMode::Literal;
    }
    request.cwd = Some(turn.directory.clone());
    let config = BackendConfig::new(request).with_runtime(Arc::clone(&plan.runtime));
    let backend = Backend::create(&turn.agent, config).map_err(|error| cannot_run(&turn.agent, &error))?;
    let warnings = backend.warnings().iter().map(|text| Printable::message(text)).collect::<Vec<_>>();
    if !warnings.is_empty() {
        turn.allow_tools.clear();
    }
    let further = left_out.iter().filter(|omission| **omission != Omission::AllowTools);
    let warnings: Vec<_> =
        warnings.into_iter().chain(further.map(|omission| Printable::message(&omission.to_string()))).collect();
    let program = turn.cli_path.clone();
    let found = plan.runtime.inspect(backend.name(), program.as_deref()).await;
    let found = found.map_err(|error| cannot_run(&turn.agent, &BackendError::from(error)))?;
    match &found.problem {
        None => Ok((found.clone(), without_login(&found).into_iter().chain(warnings).collect())),
        Some(problem) => Err(not_running(&found, problem, program.as_deref())),
    }
}

/// Returns the error of an agent whose program cannot run: its name, the program, the problem, and the key to change.
fn not_running(found: &Inspection, problem: &str, named: Option<&Path>) -> Printable {
    let path = found.program.as_deref().or(named).map(Path::to_string_lossy).unwrap_or_default();
    let program =
        if problem.contains(&*path) { Printable::default() } else { printable!("{}: ", Printable::exact(&path)) };
    let key = match named {
        Some(_) => "; serve.cli_path (BACKEND_CLI_PATH) names this program",
        None => "; serve.cli_path (BACKEND_CLI_PATH) can name another program",
    };
    let (agent, problem) = (Printable::exact(&found.agent), Printable::message(&with_keys(problem)));
    printable!("the agent {} cannot run: {}{}{}", agent, program, problem, key)
}

/// Returns a warning if no login of an agent is known. Its turns would fail.
fn without_login(found: &Inspection) -> Option<Printable> {
    if !found.credentials.is_empty() {
        return None;
    }
    let login = vendor::login_here(&found.agent)?;
    let agent = Printable::exact(&found.agent);
    Some(printable!("no login of the agent {} was found: as the user of the gateway, {}", agent, login))
}

/// Checks that the agents which only rules name can run, and returns what is wrong with them.
pub(super) async fn check_other_agents(plan: &ServePlan) -> Vec<Printable> {
    let config = &plan.serve.config;
    let mut names: Vec<_> = config.rules.iter().filter_map(|rule| rule.agent.as_deref()).collect();
    names.sort_unstable();
    names.dedup();
    let mut problems = Vec::new();
    for name in names.into_iter().filter(|name| !name.eq_ignore_ascii_case(&config.turn.agent)) {
        let problem = match plan.runtime.inspect(name, None).await {
            Ok(found) if found.problem.is_none() => {
                without_login(&found).iter().for_each(write_warning);
                continue;
            }
            Ok(found) => found.problem.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        let name = Printable::exact(name);
        problems.push(printable!("the agent {} of a rule cannot run: {}", name, Printable::message(&problem)));
    }
    problems
}

fn cannot_run(agent: &str, error: &BackendError) -> Printable {
    let problem = with_keys(&error.to_string());
    printable!("the agent {} cannot be used: {}", Printable::exact(agent), Printable::message(&problem))
}
