//! Entries in a configuration file of the user's: there while the run lives, and gone without a trace after it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use teamster::agent::claude::Claude;
use teamster::agent::{Agent, Plan};
use teamster::event::{ErrorCode, WarningCode};
use teamster::launch::{ConfigDirectory, ConfigFile, ConfigFormat};
use teamster::request::RequestError;
use teamster::{Journals, Registry, Run, RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::lab::{Lab, SHORT, agent, block_until, bounded, eventually, is_text, read_until, rest_after, rest_of};

const THEIRS: &str = "# mine\n[servers.user]\ncommand = \"u\"\n";

/// An agent that takes its servers from a file in its home alone. The prompt names one.
struct Homely;

impl Agent for Homely {
    fn name(&self) -> &'static str {
        "homely"
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

struct Home {
    lab: Lab,
}

impl Home {
    fn new() -> Self {
        let mut registry = Registry::default();
        registry.register(Homely);
        let mut lab = Lab::with_runtime(Runtime::new());
        let journals = Journals::in_directory(lab.path("journals"));
        lab.runtime = Runtime::with_registry(registry).restoring_by(journals);
        let home = Self { lab };
        fs::create_dir(home.lab.path("conf")).unwrap();
        fs::write(home.file(), THEIRS).unwrap();
        home
    }

    fn file(&self) -> PathBuf {
        self.lab.path("conf/config.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn request(&self, server: &str, script: &Script) -> RunRequest {
        let mut request = self.lab.request(script);
        server.clone_into(&mut request.prompt);
        request.env.insert("HOMELY_HOME".to_owned(), self.lab.path("").to_str().unwrap().to_owned());
        request
    }

    fn start(&self, request: RunRequest) -> Run {
        self.lab.runtime.run("homely", request).unwrap()
    }

    fn assert_untouched(&self) {
        assert_eq!(self.text(), THEIRS);
        let left: Vec<_> = fs::read_dir(self.lab.path("journals")).into_iter().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn entries_are_there_while_the_run_lives_and_the_file_is_what_it_was_before_the_run_is_done() {
    let home = Home::new();
    let mut run = home.start(home.request("ours", &agent(&home.lab).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    let text = home.text();
    assert!(text.starts_with(THEIRS) && text.contains("[servers.ours]"), "{text}");
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    told.is_aborted();
    assert!(told.warnings(&WarningCode::ConfigNotRestored).is_empty());
    home.assert_untouched();
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_the_file_as_it_was() {
    let home = Home::new();
    let mut run = home.start(home.request("ours", &agent(&home.lab).claude_text("Hello").hang()));
    read_until(&mut run, is_text).await;
    drop(run);
    bounded("shutdown", home.lab.runtime.shutdown()).await;
    home.assert_untouched();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_dropped_at_any_moment_of_its_start_leaves_the_file_as_it_was() {
    let home = Home::new();
    for turn in 0..10_u64 {
        let mut request = home.request("ours", &agent(&home.lab).claude_text("Hello").hang());
        request.limits.grace = SHORT;
        let run = home.start(request);
        tokio::time::sleep(Duration::from_millis(2 * turn)).await;
        drop(run);
        bounded("shutdown", home.lab.runtime.shutdown()).await;
        home.assert_untouched();
    }
}

#[test]
fn the_end_of_the_tokio_runtime_leaves_the_file_as_it_was() {
    let home = Home::new();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let run = tokio.block_on(async {
        let mut run = home.start(home.request("ours", &agent(&home.lab).claude_text("Hello").hang()));
        read_until(&mut run, is_text).await;
        run
    });
    tokio.shutdown_timeout(Duration::from_secs(30));
    drop(run);
    block_until("the file is restored", || home.text() == THEIRS);
}

#[tokio::test]
async fn what_fails_before_the_start_leaves_the_file_as_it_was() {
    let home = Home::new();
    let mut request = home.request("ours", &Script::new());
    request.cli_path = Some(home.lab.path("nowhere"));
    rest_of(&mut home.start(request)).await.failed(&ErrorCode::CliNotFound);
    home.assert_untouched();
    let mut request = home.request("ours", &Script::new());
    request.cli_path = Some(home.lab.path("conf/config.toml"));
    rest_of(&mut home.start(request)).await.failed(&ErrorCode::SpawnFailed);
    home.assert_untouched();
}

#[tokio::test]
async fn a_file_that_cannot_take_entries_fails_the_run_and_stays() {
    let home = Home::new();
    fs::write(home.file(), "servers = 1").unwrap();
    let told = rest_of(&mut home.start(home.request("ours", &Script::new()))).await;
    let why = told.failed(&ErrorCode::Config);
    assert!(why.contains("conf/config.toml") && why.contains("\"servers\" is a single value"), "{why}");
    assert_eq!(home.text(), "servers = 1");
}

#[tokio::test]
async fn runs_that_overlap_have_their_own_entries_and_the_last_one_restores() {
    let home = Home::new();
    let script = agent(&home.lab).claude_text("Hello").hang();
    let (mut first, mut second) =
        (home.start(home.request("alpha", &script)), home.start(home.request("beta", &script)));
    read_until(&mut first, is_text).await;
    read_until(&mut second, is_text).await;
    assert!(home.text().contains("alpha") && home.text().contains("beta"));
    drop(first);
    eventually("alpha is out", || !home.text().contains("alpha")).await;
    assert!(home.text().contains("beta"));
    drop(second);
    bounded("shutdown", home.lab.runtime.shutdown()).await;
    home.assert_untouched();
}

#[tokio::test]
async fn an_edit_made_during_the_run_stays() {
    let home = Home::new();
    let mut run = home.start(home.request("ours", &agent(&home.lab).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    fs::write(home.file(), home.text().replace("mine", "edited")).unwrap();
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    assert!(told.warnings(&WarningCode::ConfigNotRestored).is_empty());
    assert_eq!(home.text(), THEIRS.replace("mine", "edited"));
}

#[tokio::test]
async fn a_file_that_was_broken_meanwhile_is_left_and_told_before_the_run_is_done() {
    let home = Home::new();
    let mut run = home.start(home.request("ours", &agent(&home.lab).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    fs::write(home.file(), "[ broken").unwrap();
    run.control().abort();
    let told = rest_after(events, &mut run).await;
    let data = told.warnings(&WarningCode::ConfigNotRestored)[0].data.clone().unwrap();
    assert_eq!(data["path"], json!(home.file().canonicalize().unwrap()));
    assert_eq!(fs::read_to_string(data["original"].as_str().unwrap()).unwrap(), THEIRS);
    assert_eq!(home.text(), "[ broken");
}

#[tokio::test]
async fn a_run_that_is_started_again_has_its_entries_again() {
    let home = Home::new();
    let overload = agent(&home.lab).claude_api_error(529, "Overloaded.").read_to_end().exit(1);
    let again = agent(&home.lab).claude_text("Hello").hang();
    let script = Script::new().play_next(&home.lab.path("attempts"), [overload, again]);
    let mut request = home.request("ours", &script);
    (request.retries.max, request.retries.base) = (1, Duration::ZERO);
    let mut run = home.start(request);
    let events = read_until(&mut run, is_text).await;
    assert!(home.text().contains("ours"));
    run.control().abort();
    rest_after(events, &mut run).await;
    home.assert_untouched();
}
