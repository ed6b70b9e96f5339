//! `docs/agents.md` and `docs/errors.md` say what the code says: their tables are made from the agents' own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints take helpers of tests for library code"
)]

use std::fmt::Write as _;

use std::path::Path;

use teamster::Registry;
use teamster::agent::{Abilities, Feature, Sign, Support};
use teamster::event::ErrorCode;

const BEGIN: &str = "<!-- made from the code: UPDATE_DOCS=1 cargo test -p teamster --test docs -->";
const END: &str = "<!-- end -->";

fn agents() -> Vec<(String, &'static Abilities)> {
    let registry = Registry::default();
    let of = |name: &str| Some((name.to_owned(), registry.get(name).ok()?.abilities()?));
    registry.names().filter_map(of).collect()
}

fn tables() -> String {
    let agents = agents();
    let mut text = String::new();
    let names: Vec<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
    let rule = "|---".repeat(names.len() + 1);
    writeln!(text, "## Options\n\n| option | {} |\n{rule}|", names.join(" | ")).unwrap();
    for feature in Feature::ALL {
        let cell = |(_, abilities): &(String, &'static Abilities)| match abilities.support(*feature) {
            Support::Yes(_) => "yes",
            Support::Ignored(_) => "warning",
            Support::Refused(_) => "refused",
        };
        let cells: Vec<&str> = agents.iter().map(cell).collect();
        writeln!(text, "| `{}` | {} |", feature.name(), cells.join(" | ")).unwrap();
    }
    text.push_str("\nA `warning` is `OPTION_IGNORED`: the run goes on without it. What is `refused` starts nothing.\n");
    for (name, abilities) in &agents {
        let (version, package) = (abilities.tested_version, abilities.package);
        writeln!(text, "\n## {name}\n\nTested with {version} (`npm install -g {package}@{version}`).\n").unwrap();
        text.push_str("| option | how, or why not |\n|---|---|\n");
        for feature in Feature::ALL {
            let (mark, words) = match abilities.support(*feature) {
                Support::Yes(how) => ("", how),
                Support::Ignored(why) => ("warning: ", why),
                Support::Refused(why) => ("refused: ", why),
            };
            writeln!(text, "| `{}` | {mark}{words} |", feature.name()).unwrap();
        }
        text.push_str("\n| event | how it comes |\n|---|---|\n");
        for (event, how) in abilities.events {
            writeln!(text, "| `{event}` | {how} |").unwrap();
        }
    }
    text
}

/// What each code means, and by which signs of each agent it is told.
fn failures() -> String {
    let mut text = String::from("## Codes\n\n| code | what it means, and what to do |\n|---|---|\n");
    for code in ErrorCode::KNOWN {
        writeln!(text, "| `{code}` | {} |", code.meaning()).unwrap();
    }
    for (name, abilities) in agents() {
        writeln!(text, "\n## {name} {}\n", abilities.tested_version).unwrap();
        text.push_str("| sign | code | retryable | seen in |\n|---|---|---|---|\n");
        for row in abilities.failures {
            let signs: Vec<String> = row.signs.iter().map(sign).collect();
            let seen: Vec<String> = row.seen.iter().map(|run| format!("`{run}`")).collect();
            let retryable = if row.retryable { "yes" } else { "no" };
            writeln!(text, "| {} | `{}` | {retryable} | {} |", signs.join(" and "), row.code, seen.join(", ")).unwrap();
        }
    }
    text
}

fn sign(sign: &Sign) -> String {
    match sign {
        Sign::Field(name, "…") => format!("`{name}` is there"),
        Sign::Field(name, value) => format!("`{name}` is {}", quoted(value)),
        Sign::Status(from, to) if from == to => format!("status {from}"),
        Sign::Status(from, to) => format!("status {from} to {to}"),
        Sign::ExitCode(code) => format!("exit code {code}"),
        Sign::Message(text) => format!("message {}", quoted(text)),
        Sign::Stderr(text) => format!("stderr {}", quoted(text)),
        other => panic!("{other:?} has no words yet"),
    }
}

/// As code, which may hold backticks itself.
fn quoted(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

#[test]
fn the_tables_of_the_agents_page_are_current() {
    assert_current("agents.md", &tables());
}

#[test]
fn the_tables_of_the_errors_page_are_current() {
    assert_current("errors.md", &failures());
}

fn assert_current(page: &str, tables: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a place for the tables");
    let (_, after) = rest.split_once(END).expect("the page has an end of the tables");
    let current = format!("{before}{BEGIN}\n\n{tables}\n{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(page == current || std::env::var_os("UPDATE_DOCS").is_some(), "run: {BEGIN}");
}

/// The text of every test of the workspace.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_agents_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/agents.md")).unwrap();
    let mut tests = String::new();
    for folder in ["conformance/tests", "crates/teamster-protocol/tests/it", "crates/teamster-testkit/tests"] {
        sources(&root.join(folder), &mut tests);
    }
    let traps = page.split_once("## Traps").unwrap().1;
    let rows = traps.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | ")).map(|(_, last)| last);
    let named: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 50, "only {} tests are named", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_agent_says_of_every_option_whether_and_how() {
    for (name, abilities) in agents() {
        let listed: Vec<_> = abilities.features.iter().map(|(feature, _)| *feature).collect();
        assert_eq!(listed, Feature::ALL, "{name}");
    }
}
