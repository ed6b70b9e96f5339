//! The pages in `docs/` say what the code says: their tables are made from the agents' own, and the tests that they name
//! exist.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the lints take helpers of tests for library code")]

use std::fmt::Write as _;

use std::path::{Path, PathBuf};

use teamster::Registry;
use teamster::agent::{Abilities, Feature, OwnKeys, Sign, Support, WITHHELD_KEYS};
use teamster::event::ErrorCode;
use teamster::request::BASE_VARIABLES;

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
        if package.is_empty() {
            writeln!(text, "\n## {name}\n\nAny agent that speaks ACP: see [acp.md](acp.md).\n").unwrap();
        } else {
            writeln!(text, "\n## {name}\n\nTested with {version} (`npm install -g {package}@{version}`).\n").unwrap();
        }
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
        writeln!(text, "\n## {}\n", format!("{name} {}", abilities.tested_version).trim_end()).unwrap();
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

/// Names as code, with commas between them.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn keys(own: &OwnKeys) -> String {
    match own {
        OwnKeys::Always(names) => listed(names),
        OwnKeys::Switched(by, names) => format!("with `{by}` also {}", listed(names)),
        OwnKeys::OfProvider(others) => {
            let others: Vec<_> = others.iter().map(|(word, name)| format!("`{name}` of {word}")).collect();
            let rule =
                "those of the model's provider: they begin with its first word (`ANTHROPIC_...` for `anthropic/...`)";
            format!("{rule}; or {}", others.join(", "))
        }
    }
}

fn variables() -> String {
    let (base, withheld) = (listed(BASE_VARIABLES), listed(WITHHELD_KEYS));
    let mut text = format!("With `--env-only` these are inherited too, and the last column of the table: {base}.\n\n");
    writeln!(text, "`--withhold-keys` withholds these, and the agents' own from all others: {withheld}.").unwrap();
    text.push_str("\n| agent | its own keys | its home and configuration |\n|---|---|---|\n");
    for (name, abilities) in agents() {
        let own: Vec<String> = abilities.own_keys.iter().map(keys).collect();
        writeln!(text, "| {name} | {} | {} |", own.join("; "), listed(abilities.home_variables)).unwrap();
    }
    text
}

fn page(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Asserts that what stands between the marks of a page is this text, or writes it there.
fn check_tables(name: &str, tables: &str) {
    let (path, page) = page(name);
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let current = format!("{before}{BEGIN}\n\n{tables}\n{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(page == current || std::env::var_os("UPDATE_DOCS").is_some(), "{name}: run: {BEGIN}");
}

#[test]
fn the_tables_of_the_agents_page_are_current() {
    check_tables("agents.md", &tables());
}

#[test]
fn the_tables_of_the_errors_page_are_current() {
    check_tables("errors.md", &failures());
}

#[test]
fn the_variables_of_the_security_page_are_current() {
    check_tables("security.md", &variables());
}

/// The text of every source file in a folder.
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

/// The names in the last column of the tables of a chapter.
fn named_tests<'p>(page: &'p str, chapter: &str) -> Vec<&'p str> {
    let (_, chapter) = page.split_once(chapter).unwrap();
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let rows = chapter.lines().filter_map(|line| line.strip_suffix(" |")?.rsplit_once(" | ")).map(|(_, last)| last);
    rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_test_that_a_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = String::new();
    for folder in ["conformance/tests", "crates"] {
        sources(&root.join(folder), &mut tests);
    }
    for (name, chapter, least) in [("agents.md", "## Traps", 50), ("security.md", "## What is promised", 40)] {
        let (_, page) = page(name);
        let named = named_tests(&page, chapter);
        assert!(named.len() >= least, "{name} names only {} tests", named.len());
        let missing: Vec<_> = named.iter().filter(|test| !tests.contains(&format!("fn {test}("))).collect();
        assert!(missing.is_empty(), "{name}: {missing:#?}");
    }
}

#[test]
fn every_agent_says_of_every_option_whether_and_how() {
    for (name, abilities) in agents() {
        let listed: Vec<_> = abilities.features.iter().map(|(feature, _)| *feature).collect();
        assert_eq!(listed, Feature::ALL, "{name}");
    }
}
