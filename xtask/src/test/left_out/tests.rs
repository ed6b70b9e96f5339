//! Tests of the lists: each entry names tests that exist, and CI keeps what an agent's own code decides.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use super::{LeftOut, NOT_IN_CI, NOT_IN_QUICK, ORDINARY_NOT_IN_CI};
use crate::command::root;

/// The agents of a test that names none.
const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

const ACP_AGENTS: [&str; 3] = ["gemini", "opencode", "claude_agent"];

/// Returns the names of the tests in a test program, read from its source.
fn names(binary: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for package in crates.chain([root().join("conformance")]) {
        read_folder(&package.join("tests").join(binary), &mut names);
        read_file(&package.join("tests").join(format!("{binary}.rs")), &mut names);
    }
    names
}

fn read_folder(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_folder(&path, names);
        } else {
            read_file(&path, names);
        }
    }
}

fn read_file(path: &Path, names: &mut BTreeSet<String>) {
    let Ok(text) = fs::read_to_string(path) else { return };
    if path.extension().is_some_and(|extension| extension == "rs") {
        let module = path.file_stem().unwrap().to_str().unwrap();
        read_items(&syn::parse_file(&text).unwrap(), module, names);
        names.extend(rows(&text));
    }
}

fn read_items(syntax: &syn::File, module: &str, names: &mut BTreeSet<String>) {
    for item in &syntax.items {
        match item {
            syn::Item::Fn(item) if item.attrs.iter().any(is_test) => {
                names.insert(format!("{module}::{}", item.sig.ident));
            }
            syn::Item::Macro(item) if item.mac.path.is_ident("agent_tests") => {
                names.extend(of_agents(item.mac.tokens.clone(), &AGENTS, module));
            }
            syn::Item::Macro(item) if item.mac.path.is_ident("acp_tests") => {
                names.extend(of_agents(item.mac.tokens.clone(), &ACP_AGENTS, module));
            }
            // The tests of another macro or of an inner module: only the file's module is known.
            syn::Item::Macro(_) | syn::Item::Mod(_) => _ = names.insert(format!("{module}::")),
            _ => {}
        }
    }
}

fn is_test(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
}

/// Reads `test: all`, `test: [agent, ...]` and `test`, separated by commas.
fn of_agents(tokens: TokenStream, all: &[&str], module: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut test = None;
    let mut agents: Option<Vec<String>> = None;
    for token in tokens.into_iter().chain([TokenTree::Punct(proc_macro2::Punct::new(',', proc_macro2::Spacing::Alone))])
    {
        match token {
            TokenTree::Ident(ident) if test.is_none() => test = Some(ident.to_string()),
            TokenTree::Group(group) => {
                let idents = group.stream().into_iter().filter(|token| matches!(token, TokenTree::Ident(_)));
                agents = Some(idents.map(|ident| ident.to_string()).collect());
            }
            TokenTree::Punct(punct) if punct.as_char() == ',' => {
                let agents = agents.take().unwrap_or_else(|| all.iter().map(ToString::to_string).collect());
                if let Some(test) = test.take() {
                    names.extend(agents.iter().map(|agent| format!("{module}::{test}::{agent}")));
                }
            }
            _ => {}
        }
    }
    names
}

/// Reads the rows of the survival table: `Row::new("id"`. Each can have a cell for each agent.
fn rows(text: &str) -> Vec<String> {
    let ids = text.split("Row::new(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    ids.flat_map(|id| AGENTS.map(|agent| format!("{agent}::{id}"))).collect()
}

/// Whether a name matches a pattern in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|tail| {
            let mut tails = (0..=tail.len()).filter_map(|at| tail.get(at..));
            tails.any(|tail| matches(rest, tail))
        }),
    }
}

#[test]
fn every_test_that_is_left_out_exists() {
    for LeftOut { binary, tests, reason } in NOT_IN_CI.iter().chain(NOT_IN_QUICK).chain(ORDINARY_NOT_IN_CI) {
        let names = names(binary);
        assert!(!names.is_empty(), "no tests in {binary}");
        let missing: Vec<_> = tests.iter().filter(|test| !names.iter().any(|name| matches(test, name))).collect();
        assert!(missing.is_empty(), "{binary}: {missing:#?}");
        assert!(reason.ends_with('.'), "{binary}: {reason:?}");
    }
}

#[test]
fn a_star_stands_for_any_characters() {
    assert!(matches("a*::c", "a::b::c") && matches("*", "") && matches("a", "a"));
    assert!(!matches("a*::c", "a::b::d") && !matches("a", "ab") && !matches("b*", "ab"));
}

fn is_in_ci(binary: &str, name: &str) -> bool {
    let entries = NOT_IN_CI.iter().filter(|entry| entry.binary == binary);
    !entries.flat_map(|entry| entry.tests).any(|test| matches(test, name))
}

#[test]
fn permissions_trust_and_the_environment_stay_in_ci_on_every_agent() {
    const STAY: [&str; 6] = [
        "modes::",
        "trust::",
        "environment::",
        "permission_answers::",
        "mcp::a_rule_",
        "mcp::a_tool_without_permission_",
    ];
    for name in names("all") {
        assert!(!STAY.iter().any(|prefix| name.starts_with(prefix)) || is_in_ci("all", &name), "{name}");
    }
}

#[test]
fn every_agents_protocol_stays_in_ci() {
    let in_ci = names("all").into_iter().filter(|name| is_in_ci("all", name)).collect::<Vec<_>>();
    for agent in AGENTS {
        for (module, least) in [("streams", 2), ("mcp", 3), ("conversations", 1)] {
            let cells = in_ci.iter().filter(|name| name.starts_with(module) && name.ends_with(agent)).count();
            assert!(cells >= least, "{agent} has only {cells} tests of {module} in CI");
        }
    }
}
