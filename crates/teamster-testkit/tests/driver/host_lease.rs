//! Agents that run under a lease of this program.

use teamster::event::{ErrorCode, WarningCode};
use teamster::{HostLease, LeaseTime, Runtime};
use teamster_testkit::fake::Script;

use crate::sessions::{agent, close, open, turn};
use crate::test_env::{LONG, TestEnv, is_alive, is_text, read_until, rest_after, rest_of, wait_until};

fn test_env() -> (TestEnv, HostLease) {
    let lease = HostLease::new().unwrap();
    hold(&lease);
    (TestEnv::with_runtime(Runtime::builder().host_lease(lease.clone()).build()), lease)
}

fn hold(lease: &HostLease) {
    lease.renew(LeaseTime::now() + LONG);
}

fn expire(lease: &HostLease) {
    lease.renew(LeaseTime::now());
}

#[tokio::test]
async fn a_run_whose_lease_expires_is_killed_and_is_not_retried() {
    let (env, lease) = test_env();
    let mut request = env.request(&agent(&env).claude_init().claude_partial_text("Hel").hang());
    request.retries.max = 3;
    let mut run = env.start(request);
    let events = read_until(&mut run, is_text).await;
    expire(&lease);
    let stream = rest_after(events, &mut run).await;
    assert!(stream.assert_failed(&ErrorCode::LeaseExpired).contains("did not renew its lease"));
    assert!(stream.warnings(&WarningCode::Retrying).is_empty());
    env.assert_all_dead();
}

#[tokio::test]
async fn a_run_that_has_ended_before_the_deadline_succeeds() {
    let (env, lease) = test_env();
    let stream = env.play(&agent(&env).claude_init().claude_text("Hello").claude_result("Hello").exit(0)).await;
    expire(&lease);
    stream.assert_success("Hello");
}

#[tokio::test]
async fn nothing_starts_under_an_expired_lease() {
    let (env, lease) = test_env();
    expire(&lease);
    let stream = env.play(&agent(&env).claude_init().hang()).await;
    stream.assert_failed(&ErrorCode::LeaseExpired);
    assert!(env.pids().is_empty());
}

#[tokio::test]
async fn the_idle_process_of_a_session_dies_with_the_lease_and_a_new_term_starts_another() {
    let (env, lease) = test_env();
    let scripts =
        [agent(&env).then(turn("one", "1")).read_to_end(), agent(&env).then(turn("three", "3")).read_to_end()];
    let session = open(&env, &Script::new().play_next(&env.path("starts"), scripts));
    rest_of(&mut session.send("one").unwrap()).await.assert_success("1");
    let pid = env.pid("agent").await;
    expire(&lease);
    wait_until("the idle process is dead", || !is_alive(pid)).await;
    rest_of(&mut session.send("two").unwrap()).await.assert_failed(&ErrorCode::LeaseExpired);
    hold(&lease);
    let stream = rest_of(&mut session.send("three").unwrap()).await;
    stream.assert_success("3");
    assert_eq!(stream.warnings(&WarningCode::SessionReopened).len(), 1);
    close(&env, session).await;
}
