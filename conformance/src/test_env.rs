//! One agent CLI in a world of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use teamster::request::Conversation;
use teamster::{RestoreLog, RunRequest, Runtime, SessionOptions};
use teamster_testkit::provider::{Message, ModelRequest, Provider, Scenario};
use tempfile::TempDir;

use crate::live::Live;
use crate::recording::Recording;
use crate::test_session::TestSession;
use crate::trace::{MARKER, Trace};
use crate::{DEADLINE, print};

/// A key that no vendor knows.
const KEY: &str = "sk-made-up-for-the-lab";

/// The program that Codex's launcher starts.
const CODEX: &str = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// A provider with few retries; and nothing that looks for other hosts.
fn codex_config(url: &str) -> String {
    format!(
        r#"model = "gpt-5.5"
model_provider = "lab"

[model_providers.lab]
name = "lab"
base_url = "{url}"
wire_api = "responses"
env_key = "LAB_API_KEY"
request_max_retries = 1
stream_max_retries = 1

[features]
plugins = false
apps = false
shell_snapshot = false

[analytics]
enabled = false
"#
    )
}

/// A home, an empty project, a provider, and a runtime whose agents know nothing else.
#[derive(Debug)]
pub struct TestEnv {
    folder: TempDir,
    agent: &'static str,
    provider: Provider,
    environment: Vec<(OsString, OsString)>,
    runtime: Runtime,
    cli: PathBuf,
    args: &'static [&'static str],
    runs: AtomicU32,
}

impl TestEnv {
    /// A lab for Claude Code.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn claude(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::anthropic(scenario).start().await?;
        let variables = [
            ("ANTHROPIC_API_KEY", KEY.to_owned()),
            ("ANTHROPIC_BASE_URL", provider.base_url()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ];
        Self::make("claude", provider, "CLAUDE_CODE_TMPDIR", variables)
    }

    /// A lab for claude-agent-acp, which speaks ACP and has a Claude Code of its own.
    ///
    /// # Errors
    /// When it is not installed.
    pub async fn claude_agent(scenario: impl Into<Scenario>) -> Result<Self> {
        let mut lab = Self::claude(scenario).await?.by_acp(&[]);
        lab.cli = bin("claude-agent-acp")?;
        Ok(lab)
    }

    /// A lab for Gemini CLI.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn gemini(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::gemini(scenario).start().await?;
        let variables = [("GEMINI_API_KEY", KEY.to_owned()), ("GOOGLE_GEMINI_BASE_URL", provider.base_url())];
        Self::make("gemini", provider, "TMPDIR", variables)
    }

    /// A lab for OpenCode, whose user has the provider as `lab` in the configuration, with its models `m1` and `m2`.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn opencode(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::openai_chat(scenario).start().await?;
        let variables = [
            ("OPENCODE_CONFIG_CONTENT", opencode_config(&provider.base_url()).to_string()),
            // No models but those of the configuration.
            ("OPENCODE_MODELS_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/src/no-models.json").to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            // Where a package is looked for all the same: nobody listens on the discard port.
            ("npm_config_registry", "http://127.0.0.1:9/".to_owned()),
            ("npm_config_fetch_retries", "0".to_owned()),
        ];
        let lab = Self::make("opencode", provider, "TMPDIR", variables)?;
        // It installs a package beside its configuration, in the background, unless a run before has done so.
        let config = lab.home().join(".config/opencode");
        fs::create_dir_all(config.join("node_modules"))?;
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
        fs::write(config.join("package-lock.json"), lock.to_string())?;
        Ok(lab)
    }

    /// A lab for Codex: its native program, which is quicker than its launcher, and a provider in the user's configuration.
    ///
    /// # Errors
    /// When the CLI is not installed.
    pub async fn codex(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::openai_responses(scenario).start().await?;
        let url = format!("{}/v1", provider.base_url());
        let mut lab = Self::make("codex", provider, "TMPDIR", [("LAB_API_KEY", KEY.to_owned())])?;
        lab.cli = Path::new(env!("CARGO_MANIFEST_DIR")).join(CODEX);
        ensure!(lab.cli.exists(), "codex is not installed: run `cargo xtask install-clis`");
        fs::create_dir(lab.home().join(".codex"))?;
        fs::write(lab.home().join(".codex/config.toml"), codex_config(&url))?;
        Ok(lab)
    }

    /// A lab for an agent whose program has its name, with these variables and one for temporary files.
    fn make(
        agent: &'static str,
        provider: Provider,
        tmp: &str,
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self> {
        let cli = bin(agent)?;
        let folder = tempfile::Builder::new().prefix("teamster-lab-").tempdir().context("cannot make a home")?;
        for name in ["home", "project", "tmp"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let path = std::env::var_os("PATH").context("there is no PATH")?;
        let environment = [
            (OsString::from("PATH"), path),
            (OsString::from("HOME"), folder.path().join("home").into()),
            (OsString::from(tmp), folder.path().join("tmp").into()),
            (OsString::from("LANG"), OsString::from("C.UTF-8")),
        ];
        let variables = variables.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment: Vec<_> = environment.into_iter().chain(variables).collect();
        let runtime = runtime(folder.path(), &environment);
        Ok(Self { folder, agent, provider, environment, runtime, cli, args: &[], runs: AtomicU32::new(0) })
    }

    /// The lab with its CLI as an agent of which nothing is known but that it speaks ACP, when it has these arguments.
    pub fn by_acp(mut self, args: &'static [&'static str]) -> Self {
        (self.agent, self.args) = ("acp", args);
        self
    }

    /// The lab with more variables in the environment of its host.
    pub fn with_variables<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self.runtime = runtime(self.folder.path(), &self.environment);
        self
    }

    /// The agent's home directory.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The directory that the agent works in, empty at first.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Makes a directory beside the project.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(path)
    }

    /// The model's side.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// All that the agents of this lab know of their surroundings.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// What the runs of this lab are started by.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A request that runs this lab's CLI in its project.
    pub fn request(&self, prompt: impl Into<String>) -> RunRequest {
        let mut request = RunRequest::new(prompt);
        request.cwd = Some(self.project());
        request.cli_path = Some(self.cli.clone());
        request.cli_args = self.args.iter().map(|argument| (*argument).to_owned()).collect();
        request.limits.deadline = DEADLINE;
        request
    }

    /// Starts a run. Its processes are found by the [`Trace`].
    pub fn start(&self, mut request: RunRequest) -> Result<Live<'_>> {
        let trace = self.mark(&mut request);
        let run = self.runtime.run(self.agent, request)?;
        Ok(Live::new(self, run, trace))
    }

    /// Opens a session with this frame.
    pub fn open(
        &self,
        frame: RunRequest,
        how: impl FnOnce(SessionOptions) -> SessionOptions,
    ) -> Result<TestSession<'_>> {
        let mut frame = frame;
        let trace = self.mark(&mut frame);
        let session = self.runtime.open(self.agent, how(SessionOptions::new(frame)))?;
        Ok(TestSession::new(self, session, trace))
    }

    fn mark(&self, request: &mut RunRequest) -> Trace {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().file_name().unwrap_or_default().to_string_lossy();
        let trace = Trace::new(format!("{folder}-{number}"));
        request.env.insert(MARKER.to_owned(), trace.name().to_owned());
        trace
    }

    /// Runs to the end.
    pub async fn run(&self, request: RunRequest) -> Result<Recording> {
        self.start(request)?.finish().await
    }

    /// Goes on with the conversation of a run that has ended, which the agent has to know by its id and in which it has to
    /// have heard `said`.
    pub async fn resume(&self, mut request: RunRequest, ended: &Recording, said: &str) -> Result<Recording> {
        let id = ended.result.session_id.clone().context("no session id")?;
        request.conversation = Conversation::Resume(id.clone());
        let resumed = self.run(request).await?;
        ensure!(resumed.result.session_id == Some(id), "another session: {:?}", resumed.result);
        let asked = resumed.requests.first().context("the model was not asked")?;
        let heard: Vec<&str> = asked.messages.iter().flat_map(Message::texts).collect();
        ensure!(heard.iter().any(|text| text.contains(said)), "not heard before: {said:?}, but {heard:?}");
        Ok(resumed)
    }

    /// The requests for an answer from this one on, counted from zero.
    pub(crate) fn requests_from(&self, first: usize) -> Vec<Arc<ModelRequest>> {
        self.provider.requests().into_iter().skip(first).collect()
    }
}

/// A program that is pinned.
fn bin(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin").join(name);
    ensure!(path.exists(), "{name} is not installed: run `cargo xtask install-clis`");
    Ok(path)
}

fn runtime(folder: &Path, environment: &[(OsString, OsString)]) -> Runtime {
    let journals = RestoreLog::in_directory(folder.join("journals"));
    Runtime::builder().environment(environment.to_owned()).restore_log(journals).build()
}

/// Prices are in dollars a million tokens.
fn opencode_config(base_url: &str) -> Value {
    let model = json!({
        "tool_call": true,
        "reasoning": true,
        "attachment": true,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": {"context": 1_000_000, "output": 8192},
        "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
    });
    json!({
        "model": "lab/m1",
        "small_model": "lab/m1",
        "share": "disabled",
        "provider": {"lab": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": format!("{base_url}/v1"), "apiKey": KEY},
            "models": {"m1": model, "m2": model},
        }},
    })
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        for request in self.provider.requests() {
            let (number, branch, turn, attempt) = (request.number, &request.branch, request.turn, request.attempt);
            print(&format!("request {number}: {branch} turn {turn} attempt {attempt}, {:?}", request.prompts()));
        }
    }
}
