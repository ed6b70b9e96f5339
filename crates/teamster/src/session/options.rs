//! The options of a session.

use std::pin::Pin;
use std::sync::Arc;

use teamster_types::event::Event;
use teamster_types::request::{AgentInterface, Answer, RunRequest};

/// A handler for the agent's requests, called with each [`Event::PermissionRequest`] and [`Event::Question`].
pub(crate) type Handler = Arc<dyn Fn(Event) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// The options of a session: a request without a prompt, and a handler for the agent's requests.
///
/// ```
/// use teamster::request::Answer;
/// use teamster::{RunRequest, SessionOptions};
///
/// let options = SessionOptions::new(RunRequest::session())
///     .with_handler(|_event| async { Answer::Deny { message: None } });
/// # _ = options;
/// ```
pub struct SessionOptions {
    pub(crate) request: RunRequest,
    pub(crate) handler: Option<Handler>,
}

impl SessionOptions {
    /// Creates options from the request that all turns share. Its limits apply to each turn.
    pub fn new(request: RunRequest) -> Self {
        Self { request, handler: None }
    }

    /// Uses one process for each turn, even if the agent has a live interface ([`AgentInterface::Spawn`]).
    #[must_use]
    pub fn process_per_turn(mut self) -> Self {
        self.request.interface = AgentInterface::Spawn;
        self
    }

    /// Lets the agent run commands and subagents in the background between turns. When one ends, the agent may start a turn by
    /// itself ([`Session::next_agent_turn`](crate::Session::next_agent_turn)).
    #[must_use]
    pub fn with_background_tasks(mut self) -> Self {
        self.request.background_tasks = true;
        self
    }

    /// Sets the handler for the agent's requests. It is called with each [`Event::PermissionRequest`] and [`Event::Question`].
    /// The stream emits these events too, and [`Session::answer`](crate::Session::answer) may answer first. If the handler panics, or takes longer
    /// than `limits.answer` of the request, the request is denied.
    #[must_use]
    pub fn with_handler<F>(mut self, handler: impl Fn(Event) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        self.handler = Some(Arc::new(move |event| Box::pin(handler(event))));
        self
    }
}

impl From<RunRequest> for SessionOptions {
    fn from(request: RunRequest) -> Self {
        Self::new(request)
    }
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionOptions")
            .field("request", &self.request)
            .field("handler", &self.handler.is_some())
            .finish()
    }
}
