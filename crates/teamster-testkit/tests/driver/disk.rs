//! A disk that does not answer, as one of the network may, holds up nobody but the run that waits for it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use teamster::agent::{Agent, Plan};
use teamster::launch::{Launch, StandIn, StandInEntry, Stdin};
use teamster::protocol::{Action, Input, Protocol};
use teamster::request::RequestError;
use teamster::{Ledger, Registry, Run, RunRequest, Runtime};
use teamster_testkit::fake::{SCRIPT_ENV, Script};

use crate::lab::{Lab, SHORT, agent, bounded, eventually, fake_agent, good_end, rest_of};

/// An agent that gets a copy of the user's settings, and succeeds when it exits.
struct Settled;

impl Agent for Settled {
    fn name(&self) -> &'static str {
        "settled"
    }

    fn plan(&self, request: &RunRequest) -> Result<Plan, RequestError> {
        let mut launch = Launch::new(fake_agent());
        launch.stdin = Stdin::Closed;
        launch.env(SCRIPT_ENV, request.prompt.as_str());
        let entries = vec![("settings", StandInEntry::Copy)];
        launch.stand_in =
            Some(StandIn { name: "home", homes: &["SETTLED_HOME"], folder: ".settled", kept: &[], entries });
        Ok(Plan { launch, protocol: Box::new(Settled) })
    }
}

impl Protocol for Settled {
    fn handle(&mut self, input: Input<'_>, actions: &mut Vec<Action>) {
        if let Input::Exited(_) = input {
            actions.push(Action::Outcome(Box::default()));
        }
    }
}

/// A home whose settings nobody can read before the disk answers.
struct Disk {
    home: tempfile::TempDir,
    settings: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join(".settled/settings");
        fs::create_dir(home.path().join(".settled")).unwrap();
        assert!(Command::new("mkfifo").arg(&settings).status().unwrap().success());
        Self { home, settings }
    }

    fn answer(&self) {
        // Opened for both, so that this does not wait for a reader.
        let mut pipe = File::options().read(true).write(true).open(&self.settings).unwrap();
        pipe.write_all(b"theirs").unwrap();
    }
}

/// A test that fails does not wait for the thread that waits here.
impl Drop for Disk {
    fn drop(&mut self) {
        self.answer();
    }
}

fn lab(ledger: &Path, home: &Path) -> Lab {
    let mut registry = Registry::default();
    registry.register(Settled);
    let environment = std::env::vars_os().chain([("SETTLED_HOME".into(), home.into())]);
    let runtime = Runtime::with_environment(registry, environment).known_in(Ledger::in_directory(ledger));
    Lab::with_runtime(runtime)
}

/// A run that gets no further than to its settings.
fn start(lab: &Lab) -> Run {
    let script = Script::new().write_pid(&lab.pid_file(), "settled");
    let mut request = RunRequest::new(script.to_json());
    request.limits.grace = SHORT;
    lab.runtime.run("settled", request).unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_whose_files_wait_for_the_disk_keeps_no_other_from_going_on() {
    let disk = Disk::new();
    let lab = lab(&disk.home.path().join("ledger"), disk.home.path());
    let mut waits = start(&lab);
    lab.play(&agent(&lab).then(good_end("hi"))).await.is_good("hi");
    assert!(!lab.pids().contains_key("settled"));
    disk.answer();
    rest_of(&mut waits).await.is_good("");
    assert!(lab.pids().contains_key("settled"));
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_is_aborted_while_its_files_wait_for_the_disk_leaves_nothing() {
    let disk = Disk::new();
    let ledger = disk.home.path().join("ledger");
    let lab = lab(&ledger, disk.home.path());
    let mut waits = start(&lab);
    eventually("it is at its files", || !files(&ledger).is_empty()).await;
    waits.control().abort();
    rest_of(&mut waits).await.is_aborted();
    bounded("shutdown", lab.runtime.shutdown()).await;
    disk.answer();
    eventually("its files are gone", || !ledger.exists()).await;
    assert!(lab.pids().is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn a_run_that_cannot_be_started_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ledger = home.path().join("ledger");
    let lab = lab(&ledger, home.path());
    let no_program = lab.path("agent");
    fs::write(&no_program, "no program").unwrap();
    for path in ["/nowhere/agent".into(), no_program] {
        let mut request = lab.request(&Script::new());
        request.cli_path = Some(path);
        assert!(lab.finish(request).await.result().is_error);
        assert!(!ledger.exists());
    }
}

/// What is in the directories of private files.
fn files(ledger: &Path) -> Vec<OsString> {
    let inside = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let runs = inside(ledger.join("runs"));
    runs.flat_map(|run| inside(run.path().join("files"))).map(|file| file.file_name()).collect()
}
