//! Sessions whose process exits, dies or does not start.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use teamster::event::{ErrorCode, WarningCode};
use teamster_testkit::fake::{Child, Script};

use crate::sessions::{agent, close, open, session_request, turn};
use crate::steering::sent_as_a_turn;
use crate::test_env::{TestEnv, is_alive, is_text, read_until, rest_after, rest_of, state, wait_until};

#[tokio::test]
async fn dropping_a_turn_ends_its_process_and_the_next_turn_starts_another() {
    let env = TestEnv::new();
    let scripts = [
        agent(&env).await_line("one").claude_init().claude_partial_text("Hel").hang(),
        agent(&env).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    let mut first = session.send("one").unwrap();
    read_until(&mut first, is_text).await;
    let pid = env.pid("agent").await;
    drop(first);
    let stream = rest_of(&mut session.send("two").unwrap()).await;
    stream.assert_success("2");
    assert!(!is_alive(pid));
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&env, session).await;
}

#[tokio::test]
async fn a_process_that_ends_between_turns_is_replaced() {
    let env = TestEnv::new();
    let scripts = [agent(&env).then(turn("one", "1")).exit(0), agent(&env).then(turn("two", "2")).read_to_end()];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let pid = env.pid("agent").await;
    wait_until("the first process is gone", || !is_alive(pid)).await;
    let stream = rest_of(&mut session.send("two").unwrap()).await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&env, session).await;
}

#[tokio::test]
async fn a_prompt_sent_while_the_process_exits_is_not_lost() {
    for _ in 0..10 {
        let env = TestEnv::new();
        let scripts = [agent(&env).then(turn("one", "1")).exit(0), agent(&env).then(turn("two", "2")).read_to_end()];
        let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
        let (mut one, mut two) = (session.send("one").unwrap(), session.send("two").unwrap());
        rest_of(&mut one).await.assert_success("1");
        rest_of(&mut two).await.assert_success("2");
        close(&env, session).await;
    }
}

#[tokio::test]
async fn a_prompt_that_a_dying_process_has_not_read_is_sent_to_the_next_one() {
    let env = TestEnv::new();
    let result = |id: u64, result: serde_json::Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let opens = agent(&env)
        .await_line("initialize")
        .line(result(1, json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}})))
        .await_line("session/")
        .line(result(2, json!({"sessionId": "s"})));
    let answer_with = |text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "s", "update": update});
        Script::new()
            .await_line("session/prompt")
            .line(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
            .line(result(3, json!({"stopReason": "end_turn"})))
            .read_to_end()
    };
    let scripts = [opens.clone().then(answer_with("1")), opens.then(answer_with("2"))];
    let session =
        env.runtime.open("acp", session_request(&env, &Script::new().play_next(&env.path("starts"), scripts))).unwrap();
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let pid = halted(&env).await;
    let mut two = session.send("two").unwrap();
    wait_until("the prompt has been written", || unread(pid) > 0).await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let stream = rest_of(&mut two).await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&env, session).await;
}

#[tokio::test]
async fn late_output_of_a_dying_process_does_not_lose_a_prompt_that_it_has_not_read() {
    let env = TestEnv::new();
    let go = env.path("go");
    let late = Child::new(
        Script::new().await_file(&go).line(json!({"type": "keep_alive"})).write_pid(&env.pid_file(), "late"),
    );
    let scripts = [
        agent(&env).spawn(late).then(turn("one", "1")).read_to_end(),
        agent(&env).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let pid = halted(&env).await;
    let mut two = session.send("two").unwrap();
    wait_until("the prompt has been written", || unread(pid) > 0).await;
    std::fs::write(go, "").unwrap();
    env.pid("late").await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let stream = rest_of(&mut two).await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&env, session).await;
}

/// Stops the agent with SIGSTOP, and returns its pid. Like a process that is being killed, a
/// stopped process reads nothing.
async fn halted(env: &TestEnv) -> u32 {
    let pid = env.pid("agent").await;
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
    wait_until("all of it has halted", || threads(pid).iter().all(|state| *state == 'T')).await;
    pid
}

/// Returns the states of a process's threads.
fn threads(pid: u32) -> Vec<char> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| state(task.unwrap().file_name().to_str().unwrap().parse().unwrap()).unwrap()).collect()
}

/// Returns the number of unread bytes in a process's stdin.
fn unread(pid: u32) -> u64 {
    rustix::io::ioctl_fionread(std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap()).unwrap()
}

#[tokio::test]
async fn a_process_that_dies_in_a_turn_fails_that_turn_and_the_next_one_succeeds() {
    let env = TestEnv::new();
    let scripts = [
        agent(&env).await_line("one").claude_init().claude_partial_text("Hel").exit(3),
        agent(&env).then(turn("two", "2")).read_to_end(),
    ];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.assert_failed(&ErrorCode::CliExit);
    let stream = rest_of(&mut session.send("two").unwrap()).await;
    stream.assert_success("2");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    assert!(session.id().is_some());
    close(&env, session).await;
}

#[tokio::test]
async fn a_cli_that_does_not_start_fails_the_turn_and_not_the_session() {
    let env = TestEnv::new();
    let mut request = session_request(&env, &agent(&env));
    request.cli_path = Some("/nonexistent/cli".into());
    let session = env.runtime.open("claude", request).unwrap();
    for _ in 0..2 {
        rest_of(&mut session.send("one").unwrap()).await.assert_failed(&ErrorCode::CliNotFound);
    }
    close(&env, session).await;
}

#[tokio::test]
async fn a_prompt_that_a_dying_agent_has_not_consumed_is_sent_to_the_next_one() {
    let env = TestEnv::new();
    let dies = agent(&env).await_line("one").claude_init().claude_partial_text("1").await_line("more").exit(3);
    let lives = agent(&env).then(turn("more", "2")).read_to_end();
    let session = open(&env, &Script::new().play_next(&env.path("turns"), [dies, lives]));
    let mut first = session.send("one").unwrap();
    let events = read_until(&mut first, is_text).await;
    let mut second = sent_as_a_turn(&session, "more").await;
    rest_after(events, &mut first).await.assert_failed(&ErrorCode::CliExit);
    rest_of(&mut second).await.assert_success("2");
    close(&env, session).await;
}
