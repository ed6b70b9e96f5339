//! `cargo xtask bench start`: what is between the call of `run` and the first event, and between the CLI's exit and `done`.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::json;

use crate::bench::form::Form;
use crate::bench::measure::Bench;
use crate::bench::results::{Measured, Results};
use crate::bench::rows::Row;
use crate::bench::statistics::number;
use crate::bench::subjects::{LIBRARY, RAW};

/// The results of processes that do not call `Runtime::warm_up`, and of those that do.
const COLD: &str = "steps";
const WARMED_UP: &str = "steps-warmed-up";

struct Step {
    /// The driver's name of the step.
    name: &'static str,
    title: &'static str,
    /// The steps that it waits for. With none, it starts with the call or with the CLI's exit.
    after: &'static [&'static str],
}

const fn step(name: &'static str, title: &'static str, after: &'static [&'static str]) -> Step {
    Step { name, title, after }
}

const START: &[Step] = &[
    step("call returned", "the call: checks the request, plans the launch, copies the environment", &[]),
    step("admitted", "the driver's task starts; the run has its place in the queue", &["call returned"]),
    step("keeper ready", "a keeper: the supervisor forks it; in a first run, the supervisor starts", &["admitted"]),
    step(
        "thread started",
        "at the same time: a thread that may wait for the disk, if the system has one",
        &["admitted"],
    ),
    step("ledger entry written", "there: the ledger entry", &["thread started"]),
    step("private files written", "there: private files", &["ledger entry written"]),
    step("prepared", "there: the environment, and the search for the program", &["private files written"]),
    step("prepared and keeper ready", "the driver resumes", &["prepared", "keeper ready"]),
    step(
        "CLI's main began",
        "pipes, the request to the keeper, `fork`, `exec`, the dynamic loader",
        &["prepared and keeper ready"],
    ),
    step(
        "CLI started",
        "at the same time: the report that `exec` succeeded, to the driver",
        &["prepared and keeper ready"],
    ),
    step(
        "first output read",
        "the CLI writes its first line, and the driver reads it",
        &["CLI's main began", "CLI started"],
    ),
    step("first event received", "the consumer has the first event", &["first output read"]),
];

const END: &[Step] = &[
    step("exit noticed", "the system ends the CLI; the keeper reaps it and reports; the driver wakes", &[]),
    step("output read", "the rest of the output, to the end of the pipes", &["exit noticed"]),
    step("tree gone", "the keeper's report that no process of the tree is left", &["output read"]),
    step("files removed", "private files and the ledger entry are removed, on a thread", &["tree gone"]),
    step("done received", "the transcript is closed; the consumer has `done`", &["files removed"]),
];

/// Measures in new processes, in turn.
pub(crate) fn measure(bench: &Bench<'_>, rounds: u32, results: &Results) -> Result<()> {
    let [mut cold, mut warmed_up] = [Measured::default(), Measured::default()];
    for round in 1..=rounds {
        println!("round {round} of {rounds}");
        for (task, measured) in [(COLD, &mut cold), (WARMED_UP, &mut warmed_up)] {
            measured.append(bench.measure(&row(task), 1)?);
        }
    }
    results.save(COLD, &cold)?;
    results.save(WARMED_UP, &warmed_up)
}

fn row(task: &'static str) -> Row {
    Row {
        name: task,
        title: "",
        about: "",
        form: Form::Claude,
        task,
        runs: 1,
        scenario: json!({ "deltas": 20 }),
        columns: &[],
        subjects: if task == COLD { vec![LIBRARY, RAW] } else { vec![LIBRARY] },
        baseline: RAW,
        left_out: &[],
    }
}

/// Returns the part of the page. It is empty if nothing was measured.
pub(crate) fn section(results: &Results) -> String {
    let (Some(cold), Some(warmed_up)) = (results.load(COLD), results.load(WARMED_UP)) else { return String::new() };
    let mut text = String::new();
    let columns = [(&cold, "later"), (&cold, "first"), (&warmed_up, "first")];
    for (title, steps) in [("From `run()` to the first event", START), ("From the CLI's exit to `done`", END)] {
        write!(text, "\n### {title}\n\n{}", table(steps, columns)).unwrap_or_default();
    }
    if let (Some(main), Some(end)) = (cold.spread(RAW.name, "main_ms"), cold.spread(RAW.name, "done_ms")) {
        let (main, end) = (number(main.median * 1000.0), number(end.median * 1000.0));
        let floor = format!(
            "\nWithout a library, a spawn takes {main} µs to the CLI's `main`, and the exit is known after {end} µs.\n"
        );
        text += &floor;
    }
    text
}

fn table(steps: &[Step], columns: [(&Measured, &str); 3]) -> String {
    let mut text = "| step | ends at, µs | takes, µs | in a first run | in a first run after `warm_up` |\n\
                    | --- | --: | --: | --: | --: |\n"
        .to_owned();
    for step in steps {
        let at = |(measured, runs): (&Measured, &str), name: &str| {
            Some(measured.spread(LIBRARY.name, &format!("{runs}: {name}"))?.median)
        };
        let ends = at(columns[0], step.name).map_or("–".to_owned(), number);
        let takes = columns.map(|column| {
            let since = step.after.iter().filter_map(|name| at(column, name)).fold(0.0, f64::max);
            at(column, step.name).map_or("–".to_owned(), |ends| number((ends - since).max(0.0)))
        });
        writeln!(text, "| {} | {ends} | {} |", step.title, takes.join(" | ")).unwrap_or_default();
    }
    let last = steps.last().map(|step| step.name).unwrap_or_default();
    let totals = columns.map(|(measured, runs)| {
        let spread = measured.spread(LIBRARY.name, &format!("{runs}: {last}"));
        spread.map_or("–".to_owned(), |spread| number(spread.median))
    });
    text + &format!("| **all** | | {} |\n", totals.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::results::Sample;

    #[test]
    fn a_step_takes_the_time_since_the_last_of_the_steps_before_it() {
        let sample = Sample::from(
            [
                ("later: prepared", 200.0),
                ("later: keeper ready", 300.0),
                ("later: prepared and keeper ready", 310.0),
                ("first: prepared and keeper ready", 900.0),
            ]
            .map(|(name, time)| (name.to_owned(), time)),
        );
        let mut measured = Measured::default();
        measured.samples.insert(LIBRARY.name.to_owned(), vec![sample]);
        let table = table(START, [(&measured, "later"), (&measured, "first"), (&measured, "first")]);
        assert!(table.contains("| the driver resumes | 310 | 10.0 | 900 | 900 |\n"), "{table}");
    }

    #[test]
    fn every_step_follows_steps_of_the_same_list() {
        for steps in [START, END] {
            for (place, step) in steps.iter().enumerate() {
                let earlier = |name: &&str| steps[..place].iter().any(|other| other.name == *name);
                assert!(step.after.iter().all(earlier), "{}", step.name);
            }
        }
    }
}
