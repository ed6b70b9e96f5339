//! A gateway over a store in a temporary directory, with the fake agent as the CLI of Claude Code.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use teamster::{HostLease, Ledger, Runtime};
use teamster_channel::Channel;
use teamster_gateway::config::Config;
use teamster_gateway::{Clock, Gateway, IncomingMessage, MessageTarget, NewConversationRequest, Parts, Running};
use teamster_store::{
    AcceptedTurn, ConversationId, HostId, MessageMode, Seq, SqliteOptions, SqliteStore, Turn, TurnId, TurnState,
};
use teamster_testkit::fake::Script;
use tokio::time::timeout;

/// The time limit of each condition.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) struct TestGateway {
    pub(crate) gateway: Gateway,
    running: Option<Running>,
    pub(crate) directory: Arc<tempfile::TempDir>,
}

impl TestGateway {
    /// Starts a gateway whose agent plays this scenario.
    pub(crate) async fn start(scenario: &str) -> Self {
        Self::with_config(scenario, |_| {}).await
    }

    pub(crate) async fn with_config(scenario: &str, change: impl FnOnce(&mut Config)) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        write_agent(directory.path(), scenario);
        Self::in_directory(directory, change).await
    }

    /// Starts a gateway with these channels. Their tasks do not run.
    pub(crate) async fn with_channels(scenario: &str, channels: Vec<Arc<dyn Channel>>) -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        write_agent(directory.path(), scenario);
        Self::open(directory, channels, |_| {}).await
    }

    /// Starts another gateway over the same directory.
    pub(crate) async fn in_directory(directory: Arc<tempfile::TempDir>, change: impl FnOnce(&mut Config)) -> Self {
        Self::open(directory, Vec::new(), change).await
    }

    pub(crate) async fn open(
        directory: Arc<tempfile::TempDir>,
        channels: Vec<Arc<dyn Channel>>,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let path = directory.path();
        let mut config = Config::default();
        config.data_dir = path.join("data");
        config.turn.directory = path.join("work");
        config.turn.cli_path = Some(path.join("agent"));
        config.retries.first_delay = Duration::from_millis(20);
        config.timing.shutdown_timeout = Duration::from_millis(200);
        change(&mut config);
        let store = SqliteStore::open(path.join("store.db"), SqliteOptions::default()).await.unwrap();
        let lease = HostLease::new().unwrap();
        let runtime = Runtime::builder().ledger(Ledger::in_directory(path.join("ledger"))).host_lease(lease).build();
        let gateway = Gateway::new(Parts {
            config,
            store: Arc::new(store),
            runtime: Arc::new(runtime),
            channels,
            host: HostId::new("test"),
            clock: Clock::system(),
        });
        Self::of(gateway, directory).await
    }

    /// Starts this gateway.
    pub(crate) async fn of(gateway: Gateway, directory: Arc<tempfile::TempDir>) -> Self {
        let running = gateway.start().await.unwrap();
        Self { gateway, running: Some(running), directory }
    }

    pub(crate) async fn conversation(&self) -> ConversationId {
        let request = NewConversationRequest {
            channel: "http".into(),
            author: "test".into(),
            ..NewConversationRequest::default()
        };
        self.gateway.create_conversation(request).await.unwrap().id
    }

    pub(crate) async fn send(&self, conversation: ConversationId, text: &str) -> AcceptedTurn {
        self.send_as(conversation, text, MessageMode::Queue).await
    }

    pub(crate) async fn send_as(&self, conversation: ConversationId, text: &str, mode: MessageMode) -> AcceptedTurn {
        let message = IncomingMessage {
            target: MessageTarget::Conversation(conversation),
            channel_ids: Vec::new(),
            idempotency: None,
            author: "test".to_owned(),
            text: text.to_owned(),
            attachments: Vec::new(),
            mode,
        };
        self.gateway.accept(message).await.unwrap().turn
    }

    /// Waits until a turn has ended.
    pub(crate) async fn ended(&self, turn: TurnId) -> Turn {
        let wait = async {
            let conversation = self.gateway.store().turn(turn).await.unwrap().unwrap().conversation;
            let mut events = self.gateway.events(conversation, Seq::START);
            loop {
                let found = self.gateway.store().turn(turn).await.unwrap().unwrap();
                if !matches!(found.state, TurnState::Queued | TurnState::Running) {
                    return found;
                }
                events.next().await.unwrap();
            }
        };
        timeout(LIMIT, wait).await.expect("the turn ends in time")
    }

    /// Waits for an event of this type, and returns its body.
    pub(crate) async fn event(&self, conversation: ConversationId, kind: &str) -> Value {
        let wait = async {
            let mut events = self.gateway.events(conversation, Seq::START);
            loop {
                let event = events.next().await.unwrap();
                if event.kind == kind {
                    return event.body.to().unwrap();
                }
            }
        };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("no event {kind}"))
    }

    /// Returns the log so far as types, with the texts of deltas.
    pub(crate) async fn log(&self, conversation: ConversationId) -> Vec<String> {
        let page = self.gateway.store().events(conversation, Seq::START, 1000).await.unwrap();
        let numbers: Vec<u64> = page.events.iter().map(|event| event.seq.get()).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "the log has no gap");
        page.events.iter().map(|event| event.kind.clone()).collect()
    }

    pub(crate) async fn shutdown(&mut self) {
        timeout(LIMIT, self.running.take().unwrap().shutdown()).await.expect("the shutdown ends in time");
    }

    /// Stops all tasks as a crash does: nothing is recorded. Returns the directory for another start.
    pub(crate) fn crash(self) -> Arc<tempfile::TempDir> {
        Arc::clone(&self.directory)
    }
}

/// Writes a shell program as the CLI.
pub(crate) fn write_program(directory: &Path, program: &str) {
    std::fs::create_dir_all(directory.join("work")).unwrap();
    // A running shell reads its file bit by bit, so the file is replaced as a whole.
    let new = directory.join("agent.new");
    std::fs::write(&new, program).unwrap();
    std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::rename(new, directory.join("agent")).unwrap();
}

/// Writes a program that plays a script of steps.
pub(crate) fn write_script(directory: &Path, script: &Script) {
    std::fs::write(directory.join("script.json"), script.to_json()).unwrap();
    let (file, agent) = (directory.join("script.json"), env!("CARGO_BIN_EXE_teamster-fake-agent"));
    write_program(directory, &format!("#!/bin/sh\nTEAMSTER_FAKE_SCRIPT='{}' exec '{agent}'\n", file.display()));
}

/// Writes a program that plays a scenario as Claude Code.
pub(crate) fn write_agent(directory: &Path, scenario: &str) {
    std::fs::write(directory.join("scenario.toml"), scenario).unwrap();
    write_program(directory, &format!("#!/bin/sh\n{}", play_scenario(directory)));
}

/// Returns the line of a shell program that plays the scenario.
pub(crate) fn play_scenario(directory: &Path) -> String {
    format!(
        "TEAMSTER_FAKE_SCENARIO='{}' TEAMSTER_FAKE_CLI=claude exec '{}' \"$@\"\n",
        directory.join("scenario.toml").display(),
        env!("CARGO_BIN_EXE_teamster-fake-agent"),
    )
}
