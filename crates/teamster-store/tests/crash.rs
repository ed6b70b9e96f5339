//! Processes that write to one file and are killed at any moment.
//!
//! This program is the test runner and the process that is killed. A worker process accepts messages, runs their turns and sends
//! the deliveries. After each operation it prints what the store has acknowledged. The test kills it, opens the file and compares.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints take helpers of tests for library code"
)]

mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use rustix::process::{Pid, Signal, kill_process};
use teamster_store::{
    ConversationFilter, ConversationStore as _, DeliveryFilter, DeliveryStore as _, LogStore as _, PageRequest, Seq,
    SqliteOptions, SqliteStore, TurnId, TurnState,
};

/// The variable with the number of a worker process.
const WORKER: &str = "TEAMSTER_STORE_TEST_WORKER";

/// The variable with the file of a worker process.
const FILE: &str = "TEAMSTER_STORE_TEST_FILE";

/// The time limit for a line of a worker.
const LIMIT: Duration = Duration::from_secs(20);

/// More than any list of these tests has.
const ALL: PageRequest = PageRequest::first(100_000);

fn main() -> ExitCode {
    if let (Ok(number), Ok(file)) = (std::env::var(WORKER), std::env::var(FILE)) {
        runtime().block_on(worker::run(number.parse().unwrap(), file.into()));
        return ExitCode::SUCCESS;
    }
    let trial = |name, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = vec![
        trial("what_a_killed_process_has_acknowledged_is_there_and_nothing_half", survives_kills),
        trial("two_processes_share_a_file_and_no_turn_runs_twice", shares_a_file),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

/// Starts a worker, and returns its lines. Their sender is dropped at the end of its output.
fn start(number: u64, file: &Path) -> (Child, Receiver<String>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(WORKER, number.to_string()).env(FILE, file).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, lines) = channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    (child, lines)
}

fn kill(child: &mut Child) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    child.wait().unwrap();
}

/// What the processes have printed: the turns that were accepted, and how often each was finished.
#[derive(Default)]
struct Acknowledged {
    accepted: BTreeSet<TurnId>,
    finished: BTreeMap<TurnId, u32>,
}

impl Acknowledged {
    /// Reads a line. A killed process may have printed a part of it.
    fn learn(&mut self, line: &str) {
        match line.trim_end().split_once(' ') {
            Some(("accepted", turn)) => _ = turn.parse().map(|turn| self.accepted.insert(turn)),
            Some(("finished", turn)) => {
                if let Ok(turn) = turn.parse() {
                    *self.finished.entry(turn).or_default() += 1;
                }
            }
            _ => {}
        }
    }
}

fn survives_kills() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let mut acknowledged = Acknowledged::default();
    for round in 0..8_u64 {
        let (mut child, output) = start(round, &file);
        // Another number of lines in each round, so that the kill hits other operations.
        let lines = 40 + round * 17;
        for _ in 0..lines {
            acknowledged.learn(&output.recv_timeout(LIMIT).expect("the worker makes progress"));
        }
        kill(&mut child);
        for line in output {
            acknowledged.learn(&line);
        }
        runtime().block_on(check(&file, &acknowledged));
    }
    assert!(acknowledged.finished.len() > 20, "too few turns were finished to show anything");
}

fn shares_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.db");
    let (sender, lines) = channel();
    let mut workers = Vec::new();
    for number in 0..2_u64 {
        let (child, output) = start(number, &file);
        let sender = sender.clone();
        thread::spawn(move || output.into_iter().for_each(|line| _ = sender.send((number, line))));
        workers.push(child);
    }
    drop(sender);
    let mut acknowledged = Acknowledged::default();
    let mut counts = BTreeMap::<u64, u32>::new();
    while counts.len() < 2 || counts.values().any(|count| *count < 150) {
        let (number, line) = lines.recv_timeout(LIMIT).expect("a worker makes no progress");
        *counts.entry(number).or_default() += 1;
        acknowledged.learn(&line);
    }
    workers.iter_mut().for_each(kill);
    for (_, line) in lines {
        acknowledged.learn(&line);
    }
    runtime().block_on(check(&file, &acknowledged));
}

/// Checks a file against what was acknowledged, and that each transaction is there in whole or not at all.
async fn check(file: &Path, acknowledged: &Acknowledged) {
    let store = SqliteStore::open(file, SqliteOptions::default()).await.unwrap();
    store.check().await.unwrap();
    let deliveries = store.deliveries(DeliveryFilter::default(), ALL).await.unwrap().items;
    let mut answered = BTreeMap::<TurnId, u32>::new();
    for delivery in deliveries {
        *answered.entry(delivery.turn.unwrap()).or_default() += 1;
    }
    let (mut known, mut done) = (BTreeSet::new(), BTreeSet::new());
    let conversations = store.conversations(ConversationFilter::default(), ALL, worker::now()).await.unwrap();
    for conversation in conversations.items {
        let log = store.events(conversation.id, Seq::START, 100_000).await.unwrap();
        let numbers: Vec<_> = log.events.iter().map(|event| event.seq.get()).collect();
        let expected: Vec<_> = (1..=conversation.last_seq.get()).collect();
        assert_eq!(numbers, expected, "the log has a gap");
        let count =
            |turn, kind: &str| log.events.iter().filter(|event| event.turn == Some(turn) && event.kind == kind).count();
        let turns = store.turns(conversation.id, ALL).await.unwrap().items;
        assert!(turns.iter().filter(|turn| turn.state == TurnState::Running).count() <= 1);
        let first_open = turns.iter().position(|turn| turn.state != TurnState::Done).unwrap_or(turns.len());
        for (place, turn) in turns.iter().enumerate() {
            let is_done = turn.state == TurnState::Done;
            assert_eq!(is_done, place < first_open, "a turn has passed an earlier one");
            assert_eq!(count(turn.id, "turn_queued"), 1);
            assert_eq!(count(turn.id, "turn_finished"), usize::from(is_done));
            assert_eq!(answered.get(&turn.id).copied().unwrap_or_default(), u32::from(is_done), "an answer");
            assert_eq!(turn.attempts, u32::try_from(count(turn.id, "turn_started")).unwrap());
            known.insert(turn.id);
            done.extend(is_done.then_some(turn.id));
        }
    }
    assert!(acknowledged.accepted.is_subset(&known), "an accepted message is lost");
    for (turn, times) in &acknowledged.finished {
        assert!(done.contains(turn), "a finished turn is lost");
        assert_eq!(*times, 1, "a turn was finished twice");
    }
    store.close().await;
}
