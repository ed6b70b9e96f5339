//! The times of the steps between the call of `run` and the first event, and between the CLI's exit and `done`.
//!
//! The driver logs its steps with `tracing`. Outside this program, nothing subscribes to these lines.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use teamster_benches::report::{Report, median, microseconds};
use teamster_benches::scenario::{exit_ns, main_ns};
use teamster_benches::usage::now_ns;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::Host;

/// The runs after the first one.
const LATER: usize = 40;

/// The steps after the CLI's exit.
const END: &[&str] = &["exit noticed", "output read", "tree gone", "files removed", "done received"];

/// The target of the lines.
const TARGET: &str = "teamster::steps";

/// The times of the steps since they were taken last, by name.
static STEPS: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());

/// Measures the first run of this process, and later runs.
pub(crate) async fn measure(host: &Host, warm_up: bool) -> Report {
    tracing::subscriber::set_global_default(Steps).expect("the only subscriber");
    if warm_up {
        host.runtime.warm_up().await.expect("a supervisor");
    }
    let first = one(host).await;
    let mut later = BTreeMap::<String, Vec<f64>>::new();
    for _ in 0..LATER {
        for (name, time) in one(host).await {
            later.entry(name).or_default().push(time);
        }
    }
    let report =
        first.into_iter().fold(Report::default(), |report, (name, time)| report.with(&format!("first: {name}"), time));
    later.into_iter().fold(report, |report, (name, times)| report.with(&format!("later: {name}"), median(times)))
}

/// Returns the times of the steps of one run, in microseconds after the call, and after the CLI's exit.
async fn one(host: &Host) -> BTreeMap<String, f64> {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let began = now_ns();
    let mut run = host.run();
    note("call returned");
    let _first = run.next().await.expect("a first event");
    note("first event received");
    while run.next().await.is_some() {}
    note("done received");
    let exit = exit_ns(&host.cli).expect("the CLI's exit");
    let mut steps = std::mem::take(&mut *STEPS.lock().unwrap_or_else(PoisonError::into_inner));
    steps.push(("CLI's main began".to_owned(), main_ns(&host.cli).expect("the CLI's start")));
    let since = |name: &str| if END.contains(&name) { exit } else { began };
    let relative = |(name, time): (String, u64)| {
        let time = microseconds(time.saturating_sub(since(&name)));
        (name, time)
    };
    steps.into_iter().map(relative).collect()
}

fn note(step: &str) {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner).push((step.to_owned(), now_ns()));
}

/// Notes the time of each step.
struct Steps;

impl Subscriber for Steps {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Step);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Step;

impl Visit for Step {
    fn record_str(&mut self, _: &Field, step: &str) {
        note(step);
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
