//! Model providers that serve a scenario over the real wire protocols on the loopback address.
//!
//! A [`Scenario`] defines the replies, independent of the vendor. A wire format (Anthropic's,
//! Google's, OpenAI's) encodes them. The record ([`ModelRequest`]) contains what the agent
//! requested. No model and no network is involved, and the result is deterministic.

mod anthropic;
mod failure;
mod gemini;
mod openai_chat;
mod openai_responses;
mod playback;
mod record;
mod reply;
mod scenario;
mod state;
mod usage;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use thiserror::Error;

pub use failure::HttpError;
pub use record::{Disconnect, Message, ModelRequest, Part, Role, SideRequest, ToolResult};
pub use reply::{Reply, Stop, Turn};
pub use scenario::{DEFAULT_BRANCH, MARKER, Scenario, Script, marker};
pub use usage::Usage;

use crate::server::LocalServer;
use state::{GateState, Log, ProviderState};

/// A running provider. Dropping it stops the provider and closes every connection.
///
/// ```
/// use std::time::Duration;
/// use teamster_testkit::provider::{Provider, Reply, Scenario};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scenario = Scenario::new().reply(Reply::new().text("Hello, you.").gate_after(1, "rest"));
/// let provider = Provider::anthropic(scenario).start().await?;
/// println!("ANTHROPIC_BASE_URL={}", provider.base_url());
/// // Start the agent here; then let the reply continue.
/// provider.gate("rest").open();
/// assert_eq!(provider.requests().len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Provider {
    state: Arc<ProviderState>,
    server: LocalServer,
}

/// A provider that has not been started.
#[derive(Debug)]
pub struct ProviderSetup {
    scenario: Scenario,
    router: fn(Arc<ProviderState>) -> Router,
}

/// The reason why a provider does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A branch has a name that no marker can have.
    #[error("invalid branch name `{name}`: use letters, digits, `_` and `-`, and not `default`")]
    BranchName {
        /// The name.
        name: String,
    },
    /// There is no port to listen on.
    #[error("cannot listen on the loopback address")]
    Listen(#[source] io::Error),
}

/// The awaited condition was not met in time.
#[derive(Debug, Error)]
#[error("timed out after {bound:?} while waiting for {what}; the provider has received {requests} requests")]
pub struct WaitError {
    what: String,
    bound: Duration,
    requests: usize,
}

impl Provider {
    /// Creates a provider that speaks the Anthropic Messages API.
    pub fn anthropic(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: anthropic::router }
    }

    /// Creates a provider that speaks the OpenAI Responses API, under `/v1` of its URL.
    ///
    /// A tool whose input is a JSON string is called as a custom tool with that text. A tool
    /// `NAMESPACE/NAME` is called in its namespace. The API does not report whether a tool failed,
    /// so [`ToolResult::is_error`] is always false.
    pub fn openai_responses(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: openai_responses::router }
    }

    /// Creates a provider that speaks the Gemini API.
    pub fn gemini(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: gemini::router }
    }

    /// Creates a provider that speaks the OpenAI Chat Completions API, under `/v1` of its URL.
    pub fn openai_chat(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: openai_chat::router }
    }

    /// Returns the URL that replaces the vendor's in the agent's configuration, without a trailing
    /// slash.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// Returns the model requests received so far, in order of arrival.
    pub fn requests(&self) -> Vec<Arc<ModelRequest>> {
        self.state.log().borrow().requests.clone()
    }

    /// Returns all other requests received so far: probes, token counts, unknown paths.
    pub fn side_requests(&self) -> Vec<Arc<SideRequest>> {
        self.state.log().borrow().side_requests.clone()
    }

    /// Returns the connections that clients closed before they had received the whole response.
    pub fn disconnects(&self) -> Vec<Disconnect> {
        self.state.log().borrow().disconnects.clone()
    }

    /// Returns the sum of the usage reported in complete replies.
    pub fn usage_total(&self) -> Usage {
        self.usage_where(|_| true)
    }

    /// Returns the sum of the usage for the matching requests, such as those of a subagent.
    pub fn usage_where(&self, matches: impl Fn(&ModelRequest) -> bool) -> Usage {
        let reported = self.state.log().borrow().usage.clone();
        reported.iter().filter(|(request, _)| matches(request)).fold(Usage::ZERO, |sum, (_, usage)| sum + *usage)
    }

    /// Returns the gate with this name, which need not occur in the scenario.
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        Gate { name: name.into(), state: Arc::clone(&self.state) }
    }

    /// Waits for the request with this number, counted from one.
    pub async fn wait_for_request(&self, number: usize, bound: Duration) -> Result<Arc<ModelRequest>, WaitError> {
        let place = number.saturating_sub(1);
        self.wait(format!("request {number}"), bound, |log| log.requests.get(place).cloned(), |request| request).await
    }

    /// Waits until the requests received so far satisfy a condition, and returns them.
    pub async fn wait_until(
        &self,
        bound: Duration,
        mut condition: impl FnMut(&[Arc<ModelRequest>]) -> bool,
    ) -> Result<Vec<Arc<ModelRequest>>, WaitError> {
        self.wait(
            "requests that satisfy the condition".to_owned(),
            bound,
            |log| log.requests.clone(),
            |requests| condition(&requests).then_some(requests),
        )
        .await
    }

    /// Waits until a client closes a connection before it has received the whole response. Returns
    /// the first such disconnect.
    pub async fn wait_for_disconnect(&self, bound: Duration) -> Result<Disconnect, WaitError> {
        self.wait("a disconnect".to_owned(), bound, |log| log.disconnects.first().cloned(), |disconnect| disconnect)
            .await
    }

    /// Stops the provider. Returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
    }

    /// Evaluates the log after each change. `judge` runs without the log's lock, so it may call the
    /// provider.
    async fn wait<Snapshot, T>(
        &self,
        what: String,
        bound: Duration,
        read: impl Fn(&Log) -> Snapshot,
        mut judge: impl FnMut(Snapshot) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut log = self.state.log().subscribe();
        let found = async {
            loop {
                let snapshot = read(&log.borrow_and_update());
                let found = judge(snapshot);
                if found.is_some() || log.changed().await.is_err() {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(bound, found).await;
        found.ok().flatten().ok_or_else(|| WaitError {
            what,
            bound,
            requests: self.state.log().borrow().requests.len(),
        })
    }
}

impl ProviderSetup {
    /// Starts the provider on a free port.
    pub async fn start(self) -> Result<Provider, StartError> {
        if let Some(name) = self.scenario.invalid_branch_name() {
            return Err(StartError::BranchName { name: name.to_owned() });
        }
        let state = Arc::new(ProviderState::new(self.scenario));
        let router = (self.router)(Arc::clone(&state));
        let server = LocalServer::start(router).await.map_err(StartError::Listen)?;
        Ok(Provider { state, server })
    }
}

/// A point in a reply at which the provider waits for the test.
#[derive(Debug, Clone)]
pub struct Gate {
    name: String,
    state: Arc<ProviderState>,
}

impl Gate {
    /// Lets every reply pass, now and later.
    pub fn open(&self) {
        self.change(|gate| gate.open = true);
    }

    /// Stops replies that arrive at this gate from now on.
    pub fn close(&self) {
        self.change(|gate| *gate = GateState::default());
    }

    /// Returns whether a reply has reached the gate.
    pub fn is_reached(&self) -> bool {
        self.state.gates().borrow().get(&self.name).is_some_and(|gate| gate.reached)
    }

    /// Waits until a reply has reached the gate.
    pub async fn wait_reached(&self, bound: Duration) -> Result<(), WaitError> {
        let mut gates = self.state.gates().subscribe();
        let reached = gates.wait_for(|gates| gates.get(&self.name).is_some_and(|gate| gate.reached));
        match tokio::time::timeout(bound, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(WaitError {
                what: format!("a reply at the gate `{}`", self.name),
                bound,
                requests: self.state.log().borrow().requests.len(),
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        self.state.gates().send_modify(|gates| change(gates.entry(self.name.clone()).or_default()));
    }
}
