//! The tests that CI and `cargo xtask test --quick` leave out. `cargo xtask test` runs all of them.

mod ordinary;
#[cfg(test)]
mod tests;

pub(super) use self::ordinary::{NOT_IN_QUICK, ORDINARY_NOT_IN_CI};

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

/// The conformance tests that CI leaves out.
///
/// What stays in CI: on all four agents what the agent's own code decides (permission modes, trust, the environment, MCP
/// delivery, resumed conversations, the stream of an answer and of a command); the driver's promises on the fake agent and on
/// Claude Code.
pub(super) const NOT_IN_CI: &[LeftOut] = &[
    LeftOut {
        binary: "all",
        tests: &[
            "conversations::continue_*::gemini",
            "conversations::continue_*::opencode",
            "conversations::two_runs_at_once_*::codex",
            "conversations::two_runs_at_once_*::gemini",
            "conversations::two_runs_at_once_*::opencode",
            "ending::*::codex",
            "ending::*::gemini",
            "ending::*::opencode",
            "failures::*::gemini",
            "failures::*::opencode",
            "retries::*::codex",
            "retries::*::gemini",
            "retries::*::opencode",
            "sessions::*::gemini",
            "sessions::*::opencode",
            "tools::*::codex",
            "tools::*::gemini",
            "tools::*::opencode",
        ],
        reason: "The driver keeps these promises: one or two real CLIs suffice. Each agent's own failures are in its own tests.",
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
        binary: "all",
        tests: &[
            "conversations::a_session_that_does_not_exist_*::gemini",
            "conversations::a_session_that_does_not_exist_*::opencode",
            "mcp::runs_at_once_*::gemini",
            "mcp::runs_at_once_*::opencode",
            "mcp::the_users_own_servers_*::gemini",
            "mcp::the_users_own_servers_*::opencode",
            "mcp_failures::a_server_that_dies_*::gemini",
            "mcp_failures::a_server_that_dies_*::opencode",
            "mcp_failures::a_tool_that_fails_*::gemini",
            "mcp_failures::a_tool_that_fails_*::opencode",
            "mcp_failures::a_call_that_takes_longer_*::codex",
            "mcp_failures::a_required_server_that_hangs_*::codex",
            "merge_restore::a_file_that_was_not_there_*::gemini",
            "merge_restore::a_file_that_was_not_there_*::opencode",
            "merge_restore::an_edit_*::gemini",
            "merge_restore::an_edit_*::opencode",
            "merge_restore::runs_that_overlap_*::gemini",
            "merge_restore::runs_that_overlap_*::opencode",
        ],
        reason: "These two CLIs take seconds to start. The other two keep the same promises in CI.",
    },
    LeftOut {
        binary: "all",
        tests: &[
            "streams::a_command_that_fails_*::gemini",
            "streams::a_command_that_fails_*::opencode",
            "streams::a_long_answer_*::gemini",
            "streams::a_long_answer_*::opencode",
            "streams::a_refused_key_*::gemini",
            "streams::a_refused_key_*::opencode",
            "streams::commands_in_turn_*::gemini",
            "streams::commands_in_turn_*::opencode",
            "streams::every_character_*::gemini",
            "streams::every_character_*::opencode",
            "streams::several_commands_*::gemini",
            "streams::several_commands_*::opencode",
            "streams::text_around_*::gemini",
            "streams::text_around_*::opencode",
        ],
        reason: "Recorded runs of both CLIs show the same. Answers, commands and text as it is written stay in CI.",
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
            "permissions::a_permission_request_*::gemini",
            "permissions::an_unanswered_*",
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
        binary: "survival",
        tests: &[
            "claude::crlf",
            "claude::daemon_without_environment",
            "claude::directory_removed",
            "claude::helpers_stopped",
            "claude::home_not_writable",
            "claude::keeper_stopped_host_killed",
            "claude::kept",
            "claude::noise",
            "claude::noise_flood",
            "claude::out_of_memory",
            "claude::sessions_take_turns",
            "claude::signals_inherited",
            "claude::stderr_flood",
            "claude::stopped_for_ever",
            "claude::storm_of_processes",
            "claude::umask_0777",
        ],
        reason: "The fake agent has the same faults in CI. Kills of the host, the helpers and the CLI stay in CI.",
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
        binary: "opencode",
        tests: &[
            "ending::the_limit_of_turns_*",
            "failures::a_conversation_that_*",
            "failures::a_failure_that_is_not_retried_*",
            "failures::a_rate_limit_and_an_internal_error_*",
            "permissions::an_allowed_tool_needs_no_answer",
            "prompts::a_prompt_of_a_megabyte_*",
            "prompts::the_requested_model_is_used",
            "sessions::an_unanswered_request_*",
            "sessions::another_model_*",
            "text::a_refusal_*",
            "text::an_answer_cut_off_*",
            "text::incomplete_answers_*",
            "text::messages_are_emitted_*",
            "tools::a_tool_that_does_not_exist_*",
            "tools::input_that_is_no_json_*",
        ],
        reason: "Each run takes 5 seconds. Recorded runs show the same outputs, and the other CLIs keep the driver's promises.",
    },
    LeftOut {
        binary: "gemini",
        tests: &[
            "failures::a_conversation_that_is_too_long_*",
            "failures::a_rate_limit_is_retryable",
            "failures::a_run_without_a_key_*",
            "failures::a_used_up_daily_quota_*",
            "failures::a_vendor_that_cannot_be_reached_*",
            "failures::an_error_of_the_vendor_*",
            "failures::an_invalid_request_*",
            "tools::a_tool_that_fails_*",
            "tools::the_output_of_a_command_*",
        ],
        reason: "Recorded runs show the same outputs. A refused key and a connection that breaks stay in CI.",
    },
    LeftOut {
        binary: "opencode",
        tests: &[
            "conversations::a_session_of_another_directory_*",
            "failures::an_answer_that_breaks_off_*",
            "failures::an_unknown_model_*",
            "prompts::attachments_*",
            "sessions::a_question_*",
            "sessions::an_answer_follows_a_schema_*",
            "text::batch_output_*",
            "text::thinking_*",
            "tools::a_file_is_written_*",
            "tools::the_to_do_list_*",
            "trust::a_trusted_projects_*",
        ],
        reason: "Each run takes 5 seconds. Recordings and properties test the same protocol code.",
    },
    LeftOut {
        binary: "gemini",
        tests: &[
            "context::a_directory_beside_*",
            "context::an_effort_*",
            "conversations::a_session_that_was_resumed_*",
            "conversations::projects_of_the_same_name_*",
            "ending::a_silent_vendor_*",
            "failures::the_limit_of_turns_*",
            "mcp::a_server_of_the_users_*",
            "prompts::a_prompt_of_a_megabyte_*",
            "sessions::a_required_server_*",
            "sessions::texts_and_images_*",
            "text::a_long_answer_after_a_tool_*",
            "text::messages_mode_*",
            "text::text_of_a_failed_attempt_*",
            "tools::a_command_in_the_background_*",
            "tools::a_to_do_list_*",
            "tools::files_are_written_*",
        ],
        reason: "Each run takes 3 seconds. Recordings and properties test the same protocol code.",
    },
    LeftOut {
        binary: "codex",
        tests: &[
            "context::an_answer_that_does_not_follow_*",
            "ending::an_abort_in_mid_tool_*",
            "ending::an_interrupt_in_mid_stream_*",
            "conversations::a_resumed_conversation_keeps_*",
            "sessions::a_mode_decides_*",
            "text::a_big_answer_*",
            "text::messages_mode_*",
        ],
        reason: "Recordings and properties test the same code. `ending::an_interrupt_in_mid_tool_*` samples the launcher.",
    },
    LeftOut {
        binary: "claude",
        tests: &[
            "limits::a_silent_model_*",
            "limits::the_deadline_*",
            "text::a_big_answer_*",
            "tools::a_command_over_its_time_limit_*",
        ],
        reason: "The driver keeps these promises, which the fake agent tests in CI.",
    },
    LeftOut {
        binary: "all",
        tests: &[
            "conversations::continue_*::codex",
            "mcp_failures::a_required_server_that_dies_*::opencode",
            "mcp_failures::the_first_turn_waits_*::codex",
            "sessions::*::codex",
            "streams::text_is_emitted_*::gemini",
            "streams::text_is_emitted_*::opencode",
        ],
        reason: "Claude Code keeps the same promises in CI. Sessions of Codex are in its own tests.",
    },
    LeftOut {
        binary: "gemini",
        tests: &[
            "permissions::ask_denies_*",
            "permissions::edit_allows_*",
            "permissions::full_allows_*",
            "permissions::read_only_reads_*",
        ],
        reason: "`all modes` tests the same modes on Gemini CLI.",
    },
    LeftOut {
        binary: "gemini",
        tests: &["failures::the_failure_of_a_batch_run_*", "prompts::a_batch_run_*"],
        reason: "Batch output is sampled: `text::usage_of_a_batch_run_is_the_same` stays in CI.",
    },
];
