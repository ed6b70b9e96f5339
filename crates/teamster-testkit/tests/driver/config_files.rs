//! Entries in the user's configuration files: present during the run, and removed without a trace
//! after it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use teamster::agent::claude::Claude;
use teamster::agent::launch::{ConfigDirectory, ConfigFile, ConfigFormat};
use teamster::agent::{Agent, Plan};
use teamster::event::{ErrorCode, WarningCode};
use teamster::request::RequestError;
use teamster::{Registry, RestoreLog, Run, RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::test_env::{
    SHORT, TestEnv, agent, block_until, bounded, is_text, read_until, rest_after, rest_of, wait_until,
};

const USER_CONFIG: &str = "# mine\n[servers.user]\ncommand = \"u\"\n";

/// An agent that reads its servers only from a file in its home directory. The prompt names one
/// server.
struct HomeConfigAgent;

impl Agent for HomeConfigAgent {
    fn name(&self) -> &'static str {
        "home-config"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut plan = Claude.plan(request)?;
        plan.launch.config_files.push(ConfigFile {
            directory: ConfigDirectory::Home(&[("HOMELY_HOME", "conf")]),
            names: &["config.toml"],
            format: ConfigFormat::Toml,
            key: "servers",
            entries: [(request.prompt.clone(), json!({"command": "x"}))].into(),
            template: "",
        });
        Ok(plan)
    }
}

struct ConfigHome {
    env: TestEnv,
}

impl ConfigHome {
    fn new() -> Self {
        let mut registry = Registry::default();
        registry.register(HomeConfigAgent);
        let mut env = TestEnv::with_runtime(Runtime::new());
        let journals = RestoreLog::in_directory(env.path("journals"));
        env.runtime = Runtime::builder().registry(registry).restore_log(journals).build();
        let home = Self { env };
        fs::create_dir(home.env.path("conf")).unwrap();
        fs::write(home.file(), USER_CONFIG).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.env.path("conf/config.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn request(&self, server: &str, script: &Script) -> RunRequest {
        let mut request = self.env.request(script);
        server.clone_into(&mut request.prompt);
        request.env.insert("HOMELY_HOME".to_owned(), self.env.path("").to_str().unwrap().to_owned());
        request
    }

    fn start(&self, request: RunRequest) -> Run {
        self.env.runtime.run("home-config", request).unwrap()
    }

    fn assert_untouched(&self) {
        assert_eq!(self.text(), USER_CONFIG);
        let left: Vec<_> = fs::read_dir(self.env.path("journals")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn entries_exist_during_the_run_and_the_file_is_restored_before_done() {
    let home = ConfigHome::new();
    let mut run = home.start(home.request("ours", &agent(&home.env).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    let text = home.text();
    assert!(text.starts_with(USER_CONFIG) && text.contains("[servers.ours]"), "{text}");
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    stream.assert_aborted();
    assert!(stream.warnings(&WarningCode::ConfigNotRestored).is_empty());
    home.assert_untouched();
}

#[tokio::test]
async fn dropping_a_run_restores_the_file() {
    let home = ConfigHome::new();
    let mut run = home.start(home.request("ours", &agent(&home.env).claude_text("Hello").hang()));
    read_until(&mut run, is_text).await;
    drop(run);
    bounded("shutdown", home.env.runtime.wait_idle()).await;
    home.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_run_at_any_moment_of_its_start_restores_the_file() {
    let home = ConfigHome::new();
    for turn in 0..10_u64 {
        let mut request = home.request("ours", &agent(&home.env).claude_text("Hello").hang());
        request.limits.grace = SHORT;
        let run = home.start(request);
        tokio::time::sleep(Duration::from_millis(2 * turn)).await;
        drop(run);
        bounded("shutdown", home.env.runtime.wait_idle()).await;
        home.assert_untouched();
    }
}

#[test]
fn the_end_of_the_tokio_runtime_restores_the_file() {
    let home = ConfigHome::new();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let run = tokio.block_on(async {
        let mut run = home.start(home.request("ours", &agent(&home.env).claude_text("Hello").hang()));
        read_until(&mut run, is_text).await;
        run
    });
    tokio.shutdown_timeout(Duration::from_secs(30));
    drop(run);
    block_until("the file is restored", || home.text() == USER_CONFIG);
}

#[tokio::test]
async fn a_failure_before_the_start_leaves_the_file_unchanged() {
    let home = ConfigHome::new();
    let mut request = home.request("ours", &Script::new());
    request.cli_path = Some(home.env.path("nowhere"));
    rest_of(&mut home.start(request)).await.assert_failed(&ErrorCode::CliNotFound);
    home.assert_untouched();
    let mut request = home.request("ours", &Script::new());
    request.cli_path = Some(home.env.path("conf/config.toml"));
    rest_of(&mut home.start(request)).await.assert_failed(&ErrorCode::SpawnFailed);
    home.assert_untouched();
}

#[tokio::test]
async fn a_file_that_cannot_contain_entries_fails_the_run_and_stays_unchanged() {
    let home = ConfigHome::new();
    fs::write(home.file(), "servers = 1").unwrap();
    let stream = rest_of(&mut home.start(home.request("ours", &Script::new()))).await;
    let why = stream.assert_failed(&ErrorCode::Config);
    assert!(why.contains("conf/config.toml") && why.contains("\"servers\" is a single value"), "{why}");
    assert_eq!(home.text(), "servers = 1");
}

#[tokio::test]
async fn overlapping_runs_have_separate_entries_and_the_last_one_restores_the_file() {
    let home = ConfigHome::new();
    let script = agent(&home.env).claude_text("Hello").hang();
    let (mut first, mut second) =
        (home.start(home.request("alpha", &script)), home.start(home.request("beta", &script)));
    read_until(&mut first, is_text).await;
    read_until(&mut second, is_text).await;
    assert!(home.text().contains("alpha") && home.text().contains("beta"));
    drop(first);
    wait_until("alpha is out", || !home.text().contains("alpha")).await;
    assert!(home.text().contains("beta"));
    drop(second);
    bounded("shutdown", home.env.runtime.wait_idle()).await;
    home.assert_untouched();
}

#[tokio::test]
async fn a_user_edit_during_the_run_is_kept() {
    let home = ConfigHome::new();
    let mut run = home.start(home.request("ours", &agent(&home.env).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    fs::write(home.file(), home.text().replace("mine", "edited")).unwrap();
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    assert!(stream.warnings(&WarningCode::ConfigNotRestored).is_empty());
    assert_eq!(home.text(), USER_CONFIG.replace("mine", "edited"));
}

#[tokio::test]
async fn a_file_that_became_invalid_during_the_run_is_kept_and_reported_before_done() {
    let home = ConfigHome::new();
    let mut run = home.start(home.request("ours", &agent(&home.env).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    fs::write(home.file(), "[ broken").unwrap();
    run.control().abort();
    let stream = rest_after(events, &mut run).await;
    let data = stream.warnings(&WarningCode::ConfigNotRestored)[0].data.clone().unwrap();
    assert_eq!(data["path"], json!(home.file().canonicalize().unwrap()));
    assert_eq!(fs::read_to_string(data["original"].as_str().unwrap()).unwrap(), USER_CONFIG);
    assert_eq!(home.text(), "[ broken");
}

#[tokio::test]
async fn a_retried_run_has_its_entries_again() {
    let home = ConfigHome::new();
    let overload = agent(&home.env).claude_api_error(529, "Overloaded.").read_to_end().exit(1);
    let again = agent(&home.env).claude_text("Hello").hang();
    let script = Script::new().play_next(&home.env.path("attempts"), [overload, again]);
    let mut request = home.request("ours", &script);
    (request.retries.max, request.retries.base) = (1, Duration::ZERO);
    let mut run = home.start(request);
    let events = read_until(&mut run, is_text).await;
    assert!(home.text().contains("ours"));
    run.control().abort();
    rest_after(events, &mut run).await;
    home.assert_untouched();
}
