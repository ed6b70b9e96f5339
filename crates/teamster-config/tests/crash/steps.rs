//! Kills after each step, one after another.

use libtest_mimic::Trial;

use crate::child::MergingProcess;
use crate::home::{Home, Kind};

/// More steps than a merge and its end have.
const MOST_STEPS: u32 = 100;

type Scenario = (&'static str, fn(&mut Home, u32) -> bool);

const SCENARIOS: [Scenario; 5] = [
    ("alone", alone),
    ("beside_another_process", beside_another),
    ("and_another_merges_before_a_recovery", before_another),
    ("after_an_edit", after_an_edit),
    ("and_the_next_process_too", twice),
];

pub(crate) fn trials() -> Vec<Trial> {
    let all = Kind::ALL.into_iter().flat_map(|kind| SCENARIOS.map(|scenario| (kind, scenario)));
    all.map(|(kind, (name, scenario))| {
        Trial::test(format!("steps::{}::a_process_killed_after_any_step_{name}", kind.name()), move || {
            for step in 1..MOST_STEPS {
                let mut home = Home::new(kind);
                let died = scenario(&mut home, step);
                home.recover();
                home.assert_clean(&format!("killed after step {step}"));
                if !died {
                    assert!(step > 10, "only {step} steps");
                    return Ok(());
                }
            }
            Err(format!("the process still died after {MOST_STEPS} steps").into())
        })
    })
    .collect()
}

/// Runs a process to its end. Returns whether it died at the step.
fn live(home: &Home, name: &str, step: u32, meanwhile: impl FnOnce()) -> bool {
    let mut process = MergingProcess::start(home.path(), home.kind, name, step);
    if process.prints("in") {
        meanwhile();
    }
    process.end_merge();
    !process.prints("out")
}

fn alone(home: &mut Home, step: u32) -> bool {
    live(home, "a", step, || {})
}

fn beside_another(home: &mut Home, step: u32) -> bool {
    let mut other = MergingProcess::start(home.path(), home.kind, "b", 0);
    assert!(other.prints("in"));
    let died = live(home, "a", step, || {});
    home.recover();
    let text = home.text().unwrap();
    assert!(text.contains("server-of-b") && !text.contains("server-of-a"), "{text}");
    other.end_merge();
    assert!(other.prints("out"));
    home.assert_clean("without a recovery");
    died
}

fn before_another(home: &mut Home, step: u32) -> bool {
    let died = live(home, "a", step, || {});
    assert!(!live(home, "b", 0, || {
        let text = home.text().unwrap();
        assert!(text.contains("server-of-b") && !text.contains("server-of-a"), "{text}");
    }));
    home.assert_clean("without a recovery");
    died
}

fn after_an_edit(home: &mut Home, step: u32) -> bool {
    let mut process = MergingProcess::start(home.path(), home.kind, "a", step);
    if process.prints("in") {
        home.edit("edited");
    }
    process.end_merge();
    let died = !process.prints("out");
    home.edit("edited again");
    died
}

/// The next process is killed too, at each step in turn.
fn twice(home: &mut Home, step: u32) -> bool {
    let died = live(home, "a", step, || {});
    for second in 1..MOST_STEPS {
        if !live(home, "b", second, || {}) {
            break;
        }
    }
    died
}
