//! A gateway (`teamster serve`) that drives a real CLI, and the calls of its API.

mod client;
mod process;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::timeout;

use self::client::Client;
pub use self::client::Events;
pub use self::process::teamster;
use self::process::{Process, end_of};
use crate::agents::Agent;
use crate::output::print;
use crate::run_processes::RunProcesses;
use crate::test_env::TestEnv;
use crate::{DEADLINE, TIMEOUT};

/// The token of the operator.
pub const TOKEN: &str = "made-up-token-of-the-operator-for-tests";

/// A gateway over the home, the project and the provider of a test environment. Its agents inherit nothing else.
#[derive(Debug)]
pub struct TestGateway {
    program: PathBuf,
    args: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    project: PathBuf,
    log: PathBuf,
    processes: RunProcesses,
    process: Process,
    client: Client,
}

impl TestGateway {
    /// Starts a gateway. `more` has further keys of the table `[serve]`.
    ///
    /// # Errors
    /// If the command is not built, or the gateway does not start.
    pub async fn start(agent: &Agent, env: &TestEnv, more: &str) -> Result<Self> {
        let mut request = agent.request(env, "");
        let processes = env.mark(&mut request);
        let directory = env.create_directory("gateway")?;
        let (config, log) = (directory.join("config.toml"), directory.join("log"));
        let cli = request.cli_path.context("the path of the CLI")?;
        let mut table = format!("[serve]\nlisten = \"127.0.0.1:0\"\nagent = {}\n", json!(agent.name));
        for (key, value) in [("cli_path", &cli), ("directory", &env.project()), ("data_dir", &directory.join("data"))] {
            writeln!(table, "{key} = {}", json!(value))?;
        }
        if let Some(model) = agent.gateway_model() {
            writeln!(table, "model = {}", json!(model))?;
        }
        // The test's own key does not belong to a vendor.
        writeln!(table, "keep_keys = [\"TEST_API_KEY\"]\ndeadline = \"{}s\"\n{more}", DEADLINE.as_secs())?;
        fs::write(&config, table).context("cannot write the configuration")?;
        let mut variables = env.environment().to_vec();
        variables.extend(request.env.into_iter().map(|(name, value)| (name.into(), value.into())));
        variables.push(("TEAMSTER_TOKEN".into(), TOKEN.into()));
        variables.push(("TEAMSTER_LEDGER_DIR".into(), directory.join("ledger").into()));
        let (program, args) = (teamster()?, vec!["serve".into(), "--config".into(), config.into()]);
        let process = Process::start(command(&program, &args, &variables, &env.project()), &log).await?;
        let client = Client::new(&process.url, TOKEN)?;
        Ok(Self { program, args, variables, project: env.project(), log, processes, process, client })
    }

    /// Returns the URL of the API.
    pub fn url(&self) -> &str {
        &self.process.url
    }

    /// Returns the processes of the gateway and of its agents.
    pub fn processes(&self) -> RunProcesses {
        self.processes.clone()
    }

    /// Kills the gateway with SIGKILL, and waits until none of its processes is left.
    pub async fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.processes.wait_until_gone(TIMEOUT).await.context("a killed gateway leaves processes")
    }

    /// Starts the gateway again over the same data.
    pub async fn restart(&mut self) -> Result<()> {
        let command = command(&self.program, &self.args, &self.variables, &self.project);
        self.process = Process::start(command, &self.log).await?;
        self.client = Client::new(&self.process.url, TOKEN)?;
        Ok(())
    }

    /// Stops the gateway as an operator does, and checks that no process is left.
    pub async fn stop(mut self) -> Result<()> {
        let status = self.process.stop().await?;
        ensure!(status.success(), "the gateway ends with {status}:\n{}", end_of(&self.log));
        self.processes.wait_until_gone(TIMEOUT).await.context("a stopped gateway leaves processes")
    }

    /// Makes a call, and returns its status and its JSON.
    pub async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
        self.client.call(method, path, body).await.with_context(|| end_of(&self.log))
    }

    /// Returns what a path has.
    pub async fn get(&self, path: &str) -> Result<Value> {
        let (status, value) = self.call("GET", path, None).await?;
        ensure!(status == 200, "GET {path}: {status} {value}");
        Ok(value)
    }

    /// Creates a conversation, and returns its id.
    pub async fn create_conversation(&self, fields: &Value) -> Result<String> {
        let (status, created) = self.call("POST", "/v1/conversations", Some(fields)).await?;
        ensure!(status == 201, "{status} {created}");
        Ok(text(&created, "id")?.to_owned())
    }

    /// Sends a message, and returns its turn.
    pub async fn send(&self, conversation: &str, message: &str) -> Result<String> {
        let path = format!("/v1/conversations/{conversation}/messages");
        let (status, accepted) = self.call("POST", &path, Some(&json!({ "text": message }))).await?;
        ensure!(status == 202, "{status} {accepted}");
        Ok(text(&accepted, "turnId")?.to_owned())
    }

    /// Waits for the end of a turn, and returns it.
    pub async fn ended(&self, turn: &str) -> Result<Value> {
        let wait = async {
            loop {
                let found = self.get(&format!("/v1/turns/{turn}?wait=60")).await?;
                if !matches!(text(&found, "state")?, "queued" | "running") {
                    return Ok(found);
                }
            }
        };
        let ended = timeout(DEADLINE + TIMEOUT, wait).await;
        ended.with_context(|| format!("the turn does not end:\n{}", end_of(&self.log)))?
    }

    /// Sends a message, and returns its turn when that has an answer.
    pub async fn answered(&self, conversation: &str, message: &str) -> Result<Value> {
        let turn = self.send(conversation, message).await?;
        let turn = self.ended(&turn).await?;
        ensure!(turn.get("state") == Some(&"done".into()), "{turn}");
        Ok(turn)
    }

    /// Opens the event stream of a conversation at its start.
    pub async fn events(&self, conversation: &str) -> Result<Events> {
        self.client.events(&format!("/v1/conversations/{conversation}/events")).await
    }

    /// Waits for an event of a turn, and returns it.
    pub async fn event(&self, conversation: &str, turn: &str, kind: &str) -> Result<Value> {
        let (turn, kind) = (Value::from(turn), Value::from(kind));
        let find = async {
            let mut events = self.events(conversation).await?;
            loop {
                let event = events.next().await?;
                if event.get("turnId") == Some(&turn) && event.get("type") == Some(&kind) {
                    return Ok(event);
                }
            }
        };
        let found = timeout(DEADLINE, find).await;
        found.with_context(|| format!("the turn has no event {kind}:\n{}", end_of(&self.log)))?
    }

    /// Returns the log of a conversation, and checks that its numbers have no gap.
    pub async fn log(&self, conversation: &str) -> Result<Vec<Value>> {
        let last = self.get(&format!("/v1/conversations/{conversation}")).await?.get("lastSeq").and_then(Value::as_u64);
        let last = last.context("no number of the last event")?;
        let mut events = self.events(conversation).await?;
        let mut log = Vec::new();
        for seq in 1..=last {
            let event = timeout(TIMEOUT, events.next()).await.context("an event is missing")??;
            print(&event.to_string());
            ensure!(event.get("seq") == Some(&seq.into()), "not the event {seq}: {event}");
            log.push(event);
        }
        Ok(log)
    }
}

impl Agent {
    /// Returns the model that the gateway's configuration needs for this agent.
    fn gateway_model(&self) -> Option<&'static str> {
        match self.name {
            // With `auto`, it asks a second model first.
            "gemini" => Some("gemini-2.5-flash"),
            // The name has its provider, whose keys are passed.
            "opencode" => Some("test/m1"),
            _ => None,
        }
    }
}

fn command(program: &PathBuf, args: &[OsString], variables: &[(OsString, OsString)], directory: &PathBuf) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(variables.iter().cloned()).current_dir(directory);
    command
}

/// Returns a text of a JSON object.
fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str> {
    value[field].as_str().with_context(|| format!("no {field} in {value}"))
}
