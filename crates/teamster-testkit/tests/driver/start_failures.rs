//! CLIs that cannot be started: the stream reports the cause and a remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use teamster::RunRequest;
use teamster::event::{ErrorCode, Event};
use teamster::request::{AgentInterface, Conversation};

use crate::test_env::{CheckedStream, SHORT, TestEnv, agent, fake_agent, rest_of};

async fn start(env: &TestEnv, cli: impl Into<PathBuf>) -> CheckedStream {
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(cli.into());
    let stream = env.finish(request).await;
    assert!(matches!(stream.events.as_slice(), [Event::Error(_), Event::Done(_)]), "{:?}", stream.events);
    stream
}

fn file(env: &TestEnv, mode: u32, content: &[u8]) -> PathBuf {
    let path = env.path("cli");
    fs::write(&path, content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[track_caller]
fn assert_message(stream: &CheckedStream, code: &ErrorCode, parts: &[&str]) {
    let message = stream.assert_failed(code);
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_in_path_is_not_found() {
    let env = TestEnv::new();
    let stream = start(&env, "teamster-no-such-cli").await;
    assert_message(&stream, &ErrorCode::CliNotFound, &["teamster-no-such-cli", "PATH", "install"]);
}

#[tokio::test]
async fn a_path_to_nothing_is_not_found() {
    let env = TestEnv::new();
    let stream = start(&env, env.path("nothing")).await;
    assert_message(&stream, &ErrorCode::CliNotFound, &["nothing", "does not exist"]);
}

#[tokio::test]
async fn a_link_to_nothing_is_not_found() {
    let env = TestEnv::new();
    std::os::unix::fs::symlink(env.path("gone"), env.path("link")).unwrap();
    let stream = start(&env, env.path("link")).await;
    assert_message(&stream, &ErrorCode::CliNotFound, &["link", "reinstall"]);
}

#[tokio::test]
async fn a_file_that_is_not_executable_cannot_be_started() {
    let env = TestEnv::new();
    let stream = start(&env, file(&env, 0o644, b"#!/bin/sh\n")).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["cli", "not executable", "permissions"]);
}

#[tokio::test]
async fn a_directory_cannot_be_started() {
    let env = TestEnv::new();
    let stream = start(&env, env.path("").join(".")).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["not a regular file"]);
}

#[tokio::test]
async fn a_text_without_an_interpreter_cannot_be_started() {
    let env = TestEnv::new();
    let stream = start(&env, file(&env, 0o755, b"echo hello\n")).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["cli", "`#!`"]);
}

#[tokio::test]
async fn half_a_program_cannot_be_started() {
    let env = TestEnv::new();
    let whole = fs::read(fake_agent()).unwrap();
    let stream = start(&env, file(&env, 0o755, &whole[..40])).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["cli", "not a program for this machine"]);
}

#[tokio::test]
async fn a_script_whose_interpreter_is_missing_cannot_be_started() {
    let env = TestEnv::new();
    let stream = start(&env, file(&env, 0o755, b"#!/no/such/interpreter -x\n")).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["cli", "/no/such/interpreter", "not installed"]);
}

#[tokio::test]
async fn an_empty_file_cannot_be_started() {
    let env = TestEnv::new();
    let stream = start(&env, file(&env, 0o755, b"")).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["cli", "not a program for this machine"]);
}

#[tokio::test]
async fn an_argument_that_is_too_long_is_named_as_the_cause() {
    let env = TestEnv::new();
    let mut request = RunRequest::new("Do it");
    request.cli_path = Some(fake_agent());
    request.cli_args = vec!["x".repeat(200_000)];
    let stream = env.finish(request).await;
    assert_message(&stream, &ErrorCode::SpawnFailed, &["too large", "200000"]);
}

#[tokio::test]
async fn a_run_whose_supervisor_does_not_answer_ends_at_its_deadline() {
    let home = tempfile::tempdir().unwrap();
    // It reads nothing and creates no keeper. It exits with this program.
    let silent = home.path().join("silent");
    fs::write(&silent, "#!/bin/sh\nwhile kill -0 $PPID 2>/dev/null; do sleep 0.1; done\n").unwrap();
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let supervisor = teamster::Supervisor::program(silent);
    let env = TestEnv::with_runtime(teamster::Runtime::builder().supervisor(supervisor).build());
    let mut request = env.request(&agent(&env));
    request.limits.deadline = SHORT;
    let started = std::time::Instant::now();
    env.finish(request).await.assert_failed(&ErrorCode::DeadlineExceeded);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_opencode_session_id_of_another_format_is_not_found_and_nothing_is_started() {
    let env = TestEnv::new();
    for (id, mode) in
        [("not-a-session", AgentInterface::Auto), ("01a20083-df7d-7820-a593-86d96269de15", AgentInterface::Exec)]
    {
        let mut request = env.request(&agent(&env).exit(0));
        (request.conversation, request.interface) = (Conversation::Resume(id.into()), mode);
        request.model = Some("x/y".to_owned());
        let mut run = env.runtime.run("opencode", request).unwrap();
        let stream = rest_of(&mut run).await;
        assert!(stream.assert_failed(&ErrorCode::SessionNotFound).contains(id));
        assert_eq!((stream.result().exit_code, env.pids().len()), (None, 0));
    }
}
