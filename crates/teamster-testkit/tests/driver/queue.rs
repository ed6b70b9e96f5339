//! A runtime that lets only so many runs live at once.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::time::Instant;

use teamster::event::{ErrorCode, Event};
use teamster::{Run, RunRequest, Runtime};
use teamster_testkit::fake::Script;

use crate::lab::{BOUND, Lab, SHORT, Told, bounded, counted, eventually, is_init, read_until, rest_after, rest_of};

fn lab(runs: usize) -> Lab {
    Lab::with_runtime(Runtime::new().max_concurrent_turns(NonZeroUsize::new(runs).unwrap()))
}

/// An agent that says that it came, waits for a file, and says that it goes.
fn visitor(lab: &Lab, name: &str) -> Script {
    let diary = lab.pid_file();
    Script::new()
        .write_pid(&diary, format!("{name}-came"))
        .claude_init()
        .await_file(&lab.path(name))
        .claude_text(name)
        .claude_result(name)
        .write_pid(&diary, format!("{name}-goes"))
        .read_to_end()
}

fn visit(lab: &Lab, name: &str) -> Run {
    lab.start(lab.request(&visitor(lab, name)))
}

/// Lets a visitor go on.
fn let_go(lab: &Lab, name: &str) {
    File::create(lab.path(name)).unwrap();
}

/// What the visitors said, in the order in which they did.
fn diary(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.pid_file()).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

async fn came(lab: &Lab, name: &str) {
    lab.pid(&format!("{name}-came")).await;
}

/// Asserts that a run ended without a start.
fn started_nothing(told: &Told) {
    told.is_aborted();
    let events: Vec<_> = told.events.iter().filter(|event| !matches!(event, Event::Queued(_))).collect();
    assert!(matches!(events.as_slice(), [Event::Error(_), Event::Done(_)]), "{:?}", told.events);
    assert_eq!(told.result().exit_code, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_runs_live_at_once_than_were_allowed() {
    const RUNS: usize = 12;
    const LIMIT: usize = 3;
    let lab = lab(LIMIT);
    let names: Vec<_> = (0..RUNS).map(|number| number.to_string()).collect();
    let mut runs: Vec<_> = names.iter().map(|name| visit(&lab, name)).collect();
    // The first of them wait for each other: as many as were allowed do live at once.
    eventually("the first runs live", || diary(&lab).len() == LIMIT).await;
    for name in &names {
        let_go(&lab, name);
    }
    for (run, name) in runs.iter_mut().zip(&names) {
        rest_of(run).await.is_good(name);
    }
    let mut live = 0_usize;
    for entry in diary(&lab) {
        if entry.ends_with("-came") {
            live += 1;
        } else {
            live -= 1;
        }
        assert!(live <= LIMIT, "{:?}", diary(&lab));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_wait_start_in_the_order_in_which_they_were_asked_for() {
    let lab = lab(1);
    let names: Vec<_> = (0..10).map(|number| number.to_string()).collect();
    for name in &names {
        let_go(&lab, name);
    }
    let mut runs: Vec<_> = names.iter().map(|name| visit(&lab, name)).collect();
    // Whoever reads first does not start first.
    for run in runs.iter_mut().rev() {
        assert!(!rest_of(run).await.result().is_error);
    }
    let order: Vec<_> = names.iter().flat_map(|name| [format!("{name}-came"), format!("{name}-goes")]).collect();
    assert_eq!(diary(&lab), order);
}

#[tokio::test]
async fn a_waiting_run_that_is_stopped_ends_at_once_and_starts_nothing() {
    let lab = lab(1);
    let mut first = visit(&lab, "first");
    came(&lab, "first").await;
    let (mut aborted, mut interrupted) = (visit(&lab, "aborted"), visit(&lab, "interrupted"));
    drop(visit(&lab, "dropped"));
    let mut last = visit(&lab, "last");
    aborted.control().abort();
    interrupted.control().interrupt();
    started_nothing(&rest_of(&mut aborted).await);
    started_nothing(&rest_of(&mut interrupted).await);

    let_go(&lab, "first");
    let_go(&lab, "last");
    rest_of(&mut first).await.is_good("first");
    rest_of(&mut last).await.is_good("last");
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert_eq!(diary(&lab), ["first-came", "first-goes", "last-came", "last-goes"]);
}

#[tokio::test]
async fn a_run_that_is_dropped_gives_its_place_on() {
    let lab = lab(1);
    let mut first = visit(&lab, "first");
    let mut second = visit(&lab, "second");
    let_go(&lab, "second");
    read_until(&mut first, is_init).await;
    drop(first);
    rest_of(&mut second).await.is_good("second");
}

#[tokio::test]
async fn a_run_whose_cli_is_missing_gives_its_place_on() {
    let lab = lab(1);
    let mut missing = RunRequest::new("Do it");
    missing.cli_path = Some(lab.path("nothing"));
    let mut missing = lab.start(missing);
    let mut second = visit(&lab, "second");
    let_go(&lab, "second");
    rest_of(&mut second).await.is_good("second");
    rest_of(&mut missing).await.failed(&ErrorCode::CliNotFound);
}

#[tokio::test]
async fn a_run_that_nobody_reads_gives_its_place_on_when_its_process_is_gone() {
    let lab = lab(1);
    let script = Script::new().claude_init().claude_burst(2000).claude_result("all of it").read_to_end();
    let mut unread = lab.start(lab.request(&script));
    let mut second = visit(&lab, "second");
    let_go(&lab, "second");
    rest_of(&mut second).await.is_good("second");
    rest_of(&mut unread).await.is_good(&counted(2000));
}

/// A limit is about what the agent takes: a run is not to die of a queue.
#[tokio::test]
async fn no_limit_counts_while_a_run_waits() {
    let lab = lab(1);
    let mut first = visit(&lab, "first");
    came(&lab, "first").await;
    let mut request = lab.request(&visitor(&lab, "second"));
    request.limits.deadline = SHORT * 5;
    request.limits.startup = SHORT * 5;
    request.limits.grace = SHORT;
    let mut second = lab.start(request);
    read_until(&mut second, |event| matches!(event, Event::Queued(_))).await;
    let waited = tokio::time::timeout(SHORT * 6, second.next()).await;
    assert!(waited.is_err(), "{waited:?}");

    let turn = Instant::now();
    let_go(&lab, "first");
    rest_of(&mut first).await.is_good("first");
    let events = read_until(&mut second, is_init).await;
    // Nobody lets it go: its deadline has begun with its turn.
    let told = rest_after(events, &mut second).await;
    assert!(told.failed(&ErrorCode::DeadlineExceeded).contains("1 s"));
    let duration = u128::from(told.result().duration_ms);
    assert!(duration <= turn.elapsed().as_millis(), "{duration} ms, of {:?}", turn.elapsed());
}

#[tokio::test]
async fn a_shutdown_waits_for_runs_that_wait() {
    let lab = lab(1);
    let (mut first, mut second) = (visit(&lab, "first"), visit(&lab, "second"));
    came(&lab, "first").await;
    assert!(tokio::time::timeout(SHORT, lab.runtime.shutdown()).await.is_err());
    let_go(&lab, "first");
    let_go(&lab, "second");
    bounded("shutdown", lab.runtime.shutdown()).await;
    assert_eq!(diary(&lab), ["first-came", "first-goes", "second-came", "second-goes"]);
    rest_of(&mut first).await.is_good("first");
    rest_of(&mut second).await.is_good("second");
}

#[test]
fn a_run_that_waits_when_its_tokio_runtime_is_dropped_ends_all_the_same() {
    let lab = lab(1);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (first, mut second) = tokio.block_on(async {
        let first = visit(&lab, "first");
        came(&lab, "first").await;
        (first, visit(&lab, "second"))
    });
    tokio.shutdown_timeout(BOUND);
    drop(first);

    let another = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    another.block_on(async {
        started_nothing(&rest_of(&mut second).await);
        // The place of a run that was dropped with its Tokio runtime is free again.
        let mut third = visit(&lab, "third");
        let_go(&lab, "third");
        rest_of(&mut third).await.is_good("third");
    });
    assert_eq!(diary(&lab), ["first-came", "third-came", "third-goes"]);
}
