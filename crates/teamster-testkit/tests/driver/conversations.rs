//! Which stored conversation a run or session continues.

use std::fs;
use std::path::{Path, PathBuf};

use teamster::RunRequest;
use teamster::event::ErrorCode;
use teamster::request::Conversation;
use teamster_testkit::fake::{CLAUDE_SESSION, Script};

use crate::sessions::{session_request, turn};
use crate::test_env::{TestEnv, agent, rest_of, success_end};

/// The session that the fake agent names.
const ID: &str = CLAUDE_SESSION;
const OTHER: &str = "0ba1884a-861b-4c99-8ee9-b9763d77fa37";

/// A working directory below the environment's directory, without links.
fn directory(env: &TestEnv, name: &str) -> PathBuf {
    let path = env.path(name);
    fs::create_dir_all(&path).unwrap();
    path.canonicalize().unwrap()
}

/// Stores a session of Claude Code.
fn store(env: &TestEnv, id: &str, directory: &Path) {
    let text = directory.to_str().unwrap();
    let folder = text.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
    let path = env.path(&format!("home/.claude/projects/{folder}/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let line = format!(r#"{{"type":"user","sessionId":"{id}","cwd":"{text}","message":{{"content":"Hi"}}}}"#);
    fs::write(path, line + "\n").unwrap();
}

/// A request in a directory, with the home of the environment.
fn in_directory(env: &TestEnv, mut request: RunRequest, directory: &Path, conversation: Conversation) -> RunRequest {
    request.env.insert("HOME".to_owned(), env.path("home").to_str().unwrap().to_owned());
    request.env.insert("CLAUDE_CONFIG_DIR".to_owned(), String::new());
    request.cwd = Some(directory.to_owned());
    request.conversation = conversation;
    request
}

/// Plays an agent that writes its arguments, and returns them.
async fn arguments(env: &TestEnv, directory: &Path, conversation: Conversation) -> String {
    let record = env.path("recording");
    let mut request = in_directory(env, env.request(&agent(env).then(success_end("Hello"))), directory, conversation);
    request.record = Some(record.clone());
    request.record_overwrite = true;
    env.finish(request).await.assert_success("Hello");
    fs::read_to_string(record).unwrap()
}

#[tokio::test]
async fn continue_and_fork_pass_the_id_of_the_newest_session_of_exactly_this_directory() {
    let env = TestEnv::new();
    let [one, other] = ["app/x", "app-x"].map(|name| directory(&env, name));
    store(&env, ID, &one);
    store(&env, OTHER, &other);
    let started = arguments(&env, &one, Conversation::Continue).await;
    assert!(started.contains(&format!("--resume={ID}")), "{started}");
    let started = arguments(&env, &other, Conversation::ForkNewest).await;
    assert!(started.contains(&format!("--resume={OTHER}")) && started.contains("--fork-session"), "{started}");
    let started = arguments(&env, &directory(&env, "app"), Conversation::Continue).await;
    assert!(!started.contains("--resume") && !started.contains("--continue"), "{started}");
}

#[tokio::test]
async fn a_session_of_another_directory_is_neither_resumed_nor_forked() {
    let env = TestEnv::new();
    let [own, here] = ["own", "here"].map(|name| directory(&env, name));
    store(&env, ID, &own);
    for conversation in [Conversation::Resume(ID.into()), Conversation::Fork(ID.into())] {
        let request = env.request(&agent(&env).then(success_end("Hello")));
        let stream = env.finish(in_directory(&env, request, &here, conversation.clone())).await;
        let message = stream.assert_failed(&ErrorCode::SessionNotFound);
        assert!(message.contains(&format!("belongs to the directory {};", own.display())), "{message}");
        let options = session_request(&env, &agent(&env).then(turn("x", "Hello")));
        let session = env.runtime.open("claude", in_directory(&env, options, &here, conversation)).unwrap();
        for _ in 0..2 {
            rest_of(&mut session.send("x").unwrap()).await.assert_failed(&ErrorCode::SessionNotFound);
        }
        session.close().await;
    }
    assert!(env.pids().is_empty(), "an agent was started");
    let request = env.request(&agent(&env).then(success_end("Hello")));
    env.finish(in_directory(&env, request, &own, Conversation::Resume(ID.into()))).await.assert_success("Hello");
    fs::remove_dir(&own).unwrap();
    let request = env.request(&Script::new());
    let stream = env.finish(in_directory(&env, request, &here, Conversation::Resume(ID.into()))).await;
    assert!(stream.assert_failed(&ErrorCode::SessionNotFound).contains("no longer exists"));
}
