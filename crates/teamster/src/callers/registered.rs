//! Finds the conversation that a tool call belongs to.
//!
//! A tool server gives each request to which it is offered a token of its own. The runtime finds the tokens in the request, and
//! reports what it learns about the conversation: the agent, its session, and the running turn.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use teamster_types::event::{Event, SessionId};
use teamster_types::request::RunRequest;

/// The callers of all tool servers of this program, by the `Authorization` header that they send. The time of a lookup reveals
/// nothing about a token, because it starts with a hash whose key is random for each process.
static CALLERS: LazyLock<Mutex<HashMap<String, Arc<Caller>>>> = LazyLock::new(Mutex::default);

fn callers() -> MutexGuard<'static, HashMap<String, Arc<Caller>>> {
    CALLERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request to which tools were offered.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The token of the tool server, which identifies it here.
    server: String,
    pub(crate) label: Option<String>,
    conversations: Mutex<Vec<Arc<Mutex<Conversation>>>>,
}

/// What is known about a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub(crate) agent: String,
    /// The id of the run or of the session.
    pub(crate) run_id: Arc<str>,
    pub(crate) session: Option<SessionId>,
    /// The number of the running or the last turn, starting at 1.
    pub(crate) turn: u64,
}

impl Caller {
    /// Registers a caller of a server, by its `Authorization` header.
    pub(crate) fn add(server: &str, authorization: &str, label: Option<String>) {
        let caller = Self { server: server.to_owned(), label, conversations: Mutex::default() };
        callers().insert(authorization.to_owned(), Arc::new(caller));
    }

    /// Returns a caller of this server.
    pub(crate) fn find(server: &str, authorization: &str) -> Option<Arc<Self>> {
        callers().get(authorization).filter(|caller| caller.server == server).cloned()
    }

    /// Removes all callers of a server.
    pub(crate) fn remove_all(server: &str) {
        callers().retain(|_, caller| caller.server != server);
    }

    /// Removes the callers of a server with this label.
    pub(crate) fn remove_labeled(server: &str, label: &str) {
        callers().retain(|_, caller| caller.server != server || caller.label.as_deref() != Some(label));
    }

    /// Returns what is known about the caller's conversation. Returns `None` if several conversations use the same offer.
    pub(crate) fn known(&self) -> Option<Conversation> {
        match self.conversations().as_slice() {
            [only] => Some(lock(only).clone()),
            _ => None,
        }
    }

    fn conversations(&self) -> MutexGuard<'_, Vec<Arc<Mutex<Conversation>>>> {
        lock(&self.conversations)
    }
}

/// The callers that belong to one conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers(Option<Arc<Bound>>);

#[derive(Debug)]
struct Bound {
    callers: Vec<Arc<Caller>>,
    known: Arc<Mutex<Conversation>>,
}

impl Callers {
    /// Finds the tools that were offered to a request of this agent.
    pub(crate) fn of(agent: &str, run_id: &Arc<str>, request: &RunRequest) -> Self {
        let endpoints = request.mcp_servers.values().filter_map(|server| server.endpoint());
        let headers = endpoints.filter_map(|endpoint| endpoint.all_headers().remove("Authorization"));
        let found: Vec<_> = headers.filter_map(|authorization| callers().get(&authorization).cloned()).collect();
        if found.is_empty() {
            return Self::default();
        }
        let known = Arc::new(Mutex::new(Conversation {
            agent: agent.to_owned(),
            run_id: Arc::clone(run_id),
            session: None,
            turn: 0,
        }));
        for caller in &found {
            caller.conversations().push(Arc::clone(&known));
        }
        Self(Some(Arc::new(Bound { callers: found, known })))
    }

    /// Starts the next turn of the conversation.
    pub(crate) fn next_turn(&self) -> Self {
        if let Some(bound) = &self.0 {
            lock(&bound.known).turn += 1;
        }
        self.clone()
    }

    /// Notes what an event reveals about the conversation.
    pub(crate) fn note(&self, event: &Event) {
        if let (Some(bound), Event::Init(init)) = (&self.0, event) {
            lock(&bound.known).session = Some(init.session_id.clone());
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        for caller in &self.callers {
            caller.conversations().retain(|known| !Arc::ptr_eq(known, &self.known));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
