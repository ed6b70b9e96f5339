//! What other users of the machine can see of a run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use teamster::event::ErrorCode;
use teamster::request::McpServer;
use teamster::{Run, RunRequest};
use teamster_testkit::fake::{Child, Script};

use crate::test_env::{TestEnv, agent, bounded, is_text, read_until, rest_after, success_end};

const SECRETS: [&str; 4] = ["secret-of-the-env", "secret-of-mcp", "secret-of-a-header", "the-prompt-itself"];

/// A request with a secret in every field that may contain one.
fn secretive(env: &TestEnv, script: &Script) -> RunRequest {
    let mut request = env.request(script);
    request.prompt = SECRETS[3].into();
    request.system_prompt = Some("system-prompt".into());
    request.env.insert("API_KEY".into(), SECRETS[0].into());
    let stdio = McpServer::stdio("server").env("TOKEN", SECRETS[1]);
    let http = McpServer::http("http://127.0.0.1:1").header("Authorization", SECRETS[2]);
    request.mcp_servers = BTreeMap::from([("one".into(), stdio), ("two".into(), http)]);
    request
}

fn arguments(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    line.split(|&byte| byte == 0).map(|part| String::from_utf8_lossy(part).into_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Returns the private file that a flag of a running agent names.
fn private_file(pid: u32, flag: &str) -> PathBuf {
    let arguments = arguments(pid);
    PathBuf::from(arguments.iter().find_map(|argument| argument.strip_prefix(flag)).unwrap())
}

/// Waits for the agent's first text, and returns the directory of its private files.
async fn speaking(env: &TestEnv, run: &mut Run) -> (Vec<teamster::Event>, PathBuf) {
    let events = read_until(run, is_text).await;
    let file = private_file(env.pid("agent").await, "--mcp-config=");
    assert!(file.exists());
    (events, file.parent().unwrap().to_owned())
}

#[tokio::test]
async fn no_process_argument_contains_a_secret() {
    let env = TestEnv::new();
    let child = Script::new().write_pid(&env.pid_file(), "child").ready().hang();
    let mut run = env.start(secretive(&env, &agent(&env).spawn(Child::new(child)).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    let pids = env.pids();
    assert_eq!(pids.len(), 2);
    for pid in pids.values() {
        let arguments = arguments(*pid).join(" ");
        for secret in SECRETS {
            assert!(!arguments.contains(secret), "{secret} in {arguments}");
        }
    }
    let environment = fs::read(format!("/proc/{}/environ", pids["agent"])).unwrap();
    assert!(String::from_utf8_lossy(&environment).contains("API_KEY=secret-of-the-env"));
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
}

#[tokio::test]
async fn only_this_user_can_read_private_files_and_they_are_gone_after_a_success() {
    let env = TestEnv::new();
    let end = env.path("end");
    let script = agent(&env).claude_text("Hello").await_file(&end).then(success_end("!"));
    let mut run = env.start(secretive(&env, &script));
    let (events, directory) = speaking(&env, &mut run).await;
    assert_eq!(mode(&directory), 0o700);
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let config = fs::read_to_string(directory.join("mcp.json")).unwrap();
    assert!(config.contains(SECRETS[1]) && config.contains(SECRETS[2]));
    fs::write(&end, "").unwrap();
    rest_after(events, &mut run).await.assert_success("Hello\n\n!");
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_an_error() {
    let env = TestEnv::new();
    let script = agent(&env).claude_text("Hello").await_line("teamster-interrupt").exit(3);
    let mut run = env.start(secretive(&env, &script));
    let (events, directory) = speaking(&env, &mut run).await;
    run.control().interrupt();
    let stream = rest_after(events, &mut run).await;
    stream.assert_failed(&ErrorCode::Aborted);
    assert_eq!(stream.result().exit_code, Some(3));
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_an_abort() {
    let env = TestEnv::new();
    let mut run = env.start(secretive(&env, &agent(&env).claude_text("Hello").hang()));
    let (events, directory) = speaking(&env, &mut run).await;
    run.control().abort();
    rest_after(events, &mut run).await.assert_aborted();
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_a_drop() {
    let env = TestEnv::new();
    let mut run = env.start(secretive(&env, &agent(&env).claude_text("Hello").hang()));
    let (_, directory) = speaking(&env, &mut run).await;
    drop(run);
    bounded("shutdown", env.runtime.wait_idle()).await;
    assert!(!directory.exists());
}

#[test]
fn private_files_are_gone_when_the_tokio_runtime_is_dropped() {
    let env = TestEnv::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_run, directory) = tokio.block_on(async {
        let mut run = env.start(secretive(&env, &agent(&env).claude_text("Hello").hang()));
        let (_, directory) = speaking(&env, &mut run).await;
        (run, directory)
    });
    drop(tokio);
    assert!(!directory.exists());
}
