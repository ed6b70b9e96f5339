//! CLIs that cannot be started: the stream says so, and what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use teamster::RunRequest;
use teamster::event::{ErrorCode, Event};
use teamster::request::{Conversation, Mode};

use crate::lab::{Lab, SHORT, Told, agent, fake_agent, rest_of};

async fn start(lab: &Lab, cli: impl Into<PathBuf>) -> Told {
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(cli.into());
    let told = lab.finish(request).await;
    assert!(matches!(told.events.as_slice(), [Event::Error(_), Event::Done(_)]), "{:?}", told.events);
    told
}

fn file(lab: &Lab, mode: u32, content: &[u8]) -> PathBuf {
    let path = lab.path("cli");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[track_caller]
fn says(told: &Told, code: &ErrorCode, words: &[&str]) {
    let message = told.failed(code);
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_in_path_is_not_found() {
    let lab = Lab::new();
    let told = start(&lab, "teamster-no-such-cli").await;
    says(&told, &ErrorCode::CliNotFound, &["teamster-no-such-cli", "PATH", "install"]);
}

#[tokio::test]
async fn a_path_to_nothing_is_not_found() {
    let lab = Lab::new();
    let told = start(&lab, lab.path("nothing")).await;
    says(&told, &ErrorCode::CliNotFound, &["nothing", "does not exist"]);
}

#[tokio::test]
async fn a_link_to_nothing_is_not_found() {
    let lab = Lab::new();
    std::os::unix::fs::symlink(lab.path("gone"), lab.path("link")).unwrap();
    let told = start(&lab, lab.path("link")).await;
    says(&told, &ErrorCode::CliNotFound, &["link", "reinstall"]);
}

#[tokio::test]
async fn a_file_that_is_not_executable_cannot_be_started() {
    let lab = Lab::new();
    let told = start(&lab, file(&lab, 0o644, b"#!/bin/sh\n")).await;
    says(&told, &ErrorCode::SpawnFailed, &["cli", "not executable", "permissions"]);
}

#[tokio::test]
async fn a_directory_cannot_be_started() {
    let lab = Lab::new();
    let told = start(&lab, lab.path("").join(".")).await;
    says(&told, &ErrorCode::SpawnFailed, &["not a regular file"]);
}

#[tokio::test]
async fn a_text_without_an_interpreter_cannot_be_started() {
    let lab = Lab::new();
    let told = start(&lab, file(&lab, 0o755, b"echo hello\n")).await;
    says(&told, &ErrorCode::SpawnFailed, &["cli", "`#!`"]);
}

#[tokio::test]
async fn half_a_program_cannot_be_started() {
    let lab = Lab::new();
    let whole = fs::read(fake_agent()).unwrap();
    let told = start(&lab, file(&lab, 0o755, &whole[..40])).await;
    says(&told, &ErrorCode::SpawnFailed, &["cli", "not a program for this machine"]);
}

#[tokio::test]
async fn a_script_whose_interpreter_is_missing_cannot_be_started() {
    let lab = Lab::new();
    let told = start(&lab, file(&lab, 0o755, b"#!/no/such/interpreter -x\n")).await;
    says(&told, &ErrorCode::SpawnFailed, &["cli", "/no/such/interpreter", "not installed"]);
}

#[tokio::test]
async fn an_empty_file_cannot_be_started() {
    let lab = Lab::new();
    let told = start(&lab, file(&lab, 0o755, b"")).await;
    says(&told, &ErrorCode::SpawnFailed, &["cli", "not a program for this machine"]);
}

#[tokio::test]
async fn an_argument_that_is_too_long_is_named_as_the_cause() {
    let lab = Lab::new();
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(fake_agent());
    request.cli_args = vec!["x".repeat(200_000)];
    let told = lab.finish(request).await;
    says(&told, &ErrorCode::SpawnFailed, &["too large", "200000"]);
}

#[tokio::test]
async fn a_run_whose_supervisor_does_not_answer_ends_at_its_deadline() {
    let home = tempfile::tempdir().unwrap();
    // It reads nothing, so that it makes no keeper, and ends with this program.
    let silent = home.path().join("silent");
    fs::write(&silent, "#!/bin/sh\nwhile kill -0 $PPID 2>/dev/null; do sleep 0.1; done\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let supervisor = teamster::Supervisor::program(silent);
    let lab = Lab::with_runtime(teamster::Runtime::new().supervised_by(supervisor));
    let mut request = lab.request(&agent(&lab));
    request.limits.deadline = SHORT;
    let began = std::time::Instant::now();
    lab.finish(request).await.failed(&ErrorCode::DeadlineExceeded);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_opencode_session_whose_id_has_another_form_is_not_found_and_nothing_is_started() {
    let lab = Lab::new();
    for (id, mode) in [("not-a-session", Mode::Auto), ("01a20083-df7d-7820-a593-86d96269de15", Mode::Exec)] {
        let mut request = lab.request(&agent(&lab).exit(0));
        (request.conversation, request.mode) = (Conversation::Resume(id.into()), mode);
        request.model = Some("x/y".to_owned());
        let mut run = lab.runtime.run("opencode", request).unwrap();
        let told = rest_of(&mut run).await;
        assert!(told.failed(&ErrorCode::SessionNotFound).contains(id));
        assert_eq!((told.result().exit_code, lab.pids().len()), (None, 0));
    }
}
