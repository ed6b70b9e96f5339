//! The programs of the README, of the pages and of rustdoc. Without an installed CLI each prints the failure and exits with an
//! error.

#![expect(clippy::unwrap_used, reason = "the lints take helpers of tests for library code")]

use std::path::Path;
use std::process::{Command, ExitCode, Output, Termination as _};

#[path = "../examples/run.rs"]
mod run;
#[path = "../examples/session.rs"]
mod session;

/// The name of the program that the process is to be.
const PROGRAM: &str = "TEAMSTER_TEST_PROGRAM";

/// The name of the test that is a program where [`PROGRAM`] is set.
const ENTRY: &str = "entry_of_a_program";

/// Runs a program as its own `main` would run. Its failure is printed as Rust prints that of `main`.
fn run_program(name: &str) -> Option<ExitCode> {
    Some(match name {
        "run" => run::main().report(),
        "session" => session::main().report(),
        _ => return None,
    })
}

#[test]
fn entry_of_a_program() {
    let Some(name) = std::env::var_os(PROGRAM) else { return };
    let code = run_program(name.to_str().unwrap()).unwrap();
    std::process::exit(i32::from(code != ExitCode::SUCCESS));
}

/// Runs a program in an empty home and without any CLI in PATH.
fn without_cli(name: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args([ENTRY, "--exact", "--nocapture"]).env_clear().current_dir(&home);
    program.env("HOME", home.path()).env("PATH", home.path()).env(PROGRAM, name).output().unwrap()
}

#[test]
fn the_programs_print_their_failure_and_exit_with_an_error_without_a_cli() {
    for name in ["run", "session"] {
        let output = without_cli(name);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{name}: {errors}");
        assert!(errors.contains("CLI_NOT_FOUND") && errors.contains("claude"), "{name}: {errors}");
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns a program as a page shows it: without what only this project needs.
fn shown(program: &str) -> String {
    let source = read(&format!("examples/{program}.rs"));
    let lines = source.lines().filter(|line| !line.starts_with("//!") && !line.starts_with("#!["));
    let shown = lines.collect::<Vec<_>>().join("\n");
    shown.trim().replace("pub(crate) async fn main", "async fn main")
}

/// Returns the documentation of a source file, as rustdoc reads it.
fn rustdoc(file: &str) -> String {
    let source = read(file);
    let lines = source.lines().filter_map(|line| line.strip_prefix("//!").or_else(|| line.strip_prefix("///")));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_pages_and_rustdoc_show_these_programs() {
    let (run, session) = (shown("run"), shown("session"));
    assert!(read("../../README.md").contains(&run), "README.md shows examples/run.rs");
    assert!(rustdoc("src/lib.rs").contains(&run), "rustdoc shows examples/run.rs");
    assert!(read("../../docs/sessions.md").contains(&session), "docs/sessions.md shows examples/session.rs");
    assert!(rustdoc("src/session/mod.rs").contains(&session), "rustdoc shows examples/session.rs");
}

/// Returns the Rust blocks of a text.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for line in text.lines() {
        match (line.trim_start().starts_with("```"), &mut open) {
            (true, None) => open = Some(String::new()),
            (true, Some(_)) => blocks.extend(open.take()),
            (false, Some(block)) => {
                block.push_str(line);
                block.push('\n');
            }
            (false, None) => {}
        }
    }
    blocks
}

/// Every example that reads a run to its end also notices its failure.
#[test]
fn no_example_hides_a_failed_run() {
    let mut files = vec!["../../README.md".to_owned(), "../../docs/sessions.md".to_owned()];
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    let mut checked = 0;
    for file in &files {
        let source = read(file);
        let comment = |line: &str| {
            let line = line.trim_start();
            line.strip_prefix("//!").or_else(|| line.strip_prefix("///")).map(str::to_owned)
        };
        let is_rust = Path::new(file).extension().is_some_and(|kind| kind == "rs");
        let text = if is_rust { source.lines().filter_map(comment).collect::<Vec<_>>().join("\n") } else { source };
        for block in blocks(&text).iter().filter(|block| block.contains("Event::Done(")) {
            assert!(block.contains("into_result()?") || block.contains("matches!("), "{file}: {block}");
            checked += 1;
        }
    }
    assert!(checked >= 3, "{checked}");
}
