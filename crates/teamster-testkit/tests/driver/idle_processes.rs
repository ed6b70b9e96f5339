//! Idle processes that are started before a session needs them.

use std::num::NonZeroUsize;
use std::time::Duration;

use teamster::{HostLease, LeaseTime, Runtime, Session, WarmPoolConfig};
use teamster_testkit::fake::Script;

use crate::test_env::{BOUND, LONG, TestEnv, bounded, is_alive, rest_of, wait_until};

fn test_env(config: WarmPoolConfig) -> TestEnv {
    TestEnv::with_runtime(Runtime::builder().warm_pool(config).build())
}

fn at_most(count: usize) -> WarmPoolConfig {
    WarmPoolConfig::new(NonZeroUsize::new(count).unwrap())
}

/// An agent whose processes record their pids as `1`, `2`, `3`, `4` and answer each turn with that
/// number. The numbers follow the order of their first steps, which is not defined between a
/// session's process and the idle process that starts at the same time.
fn agent(env: &TestEnv) -> Script {
    let process = |number: &str| {
        let turn = Script::new().await_line("go").claude_init().claude_text(number).claude_result(number);
        Script::new().write_pid(&env.pid_file(), number).then(turn.clone()).then(turn).read_to_end()
    };
    Script::new().play_next(&env.path("starts"), ["1", "2", "3", "4"].map(process))
}

fn open(env: &TestEnv, script: &Script, model: &str) -> Session {
    let mut request = env.request(script);
    request.prompt.clear();
    request.model = Some(model.to_owned());
    request.limits.silence = LONG;
    // The same file each time, so that the configuration is the same.
    let path = env.path("script");
    std::fs::write(&path, script.to_json()).unwrap();
    request.env.insert(teamster_testkit::fake::SCRIPT_ENV.into(), path.to_str().unwrap().into());
    env.runtime.open("claude", request).unwrap()
}

/// Returns the number of the process that answers.
async fn answers(session: &Session) -> String {
    rest_of(&mut session.send("go").unwrap()).await.result().text.clone().into_string()
}

/// Returns the number of the idle process that started at the same time as this one.
fn beside(number: &str) -> &'static str {
    match number {
        "1" => "2",
        "2" => "1",
        "3" => "4",
        "4" => "3",
        other => panic!("no process answers {other}"),
    }
}

async fn close(session: Session) {
    bounded("the session's end", session.close()).await;
}

async fn wait_until_dead(env: &TestEnv, process: &str) {
    let pid = env.pid(process).await;
    wait_until(&format!("process {process} is dead"), || !is_alive(pid)).await;
}

#[tokio::test]
async fn the_next_session_with_the_same_configuration_gets_an_idle_process() {
    let env = test_env(at_most(2));
    let script = agent(&env);
    let first = open(&env, &script, "a");
    let idle = beside(&answers(&first).await);
    env.pid(idle).await;
    close(first).await;
    let second = open(&env, &script, "a");
    assert_eq!(answers(&second).await, idle);
    assert_eq!(answers(&second).await, idle);
    env.pid("3").await;
    close(second).await;
    bounded("the end of all", env.runtime.shutdown(BOUND)).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_session_with_another_configuration_gets_no_idle_process_and_the_oldest_beyond_the_limit_is_closed() {
    let env = test_env(at_most(1));
    let script = agent(&env);
    let first = open(&env, &script, "a");
    let idle = beside(&answers(&first).await);
    env.pid(idle).await;
    let other = open(&env, &script, "b");
    env.pid(beside(&answers(&other).await)).await;
    wait_until_dead(&env, idle).await;
    close(first).await;
    close(other).await;
    bounded("the end of all", env.runtime.shutdown(BOUND)).await;
    env.assert_all_dead();
}

#[tokio::test]
async fn a_dead_idle_process_is_skipped() {
    let env = test_env(at_most(1));
    let script = agent(&env);
    let first = open(&env, &script, "a");
    let idle = beside(&answers(&first).await);
    let pid = i32::try_from(env.pid(idle).await).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    wait_until_dead(&env, idle).await;
    let second = open(&env, &script, "a");
    assert!(["3", "4"].contains(&answers(&second).await.as_str()));
    close(first).await;
    close(second).await;
    bounded("the end of all", env.runtime.shutdown(BOUND)).await;
}

#[tokio::test]
async fn an_idle_process_that_is_too_old_or_too_large_is_closed() {
    let (mut old, mut large) = (at_most(1), at_most(1));
    old.age = Duration::from_millis(200);
    large.memory = Some(1);
    for config in [old, large] {
        let env = test_env(config);
        let first = open(&env, &agent(&env), "a");
        wait_until_dead(&env, beside(&answers(&first).await)).await;
        close(first).await;
    }
}

#[tokio::test]
async fn idle_processes_die_with_the_lease_of_the_host() {
    let lease = HostLease::new().unwrap();
    lease.renew(LeaseTime::now() + LONG);
    let env = TestEnv::with_runtime(Runtime::builder().warm_pool(at_most(1)).host_lease(lease.clone()).build());
    let first = open(&env, &agent(&env), "a");
    env.pid(beside(&answers(&first).await)).await;
    lease.renew(LeaseTime::now());
    env.all_die().await;
    close(first).await;
}

#[tokio::test]
async fn idle_processes_end_with_their_runtime() {
    let mut env = test_env(at_most(1));
    let first = open(&env, &agent(&env), "a");
    let idle = beside(&answers(&first).await);
    env.pid(idle).await;
    close(first).await;
    drop(std::mem::take(&mut env.runtime));
    wait_until_dead(&env, idle).await;
}
