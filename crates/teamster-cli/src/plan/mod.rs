//! Builds requests from the typed arguments and validates them.
//!
//! Invariant: this module has no direct access to the system; it reads files and standard input through [`Inputs`].

mod error;
mod inputs;
mod prompt;
mod saved;
mod stdin;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use teamster::Runtime;
use teamster::agent::rules::ToolRules;
use teamster::event::SessionId;
use teamster::request::{
    self, Attachment, Conversation, Inherit, McpServer, OrphanPolicy, OutputMode, PermissionMode, Permissions,
    RequestError, RunRequest, UserMcpServers,
};
use teamster::sessions::{SessionList, SessionQuery, StoredSession};

pub(crate) use error::UsageError;
pub(crate) use inputs::{Inputs, SystemInputs};
pub(crate) use saved::SavedRules;

use self::error::{as_text, unreadable};
use self::prompt::PromptSource;
use crate::args::{CommonArgs, ConversationArgs, Format, Permission, RetryPolicy, RunArgs, ToolOutput};
use crate::config;
use crate::printable::Printable;
use crate::sessions::{self, ResumedSession};

/// What a run shows beside its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing.
    Quiet,
    /// Its status, on a terminal.
    Status,
    /// Also launches, versions, limits and timings, on standard error.
    Verbose,
}

/// Returns the text of a message for a gateway: the typed words, standard input, or both, as for a run.
///
/// # Errors
/// There is no text, or standard input cannot be read.
#[cfg(feature = "serve")]
pub(crate) fn message_text(
    typed: Option<String>,
    stdin: crate::args::StdinMode,
    inputs: &mut impl Inputs,
) -> Result<String, UsageError> {
    prompt::read(PromptSource::new(typed, &[]), stdin, inputs)
}

/// A validated run, ready to start.
#[derive(Debug)]
pub(crate) struct RunPlan {
    pub(crate) agent: String,
    /// Starts the run.
    pub(crate) runtime: Runtime,
    pub(crate) request: RunRequest,
    pub(crate) format: Format,
    pub(crate) progress: Progress,
    /// How much of the output of tools is shown; `None` for the default.
    pub(crate) tool_output: Option<ToolOutput>,
    /// The session that is resumed, if its store has it.
    pub(crate) resumed: Option<ResumedSession>,
    /// The usage journal, if it is on.
    pub(crate) usage_journal: Option<PathBuf>,
}

/// A validated session, ready to open.
#[derive(Debug)]
pub(crate) struct SessionPlan {
    pub(crate) agent: String,
    /// Opens the session.
    pub(crate) runtime: Runtime,
    /// The settings of all turns. It has no prompt.
    pub(crate) request: RunRequest,
    /// How much of the output of tools is shown; `None` for the default.
    pub(crate) tool_output: Option<ToolOutput>,
    /// The session that is resumed, if its store has it.
    pub(crate) resumed: Option<ResumedSession>,
    /// The usage journal, if it is on.
    pub(crate) usage_journal: Option<PathBuf>,
    /// The rules that were saved in chats of the directory.
    pub(crate) saved_rules: SavedRules,
}

/// Builds the plan of a run. It reads the files that the arguments name, and the prompt last.
pub(crate) fn plan_run(args: RunArgs, inputs: &mut impl Inputs) -> Result<RunPlan, UsageError> {
    let RunArgs {
        prompt: typed,
        words,
        stdin,
        common,
        attach,
        retries,
        retry_even_after,
        output,
        quiet,
        verbose,
        batch,
        ..
    } = args;
    let source = PromptSource::new(typed, &words);
    // Before a person chooses the session to resume.
    let word_of_resume = prompt::word_of_resume(&source, common.resume.as_deref());
    if let Err(error) = prompt::check(&source, stdin, inputs) {
        return Err(word_of_resume.unwrap_or(error));
    }
    let SessionPlan { agent, runtime, mut request, tool_output, resumed, usage_journal, .. } =
        plan_common(common, inputs)?;
    let directory = working_directory(inputs)?;
    request.attachments = attach.into_iter().map(|path| Attachment::Path(absolute(&directory, path))).collect();
    if batch {
        request.output = OutputMode::Batch;
    }
    request.retries.max = retries.unwrap_or_default();
    request.retries.policy = match retry_even_after {
        None => request::RetryPolicy::Safe,
        Some(RetryPolicy::Prompt) => request::RetryPolicy::MayRepeatPrompt,
        Some(RetryPolicy::Tools) => request::RetryPolicy::MayRepeatTools,
    };
    request.prompt = prompt::read(source, stdin, inputs)?;
    if let Some(error) = word_of_resume.filter(|_| request.prompt.trim().is_empty()) {
        return Err(error);
    }
    request.validate()?;
    ToolRules::read(&request.permissions, request.cwd.as_deref())?;
    let progress = match (quiet, verbose) {
        (true, _) => Progress::Quiet,
        (false, true) => Progress::Verbose,
        (false, false) => Progress::Status,
    };
    Ok(RunPlan { agent, runtime, request, format: output, progress, tool_output, resumed, usage_journal })
}

/// Builds the plan of a session. It reads the files that the arguments name. `answer_timeout` applies if the option is
/// absent.
pub(crate) fn plan_session(
    args: ConversationArgs,
    answer_timeout: Duration,
    inputs: &mut impl Inputs,
) -> Result<SessionPlan, UsageError> {
    let named = args.common.config.clone();
    let mut plan = plan_common(args.common, inputs)?;
    let directory = working_directory(inputs)?;
    plan.saved_rules = SavedRules::read(named.as_deref(), plan.request.cwd.as_deref().unwrap_or(&directory), inputs);
    plan.request.limits.answer = args.answer_timeout.unwrap_or(answer_timeout);
    plan.request.validate_session()?;
    if let Some(resumed) = &plan.resumed {
        // In a run, the stream reports it.
        sessions::check_directory(resumed, plan.request.cwd.as_deref().unwrap_or(&directory))?;
    }
    ToolRules::read(&plan.request.permissions, plan.request.cwd.as_deref())?;
    Ok(plan)
}

/// Builds the part of the plan that runs and sessions have in common. It is not validated yet.
fn plan_common(args: CommonArgs, inputs: &mut impl Inputs) -> Result<SessionPlan, UsageError> {
    let directory = working_directory(inputs)?;
    let runtime = runtime(&args, inputs)?;
    let mut request = RunRequest::default();
    request.model = args.model;
    request.labels = args.label.into_iter().collect();
    request.effort = args.effort;
    request.project_trust = args.project_trust.into();
    request.prompt_mode = args.prompt_mode.into();
    request.interface = args.mode.into();
    request.mcp_delivery = args.mcp_delivery.into();
    request.conversation = conversation(args.resume, args.continue_last, args.fork)?;
    request.permissions = permissions(args.permission, args.allow_tool, args.deny_tool);
    request.max_turns = args.max_turns;
    request.max_budget_usd = args.max_budget;
    request.max_session_budget_usd = args.max_session_budget;
    request.max_tokens = args.max_tokens;
    request.max_session_tokens = args.max_session_tokens;
    request.cwd = args.cwd.map(|path| absolute(&directory, path));
    request.add_dirs = args.add_dir.into_iter().map(|path| absolute(&directory, path)).collect();
    request.record = args.record.map(|path| absolute(&directory, path));
    request.record_raw = args.record_raw;
    request.record_overwrite = args.force;
    request.cli_path = args.cli_path.map(|path| program(&directory, path));
    request.cli_args = args.cli_arg;
    request.env = args.env.into_iter().collect();
    request.inherit = match (args.env_only, args.withhold_keys) {
        (Some(names), _) => Inherit::Only(names),
        (None, true) => Inherit::WithholdKeys { keep: args.keep_key },
        (None, false) => Inherit::All,
    };
    request.output = if args.whole_messages { OutputMode::Messages } else { OutputMode::Stream };
    request.orphans = if args.keep_background { OrphanPolicy::Keep } else { OrphanPolicy::Kill };
    let limits = &mut request.limits;
    for (limit, value) in [
        (&mut limits.silence, args.timeout),
        (&mut limits.startup, args.startup_timeout),
        (&mut limits.tool, args.tool_timeout),
        (&mut limits.deadline, args.deadline),
        (&mut limits.grace, args.grace),
    ] {
        *limit = value.unwrap_or(*limit);
    }
    request.system_prompt = text_or_file(args.system_prompt, args.system_prompt_file, "--system-prompt-file", inputs)?;
    request.append_system_prompt =
        text_or_file(args.append_system_prompt, args.append_system_prompt_file, "--append-system-prompt-file", inputs)?;
    request.mcp_servers = mcp_servers(&args.mcp_config, &request.env, inputs)?;
    request.user_mcp_servers = if args.mcp_strict { UserMcpServers::LeftOut } else { UserMcpServers::Used };
    request.schema = args.schema.map(|schema| parse_schema(&schema, inputs)).transpose()?;
    let usage_journal = args.usage_journal.map(|path| absolute(&directory, path));
    let stores = stores_runtime(&runtime, &request.env);
    let resumed = resumed(&mut request, &args.agent, &directory, &mut Stores { inputs, runtime: &stores })?;
    let (agent, tool_output) = (args.agent, args.tool_output);
    Ok(SessionPlan { agent, runtime, request, tool_output, resumed, usage_journal, saved_rules: SavedRules::default() })
}

/// Returns the runtime with the agents of the configuration file.
fn runtime(args: &CommonArgs, inputs: &mut impl Inputs) -> Result<Runtime, UsageError> {
    let (registry, problems) = config::registry(args.config.as_deref(), inputs);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem.into());
    }
    registry.get(&args.agent)?;
    let mut runtime = Runtime::builder().registry(registry);
    if args.require_process_control {
        runtime = runtime.require_process_control();
    }
    Ok(runtime.build())
}

/// Returns a runtime that finds the stores where the agent, with these variables, has them.
fn stores_runtime(runtime: &Runtime, env: &BTreeMap<String, String>) -> Runtime {
    let own = env.iter().map(|(name, value)| (name.into(), value.into()));
    let environment: BTreeMap<OsString, OsString> = std::env::vars_os().chain(own).collect();
    Runtime::builder().registry(runtime.registry().clone()).environment(environment).build()
}

/// Finds the session to resume.
fn resumed(
    request: &mut RunRequest,
    agent: &str,
    directory: &Path,
    stores: &mut Stores<'_, impl Inputs>,
) -> Result<Option<ResumedSession>, UsageError> {
    let directory = request.cwd.as_deref().unwrap_or(directory);
    Ok(sessions::resolve(&mut request.conversation, agent, directory, stores)?)
}

/// The stored sessions, as the inputs return them.
struct Stores<'a, I> {
    inputs: &'a mut I,
    runtime: &'a Runtime,
}

impl<I: Inputs> sessions::Stores for Stores<'_, I> {
    fn list(&mut self, query: &SessionQuery) -> SessionList {
        self.inputs.sessions(self.runtime, query)
    }

    fn newest(&mut self, query: &SessionQuery) -> Option<StoredSession> {
        self.inputs.newest_session(self.runtime, query)
    }

    fn note(&mut self, note: Printable) {
        self.inputs.note(&note);
    }

    fn can_choose(&self) -> bool {
        self.inputs.stdin_is_terminal() && self.inputs.stdout_is_terminal()
    }

    fn choose(&mut self, title: Printable, sessions: &[StoredSession]) -> Option<SessionId> {
        self.inputs.choose_session(title, sessions)
    }
}

fn working_directory(inputs: &impl Inputs) -> Result<PathBuf, UsageError> {
    inputs.working_directory().map_err(|source| unreadable("the working directory", source))
}

fn conversation(resume: Option<String>, continue_last: bool, fork: bool) -> Result<Conversation, UsageError> {
    Ok(match (resume, continue_last, fork) {
        (Some(id), _, true) => Conversation::Fork(id.into()),
        (Some(id), _, false) => Conversation::Resume(id.into()),
        (None, true, true) => Conversation::ForkNewest,
        (None, true, false) => Conversation::Continue,
        (None, false, true) => return Err(UsageError::NothingToFork),
        (None, false, false) => Conversation::New,
    })
}

fn permissions(mode: Permission, allow: Vec<String>, deny: Vec<String>) -> Permissions {
    let mut permissions = Permissions::default();
    permissions.mode = match mode {
        Permission::ReadOnly => PermissionMode::ReadOnly,
        Permission::Ask => PermissionMode::Ask,
        Permission::Edit => PermissionMode::Edit,
        Permission::Full => PermissionMode::Full,
    };
    permissions.allow = allow;
    permissions.deny = deny;
    permissions
}

/// Resolves a path against teamster's working directory: the agent may have a different one.
fn absolute(directory: &Path, path: PathBuf) -> PathBuf {
    let joined = directory.join(path);
    std::path::absolute(&joined).unwrap_or(joined)
}

/// Resolves the path of a program. A name without a slash stays unchanged: it is looked up in PATH later.
fn program(directory: &Path, path: PathBuf) -> PathBuf {
    if path.components().count() > 1 { absolute(directory, path) } else { path }
}

fn text_or_file(
    text: Option<String>,
    file: Option<PathBuf>,
    option: &str,
    inputs: &mut impl Inputs,
) -> Result<Option<String>, UsageError> {
    match file {
        Some(path) => read_file(&path, option, inputs).map(Some),
        None => Ok(text),
    }
}

/// Returns the text of an option that accepts a file or JSON, and its name for error messages.
fn json_or_file(value: &str, option: &str, inputs: &mut impl Inputs) -> Result<(String, String), UsageError> {
    if value.trim_start().starts_with(['{', '[']) {
        return Ok((value.to_owned(), format!("the JSON of {option}")));
    }
    Ok((read_file(Path::new(value), option, inputs)?, value.to_owned()))
}

/// Reads the MCP servers of all `--mcp-config` options. Variables in them are replaced by the values that the agent's
/// environment will have.
fn mcp_servers(
    values: &[String],
    env: &BTreeMap<String, String>,
    inputs: &mut impl Inputs,
) -> Result<BTreeMap<String, McpServer>, UsageError> {
    let mut servers = BTreeMap::new();
    let mut origins: BTreeMap<String, String> = BTreeMap::new();
    for value in values {
        let (text, what) = json_or_file(value, "--mcp-config", inputs)?;
        let variable = |name: &str| env.get(name).cloned().or_else(|| inputs.variable(name));
        let toml = Path::new(&what).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        let read = if toml { McpServer::from_toml(&text, variable) } else { McpServer::from_json(&text, variable) };
        let read = read.map_err(|error| match error {
            RequestError::McpConfig { message } => UsageError::McpConfig { what: what.clone(), message },
            other => other.into(),
        })?;
        for (name, server) in read {
            if let Some(first) = origins.insert(name.clone(), what.clone()) {
                return Err(UsageError::DuplicateServer { name, first, second: what });
            }
            servers.insert(name, server);
        }
    }
    Ok(servers)
}

fn parse_schema(value: &str, inputs: &mut impl Inputs) -> Result<Value, UsageError> {
    let (text, what) = json_or_file(value, "--schema", inputs)?;
    teamster::json::parse(&text).map_err(|source| UsageError::SchemaSyntax { what, source })
}

fn read_file(path: &Path, option: &str, inputs: &mut impl Inputs) -> Result<String, UsageError> {
    let what = path.to_string_lossy().into_owned();
    let bytes = inputs.file(path).map_err(|source| unreadable(&format!("the file of {option}, {what}"), source))?;
    as_text(&what, bytes)
}

#[cfg(test)]
pub(crate) mod tests;
