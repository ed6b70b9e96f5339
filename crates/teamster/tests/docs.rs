//! Checks the pages: tables in `docs/` are generated from the agents' own tables, and every test and file that a page
//! names exists.

#![expect(clippy::unwrap_used, clippy::panic, reason = "the lints take helpers of tests for library code")]

use std::fmt::Write as _;

use std::path::{Path, PathBuf};

use teamster::Registry;
use teamster::agent::{Capabilities, Feature, Matcher, OwnKeys, Support, WITHHELD_KEYS};
use teamster::event::ErrorCode;
use teamster::request::BASE_VARIABLES;

const BEGIN: &str = "<!-- generated from the code: UPDATE_DOCS=1 cargo test -p teamster --test docs -->";
const END: &str = "<!-- end -->";

fn agents() -> Vec<(String, &'static Capabilities)> {
    let registry = Registry::default();
    let of = |name: &str| Some((name.to_owned(), registry.get(name).ok()?.capabilities()?));
    registry.names().filter_map(of).collect()
}

fn tables() -> String {
    let agents = agents();
    let mut text = String::new();
    let names: Vec<&str> = agents.iter().map(|(name, _)| name.as_str()).collect();
    let rule = "|---".repeat(names.len() + 1);
    writeln!(text, "## Options\n\n| field of the request | {} |\n{rule}|", names.join(" | ")).unwrap();
    for feature in Feature::ALL {
        let cell = |(_, capabilities): &(String, &'static Capabilities)| match capabilities.support(*feature) {
            Support::Yes(_) => "yes",
            Support::Ignored(_) => "warning",
            Support::Refused(_) => "refused",
        };
        let cells: Vec<&str> = agents.iter().map(cell).collect();
        writeln!(text, "| `{}` | {} |", feature.field(), cells.join(" | ")).unwrap();
    }
    text.push_str(
        "\n`warning`: the run continues without it, with the warning `OPTION_IGNORED`.\n`refused`: nothing starts.\n",
    );
    for (name, capabilities) in &agents {
        let (version, package) = (capabilities.tested_version, capabilities.package);
        if package.is_empty() {
            writeln!(text, "\n## {name}\n\nAny agent that speaks ACP ([acp.md](acp.md)).\n").unwrap();
        } else {
            writeln!(text, "\n## {name}\n\nTested with {version} (`npm install -g {package}@{version}`).\n").unwrap();
        }
        text.push_str("| field of the request | how it is passed, or why it is not supported |\n|---|---|\n");
        for feature in Feature::ALL {
            let (mark, words) = match capabilities.support(*feature) {
                Support::Yes(how) => ("", how),
                Support::Ignored(why) => ("warning: ", why),
                Support::Refused(why) => ("refused: ", why),
            };
            writeln!(text, "| `{}` | {mark}{words} |", feature.field()).unwrap();
        }
        text.push_str("\n| event | source and time |\n|---|---|\n");
        for (event, how) in capabilities.events {
            writeln!(text, "| `{event}` | {how} |").unwrap();
        }
    }
    text
}

/// Returns the meaning of each code, and the failure table of each agent.
fn failures() -> String {
    let mut text = String::from("## Codes\n\n| code | meaning and remedy |\n|---|---|\n");
    for code in ErrorCode::KNOWN {
        writeln!(text, "| `{code}` | {} |", code.meaning()).unwrap();
    }
    for (name, capabilities) in agents() {
        writeln!(text, "\n## {}\n", format!("{name} {}", capabilities.tested_version).trim_end()).unwrap();
        text.push_str("| condition | code | retryable | observed in |\n|---|---|---|---|\n");
        for row in capabilities.failures {
            let conditions: Vec<String> = row.matchers.iter().map(condition).collect();
            let captures: Vec<String> = row.captures.iter().map(|run| format!("`{run}`")).collect();
            let retryable = if row.retryable { "yes" } else { "no" };
            writeln!(text, "| {} | `{}` | {retryable} | {} |", conditions.join(" and "), row.code, captures.join(", "))
                .unwrap();
        }
    }
    text
}

fn condition(matcher: &Matcher) -> String {
    match matcher {
        Matcher::Field(name, "…") => format!("`{name}` is present"),
        Matcher::Field(name, value) => format!("`{name}` is {}", quoted(value)),
        Matcher::Status(from, to) if from == to => format!("status {from}"),
        Matcher::Status(from, to) => format!("status {from} to {to}"),
        Matcher::ExitCode(code) => format!("exit code {code}"),
        Matcher::Message(text) => format!("message {}", quoted(text)),
        Matcher::Stderr(text) => format!("stderr {}", quoted(text)),
        other => panic!("{other:?} has no text yet"),
    }
}

/// Quotes text as code. The text may contain backticks.
fn quoted(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Returns names as code, separated by commas.
fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn keys(own: &OwnKeys) -> String {
    match own {
        OwnKeys::Always(names) => listed(names),
        OwnKeys::Switched(by, names) => format!("with `{by}` also {}", listed(names)),
        OwnKeys::OfProvider(others) => {
            let others: Vec<_> = others.iter().map(|(word, name)| format!("`{name}` for {word}")).collect();
            let rule = "keys of the model's provider, which start with its name (`ANTHROPIC_...` for `anthropic/...`)";
            format!("{rule}; or {}", others.join(", "))
        }
    }
}

/// Breaks a paragraph into lines of at most 100 characters.
fn wrapped(paragraph: &str) -> String {
    let (mut text, mut length) = (String::new(), 0);
    for word in paragraph.split(' ') {
        if length > 0 && length + 1 + word.len() > 100 {
            text.push('\n');
            length = 0;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += word.len();
    }
    text.push('\n');
    text
}

fn variables() -> String {
    let (base, withheld) = (listed(BASE_VARIABLES), listed(WITHHELD_KEYS));
    let mut text = wrapped(&format!(
        "`--env-only` always permits the variables in the last column of the table, and these: {base}."
    ));
    text.push('\n');
    text.push_str(&wrapped(&format!(
        "`--withhold-keys` withholds the keys of other agents in the table, and these: {withheld}."
    )));
    text.push_str("\n| agent | its own keys | its home and configuration |\n|---|---|---|\n");
    for (name, capabilities) in agents() {
        let own: Vec<String> = capabilities.own_keys.iter().map(keys).collect();
        writeln!(text, "| {name} | {} | {} |", own.join("; "), listed(capabilities.home_variables)).unwrap();
    }
    text
}

fn page(name: &str) -> (PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    (path, text)
}

/// Asserts that the text between the marks of a page is `tables`. With `UPDATE_DOCS` set, writes it.
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

/// Appends the text of every source file in a folder.
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

/// Returns the names in the last column of the tables of a chapter.
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
    for (name, chapter, least) in [
        ("agents.md", "## Known quirks", 50),
        ("security.md", "## Promises", 40),
        ("security.md", "## The gateway", 60),
    ] {
        let (_, page) = page(name);
        let named = named_tests(&page, chapter);
        assert!(named.len() >= least, "{name} names only {} tests", named.len());
        let missing: Vec<_> = named.iter().filter(|test| !tests.contains(&format!("fn {test}("))).collect();
        assert!(missing.is_empty(), "{name}: {missing:#?}");
    }
}

#[test]
fn every_agent_states_whether_it_supports_each_option() {
    for (name, capabilities) in agents() {
        let listed: Vec<_> = capabilities.features.iter().map(|(feature, _)| *feature).collect();
        assert_eq!(listed, Feature::ALL, "{name}");
    }
}

#[test]
fn every_file_that_the_architecture_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The chapter about the gateway names files below this folder without it.
    let folders = [root.clone(), root.join("crates/teamster-gateway/src")];
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let code = page.split('`').skip(1).step_by(2).filter(|text| text.contains('/') && !text.contains("NAME"));
    let is_rust = |text: &str| Path::new(text).extension().is_some_and(|kind| kind == "rs");
    let files: Vec<_> =
        code.filter(|text| text.starts_with("crates/") || text.starts_with("conformance/") || is_rust(text)).collect();
    assert!(files.len() >= 60, "{files:?}");
    let is_missing = |file: &&&str| !folders.iter().any(|folder| folder.join(**file).exists());
    let missing: Vec<_> = files.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md: {missing:#?}");
}
