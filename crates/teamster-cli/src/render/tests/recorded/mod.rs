//! What a person sees of recorded runs of the agents: the format `pretty` on terminals of two widths.

mod replay;

use replay::{AGENTS, names, recorded};

use super::*;

const WIDTHS: [usize; 2] = [80, 120];

/// Recorded runs of each agent that together show every kind of line.
const SHOWN: [(&str, &[&str]); 5] = [
    (
        "claude",
        &[
            "ask",
            "edge_bang",
            "err_cut_once",
            "err_forbidden403",
            "err_rate429_once",
            "file_edit",
            "mcp_file",
            "parallel_tools",
            "perm_deny",
            "subagent_parallel",
            "text_refusal",
            "thinking_tool",
            "tool_badjson",
            "tool_fail",
        ],
    ),
    (
        "codex",
        &[
            "app_commentary",
            "app_err_auth",
            "app_err_bad_request",
            "app_mcp_failed",
            "app_mcp_required",
            "app_patch",
            "app_plan",
            "app_spawn",
            "app_talk_accept",
            "app_talk_decline",
            "app_tool_fail",
            "file_edit",
            "mcp_tool",
            "tool_background_sandboxed",
        ],
    ),
    (
        "gemini",
        &[
            "all_tools",
            "err_429_day_max1",
            "err_auth_401",
            "err_garbage",
            "file_edit",
            "loop_detection",
            "max_turns_2",
            "parallel_tools",
            "perm_plan_write",
            "tool_fail",
        ],
    ),
    (
        "opencode",
        &[
            "err_stream_error",
            "err_quota429",
            "file_edit",
            "mcp_fail",
            "perm_bash_ask",
            "question_denied",
            "task_subagent",
            "tool_fail",
            "tool_timeout",
            "thinking_tool",
        ],
    ),
    (
        "acp",
        &[
            "gemini_bad_tool",
            "gemini_cancel_shell_tool",
            "gemini_err_notfound_404",
            "gemini_no_auth",
            "gemini_permission_edit_allow",
            "gemini_permission_shell_deny",
            "gemini_tool_fail",
        ],
    ),
];

/// Returns what a person sees on a terminal with this number of columns, without styles.
fn seen(width: usize, tool_output: ToolOutput, events: &[Event]) -> String {
    let paper = Paper::default();
    let to = Streams { out: Box::new(paper.clone()), err: Box::new(paper.clone()) };
    let screen = Screen { width, terminal: false, styles: true };
    let mut output = Output::over(to, Format::Pretty, "agent", screen, tool_output);
    let begin = Instant::now();
    for (index, event) in (0..).zip(events) {
        output.event(event, begin + Duration::from_millis(100) * index).unwrap();
    }
    anstream::adapter::strip_str(&paper.text()).to_string()
}

#[test]
fn a_person_sees_words_and_results() {
    for (agent, runs) in SHOWN {
        for width in WIDTHS {
            let show = |run: &&str| {
                let events = recorded(agent, run).unwrap();
                format!("{:─<width$}\n{}\n", format!("── {run} "), seen(width, ToolOutput::Short, &events))
            };
            let page: String = runs.iter().map(show).collect();
            insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
                assert_snapshot!(format!("{agent}_{width}"), page);
            });
        }
    }
}

#[test]
fn no_recorded_run_shows_wire_names_or_json() {
    let mut wrong = Vec::new();
    for agent in AGENTS {
        for run in names(agent) {
            let Some(mut events) = recorded(agent, &run) else { continue };
            // Text of the model, and a document that was requested.
            events.retain(|event| !matches!(event, Event::Text(_) | Event::Thinking(_)));
            for event in &mut events {
                if let Event::Done(done) = event {
                    done.result.structured_output = None;
                }
            }
            for width in WIDTHS {
                let page = seen(width, ToolOutput::None, &events);
                for word in
                    ["{\"", "tool_use_error", "command_execution", "file_change", "changes=[", "[object", "⟦ESC⟧"]
                {
                    let lines = page.lines().filter(|line| line.contains(word));
                    wrong.extend(lines.map(|line| format!("{agent} {run}: {word}: {line}")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lines_of_tools_fit_the_terminal() {
    for agent in AGENTS {
        for run in names(agent) {
            let Some(events) = recorded(agent, &run) else { continue };
            for width in WIDTHS {
                for line in seen(width, ToolOutput::Short, &events).lines() {
                    let is_of_tool = ["● ", "✓ ", "✗ ", "┄ "].iter().any(|mark| line.trim_start().starts_with(mark));
                    let columns = unicode_width::UnicodeWidthStr::width(line);
                    assert!(!is_of_tool || columns <= width, "{agent} {run}: {columns} columns: {line}");
                }
            }
        }
    }
}
