//! A disk that does not respond, such as a network disk, delays only the run that waiting for it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster::agent::launch::{Launch, ShadowEntry, ShadowHome, Stdin};
use teamster::agent::protocol::{Action, Input, Protocol};
use teamster::agent::{Agent, Plan};
use teamster::request::RequestError;
use teamster::{Ledger, Registry, Run, RunRequest, Runtime};
use teamster_testkit::fake::{SCRIPT_ENV, Script};

use crate::test_env::{SHORT, TestEnv, agent, bounded, fake_agent, rest_of, success_end, wait_until};

/// An agent that gets a copy of the user's settings, and succeeds when it exits.
struct SettingsAgent;

impl Agent for SettingsAgent {
    fn name(&self) -> &'static str {
        "settings-agent"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut launch = Launch::new(fake_agent());
        launch.stdin = Stdin::Closed;
        launch.env(SCRIPT_ENV, request.prompt.as_str());
        let entries = vec![("settings", ShadowEntry::Copy)];
        launch.shadow_home =
            Some(ShadowHome { name: "home", homes: &["SETTLED_HOME"], folder: ".settled", kept: &[], entries });
        Ok(Plan { launch, protocol: Box::new(SettingsAgent) })
    }
}

impl Protocol for SettingsAgent {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        if let Input::Exited(_) = input {
            actions.push(Action::Outcome(Box::default()));
        }
    }
}

/// A home directory whose settings cannot be read until the disk responds.
struct SlowDisk {
    home: tempfile::TempDir,
    settings: PathBuf,
}

impl SlowDisk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join(".settled/settings");
        fs::create_dir(home.path().join(".settled")).unwrap();
        assert!(Command::new("mkfifo").arg(&settings).status().unwrap().success());
        Self { home, settings }
    }

    fn respond(&self) {
        // Opened for both directions, so that it does not wait for a reader.
        let mut pipe = File::options().read(true).write(true).open(&self.settings).unwrap();
        pipe.write_all(b"theirs").unwrap();
    }
}

/// Ends the blocked thread, so that a failing test does not wait for it.
impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.respond();
    }
}

fn test_env(ledger: &Path, home: &Path) -> TestEnv {
    let mut registry = Registry::default();
    registry.register(SettingsAgent);
    let environment = std::env::vars_os().chain([("SETTLED_HOME".into(), home.into())]);
    let runtime =
        Runtime::builder().registry(registry).environment(environment).ledger(Ledger::in_directory(ledger)).build();
    TestEnv::with_runtime(runtime)
}

/// Starts a run that waiting for its settings.
fn start(env: &TestEnv) -> Run {
    let script = Script::new().write_pid(&env.pid_file(), "settings-agent");
    let mut request = RunRequest::new(script.to_json());
    request.limits.grace = SHORT;
    env.runtime.run("settings-agent", request).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_waits_for_the_disk_does_not_delay_other_runs() {
    let disk = SlowDisk::new();
    let env = test_env(&disk.home.path().join("ledger"), disk.home.path());
    let mut waiting = start(&env);
    env.play(&agent(&env).then(success_end("hi"))).await.assert_success("hi");
    assert!(!env.pids().contains_key("settings-agent"));
    disk.respond();
    rest_of(&mut waiting).await.assert_success("");
    assert!(env.pids().contains_key("settings-agent"));
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_aborted_while_it_waits_for_the_disk_leaves_nothing() {
    let disk = SlowDisk::new();
    let ledger = disk.home.path().join("ledger");
    let env = test_env(&ledger, disk.home.path());
    let mut waiting = start(&env);
    wait_until("it is at its files", || !files(&ledger).is_empty()).await;
    waiting.control().abort();
    rest_of(&mut waiting).await.assert_aborted();
    bounded("shutdown", env.runtime.wait_idle()).await;
    disk.respond();
    wait_until("its files are gone", || !ledger.exists()).await;
    assert!(env.pids().is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_cannot_be_started_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    let env = test_env(&ledger, home.path());
    let no_program = env.path("agent");
    fs::write(&no_program, "no program").unwrap();
    for path in ["/nowhere/agent".into(), no_program] {
        let mut request = env.request(&Script::new());
        request.cli_path = Some(path);
        assert!(env.finish(request).await.result().is_error);
        assert!(!ledger.exists());
    }
}

/// Returns the files in the directories of private files.
fn files(ledger: &Path) -> Vec<OsString> {
    let inside = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let runs = inside(ledger.join("runs"));
    runs.flat_map(|run| inside(run.path().join("files"))).map(|file| file.file_name()).collect()
}
