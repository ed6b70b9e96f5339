//! The tests that CI and `cargo xtask test --quick` leave out. `cargo xtask test` runs all of them.

/// Tests that are left out.
pub(super) struct LeftOut {
    /// The test program: a folder or file in the `tests` of a crate.
    binary: &'static str,
    /// Names of tests. A `*` stands for any characters.
    tests: &'static [&'static str],
    /// Why.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers, and for the test that each entry has one"))]
    reason: &'static str,
}

/// Returns the filter of these tests, in cargo-nextest's language.
pub(super) fn filter(list: &[LeftOut]) -> String {
    let entries = list.iter().map(|LeftOut { binary, tests, .. }| {
        let tests: Vec<_> = tests.iter().map(|test| format!("test(#{test})")).collect();
        format!("(binary(={binary}) & ({}))", tests.join(" | "))
    });
    entries.collect::<Vec<_>>().join(" | ")
}

/// All tests that `cargo xtask test --quick` leaves out, besides the conformance tests. CI runs them.
pub(super) const NOT_IN_QUICK: &[LeftOut] = &[
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

/// All tests that CI leaves out.
///
/// What stays in CI: each agent's own protocol on all four agents (streams, usage, permissions, MCP delivery, trust,
/// resumed conversations), and the driver's promises on the fake agent, on Claude Code and on Codex.
pub(super) const NOT_IN_CI: &[LeftOut] = &[
    LeftOut {
        binary: "all",
        tests: &[
            "conversations::continue_*::gemini",
            "conversations::continue_*::opencode",
            "conversations::two_runs_at_once_*::gemini",
            "conversations::two_runs_at_once_*::opencode",
            "ending::*::gemini",
            "ending::*::opencode",
            "failures::*::gemini",
            "failures::*::opencode",
            "retries::*::gemini",
            "retries::*::opencode",
            "sessions::*::gemini",
            "sessions::*::opencode",
            "tools::*::gemini",
            "tools::*::opencode",
        ],
        reason: "The driver keeps these promises. Two real CLIs suffice. Each agent's own failures are in its own tests.",
    },
    LeftOut {
        binary: "all",
        tests: &[
            "mcp_failures::a_call_that_takes_longer_*::gemini",
            "mcp_failures::a_call_that_takes_longer_*::opencode",
            "mcp_failures::a_required_server_that_hangs_*::gemini",
            "mcp_failures::a_required_server_that_hangs_*::opencode",
            "mcp_failures::a_required_server_that_refuses_*::gemini",
            "mcp_failures::a_required_server_that_refuses_*::opencode",
            "mcp_failures::a_required_server_whose_*::gemini",
            "mcp_failures::a_required_server_whose_*::opencode",
            "mcp_failures::the_first_turn_waits_*::gemini",
            "mcp_failures::the_first_turn_waits_*::opencode",
        ],
        reason: "They wait for seconds. A server that dies, and the report of all servers that do not start, stay in CI.",
    },
    LeftOut {
        binary: "acp",
        tests: &["*::opencode"],
        reason: "OpenCode is tested by its own interface; as a generic ACP agent, claude-agent-acp is in CI.",
    },
    LeftOut {
        binary: "acp",
        tests: &[
            "permissions::the_permission_mode_*",
            "permissions::what_was_allowed_*",
            "permissions::an_interrupt_*",
            "permissions::a_permission_request_*::claude_agent",
            "sessions::a_process_that_is_killed_*",
            "sessions::an_answer_is_streamed::*",
            "sessions::an_unknown_id_*",
            "sessions::another_model_*",
            "sessions::four_sessions_*",
            "sessions::a_session_is_resumed_*::claude_agent",
        ],
        reason: "The driver's promises on sessions, which Claude Code and Codex keep in CI.",
    },
    LeftOut {
        binary: "survival",
        tests: &["codex::*", "gemini::*", "opencode::*"],
        reason: "The faults depend on the host, not on the agent: the fake agent and Claude Code are in CI.",
    },
    LeftOut {
        binary: "survival",
        tests: &[
            "claude::missing",
            "claude::not_executable",
            "claude::wrong_architecture",
            "claude::no_shebang",
            "claude::no_space",
            "claude::disk_full",
            "claude::few_files",
            "claude::storm",
        ],
        reason: "In the first seven, the CLI does not start: the fake agent's cells are the same. A storm is 12 runs.",
    },
    LeftOut {
        binary: "claude",
        tests: &[
            "batch::odd_prompts_*",
            "batch::a_big_answer_*",
            "batch::a_prompt_of_a_megabyte_*",
            "batch::an_interrupt_*",
            "batch::the_verbose_document_*",
        ],
        reason: "Batch output is sampled: its document, its errors and its permissions stay in CI.",
    },
    LeftOut {
        binary: "claude",
        tests: &[
            "failures::a_key_without_permission_is_auth",
            "failures::a_permanent_rate_limit_is_rate_limit",
            "failures::an_internal_error_of_the_vendor_is_provider",
            "failures::an_account_without_credit_is_budget",
            "failures::a_conversation_that_is_too_long_is_context_window",
            "failures::a_key_that_is_refused_is_auth",
        ],
        reason: "`all failures` tests the same codes on Claude Code.",
    },
    LeftOut {
        binary: "claude",
        tests: &[
            "permissions::ask_denies_a_write",
            "permissions::read_only_allows_a_read",
            "permissions::read_only_refuses_a_command_that_changes_something",
            "permissions::edit_allows_a_write",
            "permissions::edit_refuses_a_write_outside_of_the_project",
            "permissions::full_allows_a_command",
        ],
        reason: "`all modes` tests the same modes on Claude Code.",
    },
    LeftOut {
        binary: "claude",
        tests: &[
            "tools::a_shell_command_is_reported_*",
            "tools::a_command_that_fails_*",
            "tools::parallel_calls_*",
            "text::init_is_the_first_event",
        ],
        reason: "`all streams` tests the same on Claude Code.",
    },
    LeftOut {
        binary: "codex",
        tests: &[
            "tools::a_shell_command_is_reported_*",
            "tools::parallel_calls_*",
            "failures::too_many_requests_*",
            "failures::an_overloaded_provider_*",
            "failures::a_conversation_that_is_too_long_*",
        ],
        reason: "`all streams` and `all failures` test the same on Codex.",
    },
    LeftOut {
        binary: "gemini",
        tests: &["tools::a_command_is_reported_*", "tools::calls_of_one_turn_*"],
        reason: "`all streams` tests the same on Gemini CLI.",
    },
    LeftOut {
        binary: "opencode",
        tests: &[
            "text::the_answer_is_emitted_once_*",
            "text::init_is_the_first_event",
            "text::a_big_answer_is_whole",
            "tools::a_shell_command_is_reported_*",
            "tools::a_command_that_fails_*",
            "tools::parallel_calls_*",
        ],
        reason: "`all streams` tests the same on OpenCode.",
    },
    LeftOut {
        binary: "opencode",
        tests: &["failures::a_vendor_that_cannot_be_reached_*", "failures::a_vendor_that_requests_an_hour_*"],
        reason: "They wait for the CLI's own retries: 66 and 20 seconds.",
    },
    LeftOut {
        binary: "opencode",
        tests: &[
            "conversations::the_one_shot_form_*",
            "text::the_one_shot_form_*",
            "sessions::a_server_that_is_killed_*",
            "sessions::two_runs_at_once_*",
        ],
        reason: "The one-shot form is sampled by `trust`. The driver's promises on sessions are in CI on two other CLIs.",
    },
    LeftOut {
        binary: "opencode",
        tests: &["permissions::every_mode_allows_a_read", "permissions::a_write_is_refused_unless_*"],
        reason: "`all modes` tests the same modes on OpenCode.",
    },
    LeftOut {
        binary: "gemini",
        tests: &["failures::the_failure_of_a_batch_run_*", "prompts::a_batch_run_*"],
        reason: "Batch output is sampled: `text::usage_of_a_batch_run_is_the_same` stays in CI.",
    },
    LeftOut {
        binary: "codex",
        tests: &["ending::an_abort_in_mid_tool_*", "ending::an_interrupt_in_mid_stream_*"],
        reason: "The one-shot form and the launcher are sampled by `ending::an_interrupt_in_mid_tool_*`.",
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use proc_macro2::{TokenStream, TokenTree};

    use super::{LeftOut, NOT_IN_CI, NOT_IN_QUICK};
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
        for token in
            tokens.into_iter().chain([TokenTree::Punct(proc_macro2::Punct::new(',', proc_macro2::Spacing::Alone))])
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
        let ids =
            text.split("Row::new(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
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
        for LeftOut { binary, tests, reason } in NOT_IN_CI.iter().chain(NOT_IN_QUICK) {
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

    #[test]
    fn every_agents_protocol_stays_in_ci() {
        let left_out = |binary: &str, name: &str| {
            let entries = NOT_IN_CI.iter().filter(|entry| entry.binary == binary);
            entries.flat_map(|entry| entry.tests).any(|test| matches(test, name))
        };
        for name in names("all") {
            let module = name.split("::").next().unwrap();
            let is_protocol = ["streams", "modes", "mcp", "merge_restore", "trust", "environment"].contains(&module);
            assert!(!(is_protocol && left_out("all", &name)), "{name}");
        }
        assert!(AGENTS.iter().all(|agent| {
            !left_out(
                "all",
                &format!(
                    "conversations::a_conversation_is_resumed_and_forked_with_its_history_on_every_agent::{agent}"
                ),
            )
        }));
    }
}
