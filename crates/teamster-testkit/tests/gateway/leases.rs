//! Workers that lose their lease, or cannot renew it.

use std::path::Path;
use std::time::{Duration, Instant};

use teamster_gateway::config::Config;
use teamster_store::{ClaimRequest, ConversationId, HostId, Timestamp, TurnId, TurnState, WorkerId};

use crate::test_gateway::{LIMIT, TestGateway, play_scenario, write_program};

const LEASE: Duration = Duration::from_secs(3);

/// An agent that writes while the test changes the store, and does not end.
const SLOW: &str =
    "[[turns]]\nsteps = [{ say = \"begin\" }, { waitMs = 700 }, { say = \" more\" }, { waitMs = 60000 }]\n";

/// Writes an agent that records its pid, and in the file `term` that it received SIGTERM.
fn write_agent(directory: &Path) {
    std::fs::write(directory.join("scenario.toml"), SLOW).unwrap();
    let play = play_scenario(directory).replace(" exec ", " ");
    let (pid, term) = (directory.join("pid"), directory.join("term"));
    let program = format!(
        "#!/bin/sh\ntrap 'echo 1 > {}; exit 143' TERM\necho $$ > {}\nexec 3<&0\n{} <&3 &\nwait\n",
        term.display(),
        pid.display(),
        play.trim_end()
    );
    write_program(directory, &program);
}

fn is_alive(directory: &Path) -> bool {
    let pid = std::fs::read_to_string(directory.join("pid")).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

async fn until_dead(directory: &Path, deadline: Instant) {
    while is_alive(directory) {
        assert!(Instant::now() < deadline, "the agent is alive too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Starts a gateway and a turn, and waits for the first text.
async fn running_turn() -> (TestGateway, ConversationId, TurnId) {
    let change = |config: &mut Config| config.timing.lease = LEASE;
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    write_agent(directory.path());
    let test = TestGateway::in_directory(directory, change).await;
    let conversation = test.conversation().await;
    let turn = test.send(conversation, "hello").await.turn;
    test.event(conversation, "text").await;
    (test, conversation, turn)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_store_is_locked_ends_its_agents_before_their_leases_expire() {
    let (test, conversation, turn) = running_turn().await;
    let directory = test.directory.path();
    let other = rusqlite::Connection::open(directory.join("store.db")).unwrap();
    other.busy_timeout(LIMIT).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    // No renewal can begin after this.
    let expires = Instant::now() + LEASE;
    until_dead(directory, expires).await;
    assert!(directory.join("term").exists(), "the worker ended it with a grace period");
    other.execute_batch("ROLLBACK").unwrap();
    let ended = test.ended(turn).await;
    assert_eq!((ended.state, ended.error_code.as_deref()), (TurnState::Failed, Some("INTERRUPTED")));
    let log = test.log(conversation).await;
    assert_eq!(log.iter().filter(|kind| *kind == "turn_finished").count(), 1, "{log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_conversation_was_claimed_by_another_one_ends_its_agent_and_writes_nothing() {
    let (test, conversation, _) = running_turn().await;
    let request = ClaimRequest {
        worker: WorkerId::new("other"),
        host: HostId::new("other"),
        lease_for: LIMIT,
        max_running: 9,
        max_running_per_chat: 9,
        affinity: Duration::ZERO,
    };
    let late = Timestamp::from_millis(test.gateway.now().as_millis() + 60_000);
    let claimed = test.gateway.store().claim(request, late).await.unwrap();
    assert!(claimed.is_some_and(|claim| claim.interrupted && claim.conversation.id == conversation));
    let log = test.log(conversation).await;
    until_dead(test.directory.path(), Instant::now() + LIMIT).await;
    assert_eq!(test.log(conversation).await, log);
}
