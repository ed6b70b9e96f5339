//! The query surface of chat gateways: one prompt, one answer.
//!
//! A gateway creates one [`Backend`] for each agent that it offers, [validates](Backend::validate) it at startup, and
//! [executes](Backend::execute) a query for each message. The session id of one answer resumes the conversation in the next
//! query. At its end it shuts down the [runtime](Backend::runtime), which ends the queries that run.
//!
//! By default the agent interprets prompts: `/commands`, and on some agents `@paths`, which can read files of the project. If
//! strangers write the prompts, set `prompt_mode` of the request to [`Literal`](teamster_types::request::PromptMode::Literal).

mod config;
mod reply;

use std::sync::Arc;

use teamster_agents::agent::{Agent, Feature, Support};
use teamster_types::event::{Event, MessageId, SessionId, Warning};
use teamster_types::request::{Conversation, RunRequest, with_instructions};
use teamster_types::text::UntrustedText;

pub use self::config::{BackendConfig, split_rules, variables};
pub use self::reply::{QueryResult, Reply};
use crate::inspect::Inspection;
use crate::registry::UnknownAgent;
use crate::runtime::{self, RunError, Runtime};

/// An agent with the options that every query shares.
///
/// ```no_run
/// use teamster::backend::{Backend, BackendConfig, QueryUpdate};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = Backend::create("claude", BackendConfig::from_env())?;
/// backend.validate().await?;
/// let first = backend.execute("My name is Ada.", None, None, async |_| {}).await?;
/// let print = async |update: QueryUpdate| {
///     if let QueryUpdate::Text { text, .. } = update {
///         print!("{}", text.escaped());
///     }
/// };
/// let second = backend.execute("What is my name?", Some("Answer in one word."), first.session_id, print).await?;
/// assert!(!second.is_error);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backend {
    runtime: Arc<Runtime>,
    agent: String,
    request: RunRequest,
    warnings: Vec<String>,
    /// Whether the agent takes instructions in addition to its own system prompt.
    appends: bool,
}

/// What the callback of [`Backend::execute`] gets while the agent works.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum QueryUpdate {
    /// More text of a message.
    Text {
        /// The message.
        message_id: MessageId,
        /// The text to append.
        text: UntrustedText,
    },
    /// The agent starts this message again: discard its text.
    Retracted {
        /// The message.
        message_id: MessageId,
    },
    /// Something that the user or the operator should know.
    Warning(Warning),
}

/// Why a backend cannot be created or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// No agent has this name.
    #[error(transparent)]
    UnknownAgent(#[from] UnknownAgent),
    /// The configuration or the query is invalid.
    #[error(transparent)]
    Invalid(#[from] RunError),
    /// The agent's CLI cannot run here.
    #[error("the agent {agent} cannot run: {problem}")]
    CannotRun {
        /// The agent's name.
        agent: String,
        /// The reason, with the program's name or path.
        problem: String,
    },
}

impl Backend {
    /// Creates a backend for the agent of this name.
    ///
    /// Rules for allowed tools that the agent cannot enforce are dropped, with a [warning](Self::warnings); the tools then need
    /// permission. Deny rules are never dropped.
    ///
    /// # Errors
    /// The name is unknown, or the agent cannot do what the configuration requests.
    pub fn create(name: &str, config: BackendConfig) -> Result<Self, BackendError> {
        let BackendConfig { mut request, runtime, mut warnings, .. } = config;
        let agent = runtime.registry().get(name)?;
        if let Err(error) = probe(&*agent, &request) {
            let unfiltered = without_allow_rules(&request);
            probe(&*agent, &unfiltered)?;
            warnings.push(format!("the allowed tools are ignored: {error}"));
            request = unfiltered;
        }
        let appends = agent
            .capabilities()
            .is_some_and(|capabilities| matches!(capabilities.support(Feature::AppendSystemPrompt), Support::Yes(_)));
        Ok(Self { agent: agent.name().to_owned(), runtime, request, warnings, appends })
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &str {
        &self.agent
    }

    /// Returns the runtime that runs the queries. Its [shutdown](Runtime::shutdown) ends them.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Returns what was ignored of the configuration, and why.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Checks that the agent's CLI is found, executable and reports its version. It calls no model.
    ///
    /// # Errors
    /// [`BackendError::CannotRun`] with the reason.
    pub async fn validate(&self) -> Result<Inspection, BackendError> {
        let found = self.runtime.inspect(&self.agent, self.request.cli_path.as_deref()).await?;
        match &found.problem {
            Some(problem) => Err(BackendError::CannotRun { agent: self.agent.clone(), problem: problem.clone() }),
            None => Ok(found),
        }
    }

    /// Sends a prompt and returns the answer. `on_update` gets the answer's text as it is written, retractions and warnings.
    /// While it runs, further events wait in a bounded queue; the agent may continue working. Dropping the future aborts the run.
    ///
    /// The system prompt is appended to the agent's own, also in a resumed session. For an agent that cannot do that it is
    /// prepended to the prompt, marked as instructions.
    ///
    /// # Errors
    /// The request is invalid. A failure after the start is a result with `is_error`.
    pub async fn execute(
        &self,
        prompt: &str,
        system_prompt: Option<&str>,
        session_id: Option<SessionId>,
        mut on_update: impl AsyncFnMut(QueryUpdate),
    ) -> Result<QueryResult, BackendError> {
        let request = self.request_for(prompt, system_prompt, session_id);
        let mut run = self.runtime.run(&self.agent, request)?;
        let mut failure = None;
        while let Some(event) = run.next().await {
            match event {
                Event::Text(delta) if delta.parent_tool_id.is_none() => {
                    on_update(QueryUpdate::Text { message_id: delta.message_id, text: delta.text }).await;
                }
                Event::Retract(retract) => on_update(QueryUpdate::Retracted { message_id: retract.message_id }).await,
                Event::Warning(warning) => on_update(QueryUpdate::Warning(*warning)).await,
                Event::Error(error) => failure = Some(error.message.into_string()),
                Event::Done(done) => return Ok(QueryResult::new(done.result, failure)),
                _ => {}
            }
        }
        Ok(QueryResult::without_done(failure))
    }

    fn request_for(&self, prompt: &str, system_prompt: Option<&str>, session_id: Option<SessionId>) -> RunRequest {
        let mut request = self.request.clone();
        let system_prompt = system_prompt.filter(|text| !text.trim().is_empty());
        let shared = request.append_system_prompt.take();
        let instructions = [shared.as_deref(), system_prompt].into_iter().flatten();
        let instructions = instructions.collect::<Vec<_>>().join("\n\n");
        let instructions = Some(instructions).filter(|text| !text.is_empty());
        if self.appends {
            prompt.clone_into(&mut request.prompt);
            request.append_system_prompt = instructions;
        } else {
            request.prompt = with_instructions(instructions.as_deref(), prompt).into_owned();
        }
        request.conversation = session_id.map_or(Conversation::New, Conversation::Resume);
        request
    }
}

/// Checks whether the agent can run a request with these options.
fn probe(agent: &dyn Agent, request: &RunRequest) -> Result<(), RunError> {
    let mut request = request.clone();
    if request.prompt.is_empty() {
        "x".clone_into(&mut request.prompt);
    }
    request.cwd = Some(runtime::working_directory(request.cwd.as_deref())?);
    request.validate()?;
    if let Some(capabilities) = agent.capabilities() {
        capabilities.check(agent.name(), &request)?;
    }
    runtime::plan_run(agent, &request).map(drop)
}

fn without_allow_rules(request: &RunRequest) -> RunRequest {
    let mut request = request.clone();
    request.permissions.allow.clear();
    request
}
