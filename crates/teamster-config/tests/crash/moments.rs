//! Kills at random moments.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::child::MergingProcess;
use crate::home::{Home, Kind};

/// The sum of all parts is 200 for each format.
const ROUNDS: u32 = 50;
const PARTS: u32 = 4;

pub(crate) fn trials() -> Vec<Trial> {
    let all = [Kind::Toml, Kind::Jsonc].into_iter().flat_map(|kind| (1..=PARTS).map(move |part| (kind, part)));
    all.map(|(kind, part)| {
        Trial::test(format!("moments::{}::a_process_killed_at_any_moment_{part}", kind.name()), move || {
            let life = lifetime(kind);
            for round in 0..ROUNDS {
                play(kind, round, life);
            }
            Ok(())
        })
    })
    .collect()
}

/// Measures the time of a merge and its end.
fn lifetime(kind: Kind) -> Duration {
    let home = Home::new(kind);
    let began = Instant::now();
    let mut process = MergingProcess::start(home.path(), kind, "a", 0);
    process.end_merge();
    assert!(process.prints("in") && process.prints("out"));
    began.elapsed()
}

/// Runs two merges that overlap. One or both processes are killed at random moments. The user edits the file before or after.
fn play(kind: Kind, round: u32, life: Duration) {
    let mut home = Home::new(kind);
    let mut a = MergingProcess::start(home.path(), kind, "a", 0);
    let mut b = MergingProcess::start(home.path(), kind, "b", 0);
    let edits = round.is_multiple_of(2);
    if edits && a.prints("in") && b.prints("in") {
        home.edit("edited");
    }
    let (first, second) = if round % 4 < 2 { (&mut a, &mut b) } else { (&mut b, &mut a) };
    first.end_merge();
    sleep(life.mul_f64(random()));
    first.kill();
    if round.is_multiple_of(3) {
        second.end_merge();
        sleep(life.mul_f64(random() / 2.0));
        second.kill();
    } else {
        second.end_merge();
        while second.reads_a_line() {}
    }
    if round.is_multiple_of(5) {
        home.edit("edited");
    }
    home.recover();
    home.assert_clean(&format!("round {round}"));
}

/// Returns a number of at least 0 and less than 1.
fn random() -> f64 {
    f64::from(u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap()) / f64::from(u32::MAX)
}
