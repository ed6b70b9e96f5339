//! `cargo xtask test` and `cargo xtask ci`: runs all checks in order, and ends with one list of those that failed.
//!
//! The whole workspace is built with one set of features. The tests are selected from this build, so that no crate is
//! compiled twice.

mod left_out;
mod report;

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use self::report::{CheckEnd, Report};
use crate::bench;
use crate::command::{cargo, run as run_command, run_tests};
use crate::install_clis;
use crate::junit;
use crate::page;
use crate::python;
use crate::size;
use crate::tidy;
use crate::tools::{MACOS, Tools};
use crate::totals::Totals;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Format, source text, lints, and the tests that take little time and no Node.
    Quick,
    Full,
    /// As `Full`, without the tests that CI leaves out, and with output for a log file.
    Ci,
}

struct Check {
    name: &'static str,
    action: Action,
    /// The check without whose success this one makes no sense.
    needs: Option<&'static str>,
}

enum Action {
    Run(Command),
    /// A test runner, whose closing lines are counted.
    Count(Command),
    /// A run of cargo-nextest with this profile. Its tests are read from the file that it writes.
    Nextest(Command, &'static str),
    /// The checks of the source text.
    Tidy,
    InstallClis,
    InstallPython,
    /// The web page: its committed files and its tests.
    Page,
    /// The number of instructions, against the baseline.
    Instructions,
    /// The size of the command, and the number of its crates.
    Size,
    Skip(&'static str),
}

/// Runs all checks, and prints the list.
///
/// # Errors
/// A tool is missing, so that nothing was run.
pub(crate) fn run(scope: Scope) -> Result<ExitCode> {
    let tools = Tools::find();
    match scope {
        Scope::Quick => tools.require_rust()?,
        Scope::Full => tools.require_all().context("nothing was run (`--quick` needs no Node.js)")?,
        Scope::Ci => tools.require_all().context("nothing was run")?,
    }
    if !tools.nextest {
        println!(
            "cargo-nextest is not installed: `cargo test` runs the tests (get it: cargo install --locked cargo-nextest)"
        );
    }

    let started = Instant::now();
    let checks = checks(scope, &tools);
    let count = checks.len();
    let mut totals = Totals::default();
    let mut report = Report::default();
    for (index, Check { name, action, needs }) in checks.into_iter().enumerate() {
        println!("\n== {}/{count} {name}", index + 1);
        let end = match needs {
            Some(needs) if report.has_failed(needs) => CheckEnd::NotRun { needs },
            _ => perform(action, &mut totals, &mut report),
        };
        if matches!(end, CheckEnd::Failed(_) | CheckEnd::NotRun { .. }) {
            println!("{name}: {end}");
        }
        report.add(name, end);
    }
    println!("\n{}", report.text(started.elapsed()));
    println!("{totals}"); // alone on the last line: CI systems read the number of tests here
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn perform(action: Action, totals: &mut Totals, report: &mut Report) -> CheckEnd {
    let result = match action {
        Action::Run(command) => run_command(command),
        Action::Count(command) => run_tests(command, totals),
        Action::Nextest(command, profile) => run_nextest(command, profile, totals, report),
        Action::Tidy => tidy::check_against_baseline(),
        Action::InstallClis => install_clis::run(),
        Action::InstallPython => python::install_for_tests(),
        Action::Page => page::check(totals),
        Action::Instructions => bench::check_counts(),
        Action::Size => size::run(),
        Action::Skip(why) => {
            println!("{why}");
            return CheckEnd::Skipped;
        }
    };
    result.map_or_else(|error| CheckEnd::Failed(format!("{error:#}")), |()| CheckEnd::Passed)
}

fn run_nextest(command: Command, profile: &str, totals: &mut Totals, report: &mut Report) -> Result<()> {
    let file = junit::path(profile)?;
    junit::forget(&file)?;
    let ended = run_tests(command, totals);
    // A build that fails writes no file.
    match junit::read(&file) {
        Ok(records) => report.add_tests(records),
        Err(error) if ended.is_ok() => return Err(error),
        Err(_) => {}
    }
    ended
}

fn checks(scope: Scope, tools: &Tools) -> Vec<Check> {
    let check = |name, action| Check { name, action, needs: None };
    let mut clippy = cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--"]);
    clippy.args(["-D", "warnings"]);
    let mut docs = cargo(&["doc", "--workspace", "--lib", "--no-deps", "--all-features"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");

    let mut checks = vec![
        check("format", Action::Run(cargo(&["fmt", "--all", "--check"]))),
        check("source text", Action::Tidy),
        check("lints", Action::Run(clippy)),
        check("tests", tests(scope, tools, Part::Ordinary)),
    ];
    if scope == Scope::Quick {
        return checks;
    }
    checks.extend([
        check("macOS, as far as it compiles", macos(tools)),
        check("examples in the docs", Action::Count(cargo(&["test", "--doc", "--workspace", "--all-features"]))),
        check("docs", Action::Run(docs)),
    ]);
    if !tools.nextest {
        checks.push(check("survival", Action::Count(survival(tools, Column::Fake))));
    }
    checks.push(check("web page", web_page(scope)));
    checks.push(check(AGENT_CLIS, Action::InstallClis));
    let left_out = Action::Skip("skipped, with the tests that need it: TEAMSTER_WITHOUT_PYTHON is set");
    checks.push(check("Python clients", if python::is_left_out() { left_out } else { Action::InstallPython }));
    let conformance = tests(scope, tools, Part::Conformance);
    checks.push(Check { name: "conformance", action: conformance, needs: Some(AGENT_CLIS) });
    // A release build takes minutes, and the counts depend on the compiler. Both are for the machine of a developer.
    if scope == Scope::Full {
        let instructions = if tools.valgrind {
            Action::Instructions
        } else {
            Action::Skip("skipped: valgrind is not installed (get it: apt-get install valgrind)")
        };
        checks.extend([check("instructions", instructions), check("size", Action::Size)]);
    }
    checks.push(check(
        "dependency policy",
        if tools.deny {
            Action::Run(cargo(&["deny", "--all-features", "check", "bans", "licenses", "sources"]))
        } else {
            Action::Skip("skipped: cargo-deny is not installed (get it: cargo install --locked cargo-deny)")
        },
    ));
    checks
}

/// Checks the web page. A run of CI without a browser fails when it gets there.
fn web_page(scope: Scope) -> Action {
    if scope != Scope::Ci && page::missing().is_some() {
        return Action::Skip("skipped: Chromium is not installed (`cargo xtask page --check` says how to get it)");
    }
    Action::Page
}

/// Checks the shipped crates for macOS.
fn macos(tools: &Tools) -> Action {
    if !tools.macos {
        return Action::Skip("skipped: the target is not installed (get it: rustup target add x86_64-apple-darwin)");
    }
    let mut clippy = cargo(&["clippy", "--target", MACOS, "--package", "teamster-cli", "--package", "teamster"]);
    clippy.args(["--package", "teamster-process", "--", "-D", "warnings"]);
    Action::Run(clippy)
}

#[derive(Clone, Copy)]
enum Part {
    Ordinary,
    /// The tests of the real CLIs, at most two at a time.
    Conformance,
}

/// The CLIs of the survival suite.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Fake,
    /// The fake agent and all real CLIs.
    Every,
}

/// The check that installs the agent CLIs.
const AGENT_CLIS: &str = "agent CLIs";

/// The profile of `cargo xtask soak tests` in `.config/nextest.toml`.
pub(crate) const SOAK_PROFILE: &str = "soak";

/// The part of the survival suite that needs no Node.
const FAKE_SURVIVAL: &str = "binary(survival) & test(/^(fake|table)::/)";

/// Returns the run of the tests without cargo-nextest.
fn cargo_test(part: Part) -> Command {
    let mut command = cargo(&["test", "--no-fail-fast", "--all-features"]);
    match part {
        Part::Ordinary => {
            command.args(["--workspace", "--exclude", "teamster-conformance", "--lib", "--bins", "--tests"]);
        }
        Part::Conformance => {
            command.args(["--package", "teamster-conformance", "--"]);
            command.args(["--test-threads=2", "--skip", "fake::", "--skip", "table::"]);
        }
    }
    command
}

fn tests(scope: Scope, tools: &Tools, part: Part) -> Action {
    if !tools.nextest {
        return Action::Count(cargo_test(part));
    }
    let filter = match part {
        Part::Ordinary if scope == Scope::Quick => {
            format!("not package(teamster-conformance) & not ({})", left_out::filter(left_out::NOT_IN_QUICK))
        }
        Part::Ordinary if scope == Scope::Ci => {
            let left_out = left_out::filter(left_out::ORDINARY_NOT_IN_CI);
            format!("(not package(teamster-conformance) & not ({left_out})) | ({FAKE_SURVIVAL})")
        }
        Part::Ordinary => format!("not package(teamster-conformance) | ({FAKE_SURVIVAL})"),
        // Bounded by its group in .config/nextest.toml.
        Part::Conformance if scope == Scope::Ci => {
            format!(
                "package(teamster-conformance) & not ({FAKE_SURVIVAL}) & not ({})",
                left_out::filter(left_out::NOT_IN_CI)
            )
        }
        Part::Conformance => format!("package(teamster-conformance) & not ({FAKE_SURVIVAL})"),
    };
    let profile = if scope == Scope::Ci { "ci" } else { "default" };
    let mut command = nextest(profile, &filter);
    if scope != Scope::Ci && page::missing().is_some() {
        command.env(page::WITHOUT_BROWSER, "1");
    }
    Action::Nextest(command, profile)
}

/// Returns a run of cargo-nextest that does not stop at a failure.
fn nextest(profile: &str, filter: &str) -> Command {
    let mut command = cargo(&["nextest", "run", "--workspace", "--all-features", "--no-fail-fast"]);
    command.args(["--profile", profile, "--filterset", filter]);
    command
}

/// Returns the command that runs each ordinary test once, or also each conformance test.
pub(crate) fn every_test(with_conformance: bool) -> Command {
    let ordinary = format!("not package(teamster-conformance) | ({FAKE_SURVIVAL})");
    let mut command = nextest(SOAK_PROFILE, if with_conformance { "all()" } else { &ordinary });
    if page::missing().is_some() {
        command.env(page::WITHOUT_BROWSER, "1");
    }
    command
}

/// Returns the command that runs only the survival suite.
pub(crate) fn survival(tools: &Tools, column: Column) -> Command {
    if tools.nextest {
        let filter = match column {
            Column::Fake => FAKE_SURVIVAL,
            Column::Every => "binary(survival)",
        };
        return cargo(&["nextest", "run", "--workspace", "--all-features", "--filterset", filter]);
    }
    let mut command = cargo(&["test", "--package", "teamster-conformance", "--all-features", "--test", "survival"]);
    command.args(["--", "--test-threads=2"]);
    if column == Column::Fake {
        command.args(["--skip", "claude::", "--skip", "codex::", "--skip", "gemini::", "--skip", "opencode::"]);
    }
    command
}
