//! The small surface that chat gateways use: one question, one answer.

use std::sync::Arc;

use teamster_protocol::event::{ErrorCode, Event, RunResult, SessionId};
use teamster_protocol::request::{Conversation, RunRequest};

use crate::runtime::{RunError, Runtime};

/// How much of the CLI's diagnostics an answer may quote, in characters.
const MAX_DIAGNOSTICS: usize = 500;

/// An agent with the options that every question shares.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use teamster::{Backend, RunRequest, Runtime};
/// # async fn example() -> Result<(), teamster::RunError> {
/// let backend = Backend::new(Arc::new(Runtime::new()), "claude", RunRequest::default());
/// let first = backend.query("My name is Ada.", None, None, |_| {}).await?;
/// let second = backend.query("What is my name?", None, first.session_id, |text| print!("{text}")).await?;
/// assert!(!second.is_error);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backend {
    runtime: Arc<Runtime>,
    agent: String,
    template: RunRequest,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueryResult {
    /// The last message of the agent; what went wrong, if it did.
    pub response_text: String,
    /// The session to go on with. `None` when there is none, or when the one that was asked for cannot be resumed.
    pub session_id: Option<SessionId>,
    /// Whether the question has no answer.
    pub is_error: bool,
}

impl Backend {
    /// An agent of the runtime; prompt, system prompt and conversation of the template are replaced by each question's.
    pub fn new(runtime: Arc<Runtime>, agent: impl Into<String>, template: RunRequest) -> Self {
        Self { runtime, agent: agent.into(), template }
    }

    /// Asks, and tells `on_text` the answer piece by piece as it comes. Dropping the future ends the run.
    ///
    /// # Errors
    /// When the request is wrong. Whatever happens after the start is an answer with `is_error`.
    pub async fn query(
        &self,
        prompt: &str,
        system_prompt: Option<&str>,
        session_id: Option<SessionId>,
        mut on_text: impl FnMut(&str),
    ) -> Result<QueryResult, RunError> {
        let mut request = self.template.clone();
        prompt.clone_into(&mut request.prompt);
        request.system_prompt = system_prompt.map(str::to_owned).or(request.system_prompt);
        request.conversation = session_id.map_or(Conversation::New, Conversation::Resume);
        let mut run = self.runtime.run(&self.agent, request)?;
        let (mut result, mut message) = (RunResult::default(), String::new());
        while let Some(event) = run.next().await {
            match event {
                Event::Text(delta) if delta.parent_tool_id.is_none() => on_text(&delta.text),
                Event::Error(failure) => message = failure.message.into_string(),
                Event::Done(done) => result = done.result,
                _ => {}
            }
        }
        Ok(answer(result, message))
    }
}

fn answer(result: RunResult, message: String) -> QueryResult {
    let Some(code) = result.error_code else {
        let (response_text, session_id) = (result.final_text, result.session_id);
        return QueryResult { response_text: response_text.into_string(), session_id, is_error: result.is_error };
    };
    let response_text = match code {
        ErrorCode::WatchdogTimeout | ErrorCode::DeadlineExceeded => "Query timed out".to_owned(),
        ErrorCode::Protocol => "Failed to parse CLI output".to_owned(),
        ErrorCode::CliExit | ErrorCode::CliSignaled => match result.stderr.as_deref().map(str::trim) {
            Some(stderr) if !stderr.is_empty() => last_characters(stderr),
            _ => message,
        },
        _ => message,
    };
    let session_id = result.session_id.filter(|_| code != ErrorCode::SessionNotFound);
    QueryResult { response_text, session_id, is_error: true }
}

/// The end says most: errors stand at the end of what a CLI writes.
fn last_characters(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(MAX_DIAGNOSTICS);
    text.chars().skip(skip).collect()
}
