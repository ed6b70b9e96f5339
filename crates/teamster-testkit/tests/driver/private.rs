//! What others on the machine can see of a run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use teamster::event::ErrorCode;
use teamster::request::McpServer;
use teamster::{Run, RunRequest};
use teamster_testkit::fake::{Child, Script};

use crate::lab::{Lab, agent, bounded, good_end, is_text, read_until, rest_after};

const SECRETS: [&str; 4] = ["secret-of-the-env", "secret-of-mcp", "secret-of-a-header", "the-prompt-itself"];

/// A request with secrets in every place that takes them.
fn secretive(lab: &Lab, script: &Script) -> RunRequest {
    let mut request = lab.request(script);
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

/// The private file behind a flag of a running agent.
fn private_file(pid: u32, flag: &str) -> PathBuf {
    let arguments = arguments(pid);
    PathBuf::from(arguments.iter().find_map(|argument| argument.strip_prefix(flag)).unwrap())
}

/// Waits until the agent speaks, and gives the directory of its private files.
async fn speaking(lab: &Lab, run: &mut Run) -> (Vec<teamster::Event>, PathBuf) {
    let events = read_until(run, is_text).await;
    let file = private_file(lab.pid("agent").await, "--mcp-config=");
    assert!(file.exists());
    (events, file.parent().unwrap().to_owned())
}

#[tokio::test]
async fn no_secret_stands_in_the_arguments_of_a_process() {
    let lab = Lab::new();
    let child = Script::new().write_pid(&lab.pid_file(), "child").ready().hang();
    let mut run = lab.start(secretive(&lab, &agent(&lab).spawn(Child::new(child)).claude_text("Hello").hang()));
    let events = read_until(&mut run, is_text).await;
    let pids = lab.pids();
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
    rest_after(events, &mut run).await.is_aborted();
}

#[tokio::test]
async fn private_files_are_this_users_alone_and_gone_after_a_success() {
    let lab = Lab::new();
    let end = lab.path("end");
    let script = agent(&lab).claude_text("Hello").await_file(&end).then(good_end("!"));
    let mut run = lab.start(secretive(&lab, &script));
    let (events, directory) = speaking(&lab, &mut run).await;
    assert_eq!(mode(&directory), 0o700);
    let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let config = fs::read_to_string(directory.join("mcp.json")).unwrap();
    assert!(config.contains(SECRETS[1]) && config.contains(SECRETS[2]));
    fs::write(&end, "").unwrap();
    rest_after(events, &mut run).await.is_good("Hello!");
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_an_error() {
    let lab = Lab::new();
    let script = agent(&lab).claude_text("Hello").await_line("teamster-interrupt").exit(3);
    let mut run = lab.start(secretive(&lab, &script));
    let (events, directory) = speaking(&lab, &mut run).await;
    run.control().interrupt();
    let told = rest_after(events, &mut run).await;
    told.failed(&ErrorCode::Aborted);
    assert_eq!(told.result().exit_code, Some(3));
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_an_abort() {
    let lab = Lab::new();
    let mut run = lab.start(secretive(&lab, &agent(&lab).claude_text("Hello").hang()));
    let (events, directory) = speaking(&lab, &mut run).await;
    run.control().abort();
    rest_after(events, &mut run).await.is_aborted();
    assert!(!directory.exists());
}

#[tokio::test]
async fn private_files_are_gone_after_a_drop() {
    let lab = Lab::new();
    let mut run = lab.start(secretive(&lab, &agent(&lab).claude_text("Hello").hang()));
    let (_, directory) = speaking(&lab, &mut run).await;
    drop(run);
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert!(!directory.exists());
}

#[test]
fn private_files_are_gone_when_the_tokio_runtime_is_dropped() {
    let lab = Lab::new();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_run, directory) = tokio.block_on(async {
        let mut run = lab.start(secretive(&lab, &agent(&lab).claude_text("Hello").hang()));
        let (_, directory) = speaking(&lab, &mut run).await;
        (run, directory)
    });
    drop(tokio);
    assert!(!directory.exists());
}
