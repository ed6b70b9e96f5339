//! Model providers that play a scenario over the real wire protocols, on the loopback address.
//!
//! [`scenario`](Scenario) says what happens, in no vendor's words; a wire protocol (Anthropic's, OpenAI's) writes it; the record
//! ([`ModelRequest`]) tells what the agent asked. No model, no network and no chance is involved.

mod anthropic;
mod failure;
mod gemini;
mod openai_chat;
mod openai_responses;
mod playback;
mod record;
mod reply;
mod scenario;
mod stage;
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
use stage::{GateState, Log, Stage};

/// A running provider. It ends with its value: every connection is closed when it is dropped.
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
/// // Start the agent here; then let the answer go on.
/// provider.gate("rest").open();
/// assert_eq!(provider.requests().len(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Provider {
    stage: Arc<Stage>,
    server: LocalServer,
}

/// A provider that is not running yet.
#[derive(Debug)]
pub struct ProviderSetup {
    scenario: Scenario,
    router: fn(Arc<Stage>) -> Router,
}

/// Why a provider does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// A branch has a name that no marker can have.
    #[error(
        "cannot play a scenario whose branch is called `{name}`: use letters, digits, `_` and `-`, and not `default`"
    )]
    BranchName {
        /// The name.
        name: String,
    },
    /// There is no port to listen on.
    #[error("cannot listen on the loopback address")]
    Listen(#[source] io::Error),
}

/// What was waited for has not happened in time.
#[derive(Debug, Error)]
#[error("waited {bound:?} for {what} in vain; the provider has {requests} requests")]
pub struct WaitError {
    what: String,
    bound: Duration,
    requests: usize,
}

impl Provider {
    /// A provider that speaks the Anthropic Messages API.
    pub fn anthropic(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: anthropic::router }
    }

    /// A provider that speaks the OpenAI Responses API, under `/v1` of its URL.
    ///
    /// A tool whose input is a JSON string is called as a custom tool, with that text; a tool `NAMESPACE/NAME` is one of a
    /// namespace. The API does not tell whether a tool failed: results never say so.
    pub fn openai_responses(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: openai_responses::router }
    }

    /// A provider that speaks the Gemini API.
    pub fn gemini(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: gemini::router }
    }

    /// A provider that speaks the OpenAI Chat Completions API, under `/v1` of its URL.
    pub fn openai_chat(scenario: impl Into<Scenario>) -> ProviderSetup {
        ProviderSetup { scenario: scenario.into(), router: openai_chat::router }
    }

    /// The URL that an agent is given instead of the vendor's, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The requests for an answer so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Arc<ModelRequest>> {
        self.stage.log().borrow().requests.clone()
    }

    /// All other requests so far: probes, counts of tokens, unknown paths.
    pub fn side_requests(&self) -> Vec<Arc<SideRequest>> {
        self.stage.log().borrow().side_requests.clone()
    }

    /// The connections that clients have closed before they had their whole answer.
    pub fn disconnects(&self) -> Vec<Disconnect> {
        self.stage.log().borrow().disconnects.clone()
    }

    /// The sum of the usage that clients were told with finished answers.
    pub fn usage_total(&self) -> Usage {
        self.usage_where(|_| true)
    }

    /// The same for some requests only, such as those of a subagent.
    pub fn usage_where(&self, counts: impl Fn(&ModelRequest) -> bool) -> Usage {
        let told = self.stage.log().borrow().usage.clone();
        told.iter().filter(|(request, _)| counts(request)).fold(Usage::ZERO, |sum, (_, usage)| sum + *usage)
    }

    /// The gate with this name. It need not occur in the scenario yet.
    pub fn gate(&self, name: impl Into<String>) -> Gate {
        Gate { name: name.into(), stage: Arc::clone(&self.stage) }
    }

    /// Waits for the request with this number, which counts from one.
    pub async fn wait_for_request(&self, number: usize, bound: Duration) -> Result<Arc<ModelRequest>, WaitError> {
        let place = number.saturating_sub(1);
        self.wait(format!("request {number}"), bound, |log| log.requests.get(place).cloned(), |request| request).await
    }

    /// Waits until the requests so far are as the test wants them, and returns them.
    pub async fn wait_until(
        &self,
        bound: Duration,
        mut are_as_wanted: impl FnMut(&[Arc<ModelRequest>]) -> bool,
    ) -> Result<Vec<Arc<ModelRequest>>, WaitError> {
        self.wait(
            "the wanted requests".to_owned(),
            bound,
            |log| log.requests.clone(),
            |requests| are_as_wanted(&requests).then_some(requests),
        )
        .await
    }

    /// Waits until a client has closed a connection before it had its whole answer, and returns the first that did.
    pub async fn wait_for_disconnect(&self, bound: Duration) -> Result<Disconnect, WaitError> {
        self.wait("a disconnect".to_owned(), bound, |log| log.disconnects.first().cloned(), |disconnect| disconnect)
            .await
    }

    /// Stops, and returns once every connection is closed.
    pub async fn shutdown(mut self) {
        self.server.stop().await;
    }

    /// Looks at the log each time it has changed. `judge` runs without its lock, so that it may ask the provider anything.
    async fn wait<Seen, T>(
        &self,
        what: String,
        bound: Duration,
        look: impl Fn(&Log) -> Seen,
        mut judge: impl FnMut(Seen) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut log = self.stage.log().subscribe();
        let found = async {
            loop {
                let seen = look(&log.borrow_and_update());
                let found = judge(seen);
                if found.is_some() || log.changed().await.is_err() {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(bound, found).await;
        found.ok().flatten().ok_or_else(|| WaitError {
            what,
            bound,
            requests: self.stage.log().borrow().requests.len(),
        })
    }
}

impl ProviderSetup {
    /// Starts the provider on a free port.
    pub async fn start(self) -> Result<Provider, StartError> {
        if let Some(name) = self.scenario.unreachable_branch() {
            return Err(StartError::BranchName { name: name.to_owned() });
        }
        let stage = Arc::new(Stage::new(self.scenario));
        let router = (self.router)(Arc::clone(&stage));
        let server = LocalServer::start(router).await.map_err(StartError::Listen)?;
        Ok(Provider { stage, server })
    }
}

/// A place in an answer where the provider waits for the test.
#[derive(Debug, Clone)]
pub struct Gate {
    name: String,
    stage: Arc<Stage>,
}

impl Gate {
    /// Lets every answer pass, those that wait and those that come.
    pub fn open(&self) {
        self.change(|gate| gate.open = true);
    }

    /// Stops the answers that come here from now on.
    pub fn close(&self) {
        self.change(|gate| *gate = GateState::default());
    }

    /// Whether an answer has come to the gate.
    pub fn is_reached(&self) -> bool {
        self.stage.gates().borrow().get(&self.name).is_some_and(|gate| gate.reached)
    }

    /// Waits until an answer has come to the gate.
    pub async fn wait_reached(&self, bound: Duration) -> Result<(), WaitError> {
        let mut gates = self.stage.gates().subscribe();
        let reached = gates.wait_for(|gates| gates.get(&self.name).is_some_and(|gate| gate.reached));
        match tokio::time::timeout(bound, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(WaitError {
                what: format!("an answer at the gate `{}`", self.name),
                bound,
                requests: self.stage.log().borrow().requests.len(),
            }),
        }
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        self.stage.gates().send_modify(|gates| change(gates.entry(self.name.clone()).or_default()));
    }
}
