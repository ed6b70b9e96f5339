//! The tests without real CLIs that CI and `cargo xtask test --quick` leave out.

use super::LeftOut;

/// All tests that `cargo xtask test --quick` leaves out, besides the conformance tests. CI runs them.
pub(in super::super) const NOT_IN_QUICK: &[LeftOut] = &[
    LeftOut {
        binary: "bounds",
        tests: &["*"],
        reason: "Millions of lines through each parser, to measure its memory.",
    },
    LeftOut { binary: "descriptors", tests: &["*"], reason: "Hundreds of runs, to count their file descriptors." },
    LeftOut { binary: "driver", tests: &["end_orders::*"], reason: "A thousand runs, in all orders of their ends." },
    LeftOut { binary: "crash", tests: &["*"], reason: "A process for each step after which it can be killed." },
    LeftOut {
        binary: "it",
        tests: &["properties::*", "replay::*", "merge_restore::*", "surroundings::*"],
        reason: "Random input for each parser, all recorded runs, and processes that are killed at random moments.",
    },
    LeftOut { binary: "survival", tests: &["*"], reason: "The faults of the survival table, on the fake agent." },
];

/// The tests of the other crates that CI leaves out.
pub(in super::super) const ORDINARY_NOT_IN_CI: &[LeftOut] = &[
    LeftOut {
        binary: "bounds",
        tests: &["*"],
        reason: "Millions of lines through each parser, to measure its memory. The limits have unit tests in CI.",
    },
    LeftOut {
        binary: "descriptors",
        tests: &["*"],
        reason: "Hundreds of runs, to count descriptors. `cargo xtask load` measures the same.",
    },
    LeftOut {
        binary: "driver",
        tests: &["end_orders::every_order_while_*", "end_orders::every_order_with_a_consumer_*"],
        reason: "Hundreds of runs. The other orders of ends, and grandchildren and slow consumers alone, are in CI.",
    },
];
