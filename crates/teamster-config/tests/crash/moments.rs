//! Killed at random moments.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::thread::sleep;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;

use crate::child::Needing;
use crate::place::{Home, Kind};

/// In all 200 for each format.
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

/// How long a whole life takes now, on this machine.
fn lifetime(kind: Kind) -> Duration {
    let home = Home::new(kind);
    let began = Instant::now();
    let mut needing = Needing::start(home.path(), kind, "a", 0);
    needing.let_go();
    assert!(needing.says("in") && needing.says("out"));
    began.elapsed()
}

/// Two that overlap; one of them is killed at any moment of its life, or both; the user edits the file before or after.
fn play(kind: Kind, round: u32, life: Duration) {
    let mut home = Home::new(kind);
    let mut a = Needing::start(home.path(), kind, "a", 0);
    let mut b = Needing::start(home.path(), kind, "b", 0);
    let edits = round.is_multiple_of(2);
    if edits && a.says("in") && b.says("in") {
        home.edit("edited");
    }
    let (first, second) = if round % 4 < 2 { (&mut a, &mut b) } else { (&mut b, &mut a) };
    first.let_go();
    sleep(life.mul_f64(random()));
    first.kill();
    if round.is_multiple_of(3) {
        second.let_go();
        sleep(life.mul_f64(random() / 2.0));
        second.kill();
    } else {
        second.let_go();
        while second.says_anything() {}
    }
    if round.is_multiple_of(5) {
        home.edit("edited");
    }
    home.recover();
    home.assert_clean(&format!("round {round}"));
}

/// At least 0, less than 1.
fn random() -> f64 {
    f64::from(u32::try_from(RandomState::new().build_hasher().finish() >> 32).unwrap()) / f64::from(u32::MAX)
}
