//! An isolated environment for one agent CLI.

mod config;
pub(crate) mod run;
pub(crate) mod session;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use teamster::request::Conversation;
use teamster::{RestoreLog, RunRequest, Runtime, SessionOptions};
use teamster_testkit::provider::{Message, Provider, Scenario};
use tempfile::TempDir;

use crate::agents::Agent;
use crate::output::print;
use crate::recording::Recording;
use crate::run_processes::{POLL_INTERVAL, RunProcesses, VARIABLE};
use crate::{DEADLINE, TIMEOUT};
use config::KEY;
use run::TestRun;
use session::TestSession;

/// The program that Codex's launcher starts.
const CODEX: &str = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// A home, an empty project, a provider, and a runtime whose agents inherit nothing else.
#[derive(Debug)]
pub struct TestEnv {
    folder: TempDir,
    agent: &'static str,
    provider: Arc<Provider>,
    environment: Vec<(OsString, OsString)>,
    runtime: Runtime,
    cli: PathBuf,
    args: &'static [&'static str],
    runs: AtomicU32,
}

impl Agent {
    /// Creates an environment for the agent.
    ///
    /// # Errors
    /// If the CLI is not installed.
    pub async fn test_env(&self, scenario: impl Into<Scenario>) -> Result<TestEnv> {
        match self.name {
            "claude" => TestEnv::claude(scenario).await,
            "codex" => TestEnv::codex(scenario).await,
            "gemini" => TestEnv::gemini(scenario).await,
            _ => TestEnv::opencode(scenario).await,
        }
    }

    /// Returns a request that the agent accepts from root, and that fails at the first failure of the model.
    pub fn request(&self, env: &TestEnv, prompt: &str) -> RunRequest {
        let mut request = env.request(prompt);
        match self.name {
            // As root, it accepts full permissions only in a sandbox.
            "claude" => {
                request.env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
                request.env.insert("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned());
            }
            // With `auto`, it asks a second model first.
            "gemini" => request.model = Some("gemini-2.5-flash".to_owned()),
            _ => {}
        }
        request
    }

    /// Waits until a killed agent would not lose this answer any more. Claude Code 2.1.197 saves an answer a moment after it
    /// reports it. The others save it before.
    ///
    /// # Errors
    /// If it is not saved in time.
    pub async fn saved(&self, env: &TestEnv, answer: &str) -> Result<()> {
        if self.name != "claude" {
            return Ok(());
        }
        let projects = env.home().join(".claude/projects");
        let holds = |file: PathBuf| fs::read_to_string(file).is_ok_and(|content| content.contains(answer));
        let files = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let wait = async {
            while !files(projects.clone()).flat_map(files).any(holds) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(TIMEOUT, wait).await.with_context(|| format!("{answer:?} is not saved"))
    }
}

impl TestEnv {
    /// Creates an environment for Claude Code.
    ///
    /// # Errors
    /// If the CLI is not installed.
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

    /// Creates an environment for claude-agent-acp, an ACP agent that contains a Claude Code.
    ///
    /// # Errors
    /// If it is not installed.
    pub async fn claude_agent(scenario: impl Into<Scenario>) -> Result<Self> {
        let mut env = Self::claude(scenario).await?.as_acp_agent(&[]);
        env.cli = program("claude-agent-acp")?;
        Ok(env)
    }

    /// Creates an environment for Gemini CLI.
    ///
    /// # Errors
    /// If the CLI is not installed.
    pub async fn gemini(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::gemini(scenario).start().await?;
        let variables = [("GEMINI_API_KEY", KEY.to_owned()), ("GOOGLE_GEMINI_BASE_URL", provider.base_url())];
        Self::make("gemini", provider, "TMPDIR", variables)
    }

    /// Creates an environment for OpenCode. The provider is `test` in the configuration, with the models `m1` and `m2`.
    ///
    /// # Errors
    /// If the CLI is not installed.
    pub async fn opencode(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::openai_chat(scenario).start().await?;
        let variables = [
            ("OPENCODE_CONFIG_CONTENT", config::opencode(&provider.base_url()).to_string()),
            // No models except those of the configuration.
            ("OPENCODE_MODELS_PATH", concat!(env!("CARGO_MANIFEST_DIR"), "/src/no-models.json").to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            // No package can be downloaded: no program listens on the discard port.
            ("npm_config_registry", "http://127.0.0.1:9/".to_owned()),
            ("npm_config_fetch_retries", "0".to_owned()),
        ];
        let env = Self::make("opencode", provider, "TMPDIR", variables)?;
        // Without these files, it installs a package beside its configuration, in the background.
        let config = env.home().join(".config/opencode");
        fs::create_dir_all(config.join("node_modules"))?;
        let lock = json!({"lockfileVersion": 3, "packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}});
        fs::write(config.join("package-lock.json"), lock.to_string())?;
        Ok(env)
    }

    /// Creates an environment for Codex. It runs the native program, which starts faster than its launcher.
    ///
    /// # Errors
    /// If the CLI is not installed.
    pub async fn codex(scenario: impl Into<Scenario>) -> Result<Self> {
        let provider = Provider::openai_responses(scenario).start().await?;
        let url = format!("{}/v1", provider.base_url());
        let mut env = Self::make("codex", provider, "TMPDIR", [("TEST_API_KEY", KEY.to_owned())])?;
        env.cli = Path::new(env!("CARGO_MANIFEST_DIR")).join(CODEX);
        ensure!(env.cli.exists(), "codex is not installed: run `cargo xtask install-clis`");
        fs::create_dir(env.home().join(".codex"))?;
        fs::write(env.home().join(".codex/config.toml"), config::codex(&url))?;
        Ok(env)
    }

    /// Creates an environment with these variables. `tmp` is the variable for temporary files.
    fn make(
        agent: &'static str,
        provider: Provider,
        tmp: &str,
        variables: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self> {
        let cli = program(agent)?;
        let folder = tempfile::Builder::new().prefix("teamster-test-").tempdir().context("cannot create a home")?;
        for name in ["home", "project", "tmp"] {
            fs::create_dir(folder.path().join(name))?;
        }
        let path = std::env::var_os("PATH").context("PATH is not set")?;
        let environment = [
            (OsString::from("PATH"), path),
            (OsString::from("HOME"), folder.path().join("home").into()),
            (OsString::from(tmp), folder.path().join("tmp").into()),
            (OsString::from("LANG"), OsString::from("C.UTF-8")),
        ];
        let variables = variables.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment: Vec<_> = environment.into_iter().chain(variables).collect();
        let (runtime, provider) = (runtime(folder.path(), &environment), Arc::new(provider));
        Ok(Self { folder, agent, provider, environment, runtime, cli, args: &[], runs: AtomicU32::new(0) })
    }

    /// Runs the CLI as a generic ACP agent, with these arguments.
    pub fn as_acp_agent(mut self, args: &'static [&'static str]) -> Self {
        (self.agent, self.args) = ("acp", args);
        self
    }

    /// Adds variables to the environment of the host.
    pub fn with_variables<'a>(mut self, variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self.runtime = runtime(self.folder.path(), &self.environment);
        self
    }

    /// Returns the agent's home directory.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the agent's working directory. It is empty at first.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Creates a directory beside the project.
    pub fn create_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }

    /// Returns the model provider.
    pub fn provider(&self) -> &Provider {
        &self.provider
    }

    /// Returns the environment of the host, which the agents inherit.
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// Returns the runtime that starts the runs.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Returns a request that runs the CLI in the project.
    pub fn request(&self, prompt: impl Into<String>) -> RunRequest {
        let mut request = RunRequest::new(prompt);
        request.cwd = Some(self.project());
        request.cli_path = Some(self.cli.clone());
        request.cli_args = self.args.iter().map(|argument| (*argument).to_owned()).collect();
        request.limits.deadline = DEADLINE;
        request
    }

    /// Starts a run.
    pub fn start(&self, mut request: RunRequest) -> Result<TestRun> {
        let processes = self.mark(&mut request);
        let run = self.runtime.run(self.agent, request)?;
        Ok(TestRun::new(Arc::clone(&self.provider), run, processes))
    }

    /// Runs to the end.
    pub async fn run(&self, request: RunRequest) -> Result<Recording> {
        self.start(request)?.finish().await
    }

    /// Opens a session. Its turns share the request.
    pub fn open(&self, request: RunRequest) -> Result<TestSession> {
        self.open_with(request, |options| options)
    }

    /// Opens a session with further options.
    pub fn open_with(
        &self,
        mut request: RunRequest,
        change: impl FnOnce(SessionOptions) -> SessionOptions,
    ) -> Result<TestSession> {
        let processes = self.mark(&mut request);
        let session = self.runtime.open(self.agent, change(SessionOptions::new(request)))?;
        Ok(TestSession::new(Arc::clone(&self.provider), session, processes))
    }

    /// Resumes the conversation of a finished run. Checks that the conversation keeps its id and contains
    /// `earlier_prompt`.
    pub async fn resume(
        &self,
        mut request: RunRequest,
        finished: &Recording,
        earlier_prompt: &str,
    ) -> Result<Recording> {
        let id = finished.result.session_id.clone().context("no session id")?;
        request.conversation = Conversation::Resume(id.clone());
        let resumed = self.run(request).await?;
        ensure!(resumed.result.session_id == Some(id), "another session: {:?}", resumed.result);
        let first = resumed.requests.first().context("no request to the model")?;
        let texts: Vec<&str> = first.messages.iter().flat_map(Message::texts).collect();
        ensure!(texts.iter().any(|text| text.contains(earlier_prompt)), "no {earlier_prompt:?} in {texts:?}");
        Ok(resumed)
    }

    /// Adds the variable by which the processes of the run are found.
    pub(crate) fn mark(&self, request: &mut RunRequest) -> RunProcesses {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().file_name().unwrap_or_default().to_string_lossy();
        let processes = RunProcesses::new(format!("{folder}-{number}"));
        request.env.insert(VARIABLE.to_owned(), processes.value().to_owned());
        processes
    }
}

/// Returns the path of a pinned program.
fn program(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("node_modules/.bin").join(name);
    ensure!(path.exists(), "{name} is not installed: run `cargo xtask install-clis`");
    Ok(path)
}

fn runtime(folder: &Path, environment: &[(OsString, OsString)]) -> Runtime {
    let restore_log = RestoreLog::in_directory(folder.join("journals"));
    Runtime::builder().environment(environment.to_owned()).restore_log(restore_log).build()
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        for request in self.provider.requests() {
            let (number, branch, turn, attempt) = (request.number, &request.branch, request.turn, request.attempt);
            print(&format!("request {number}: {branch} turn {turn} attempt {attempt}, {:?}", request.prompts()));
        }
    }
}
