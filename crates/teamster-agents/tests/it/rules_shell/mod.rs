//! Runs the commands that an allow rule accepts in a real shell.

mod stub_shell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use stub_shell::StubShell;

/// Pieces of shell syntax, which are combined to commands.
const PIECES: [&str; 60] = [
    "git",
    "diff",
    "git diff",
    "git diff ",
    " git diff",
    "rm",
    "evil",
    "x",
    "a=1",
    "a=1 ",
    "PATH=. ",
    " ",
    " ",
    "\t",
    "\n",
    "\r",
    ";",
    ";",
    "&&",
    "||",
    "|",
    "|&",
    "&",
    "!",
    "! ",
    "#",
    " # ",
    "'",
    "\"",
    "$'",
    "\\",
    "\\\n",
    "`",
    "$(",
    ")",
    "(",
    "{ ",
    "; }",
    "$x",
    "${",
    "}",
    ">",
    ">x",
    ">>",
    "<",
    "<<",
    "<<<",
    "2>&1",
    ">/dev/null",
    "2>",
    "&>",
    "*",
    "?",
    "~",
    "bash -c ",
    "sh -c ",
    "if ",
    "then ",
    "eval ",
    "time ",
];

fn command() -> impl Strategy<Value = String> {
    let piece = || {
        prop_oneof![
            4 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
            1 => "[ -~]{1,4}",
        ]
    };
    let more = prop::collection::vec(piece(), 0..6).prop_map(|pieces| pieces.concat());
    prop_oneof![
        4 => more.clone().prop_map(|more| format!("git diff{more}")),
        2 => (more.clone(), prop::sample::select(vec!["'", "\""])).prop_map(|(more, quote)| format!("bash -c {quote}git diff{more}{quote}")),
        2 => (prop::sample::select(vec![";", "&&", "||", "|", "\n"]), more.clone())
            .prop_map(|(between, more)| format!("git diff {between} git diff{more}")),
        1 => more,
    ]
}

#[test]
fn a_command_that_a_rule_allows_runs_no_other_program_and_writes_no_file() {
    let shell = StubShell::new().unwrap();
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 800, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let run = std::cell::Cell::new(0);
    runner
        .run(&command(), |command| {
            if shell.allows(&command) && shell.check(&command).map_err(TestCaseError::fail)? {
                run.set(run.get() + 1);
            }
            Ok(())
        })
        .unwrap();
    assert!(run.get() >= 100, "only {} of the commands were allowed and run", run.get());
}

#[test]
fn the_stubs_record_the_programs_that_a_command_runs() {
    let shell = StubShell::new().unwrap();
    assert_eq!(shell.check("git diff a; git diff | git diff"), Ok(true));
    for bad in [
        "git push",
        "git diff; rm x",
        "unknown y",
        "bash -c 'rm x'",
        "sh -c evil",
        "$(rm)",
        "git diff > x",
        "kill -0 1",
    ] {
        assert!(shell.check(bad).is_err(), "{bad}");
    }
    assert_eq!(shell.check("/bin/ls"), Ok(false));
}
