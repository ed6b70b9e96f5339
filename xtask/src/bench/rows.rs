//! The rows of the comparison.

use serde_json::{Value, json};

use crate::bench::form::Form;
use crate::bench::subjects::{
    ACP_TS, ACPX, AI_CLAUDE, AI_CODEX, AI_CODEX_APP, CLAUDE_PY, CLAUDE_TS, CODEX_TS, COMMAND, LIBRARY, LIBRARY_MULTI,
    LINES, RAW, Subject, TYPED,
};

/// A number of a sample, and how a table shows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) metric: &'static str,
    pub(crate) title: &'static str,
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) form: Form,
    /// What the subjects measure.
    pub(crate) task: &'static str,
    /// Runs at once.
    pub(crate) runs: u32,
    /// What the fake CLI does.
    pub(crate) scenario: Value,
    /// The first one is compared and plotted.
    pub(crate) columns: &'static [Column],
    pub(crate) subjects: Vec<Subject>,
    /// The subject that ratios refer to.
    pub(crate) baseline: Subject,
    /// Who is not measured, and why.
    pub(crate) left_out: &'static [(&'static str, &'static str)],
}

const DELTAS: u32 = 200_000;

const BURST: &[Column] = &[
    Column { metric: "cpu_us_per_event", title: "CPU an event, µs" },
    Column { metric: "events_per_s", title: "events/s" },
    Column { metric: "peak_mib", title: "peak memory, MiB" },
];
const LATENCY: &[Column] = &[
    Column { metric: "p50_us", title: "p50, µs" },
    Column { metric: "p99_us", title: "p99, µs" },
    Column { metric: "cpu_us_per_event", title: "CPU an event, µs" },
];
const START: &[Column] = &[
    Column { metric: "warm_ms", title: "first event, warm, ms" },
    Column { metric: "cold_ms", title: "first event of the process, ms" },
    Column { metric: "done_ms", title: "end after the CLI's exit, ms" },
    Column { metric: "wall_ms", title: "whole run, ms" },
];
const STOP: &[Column] = &[
    Column { metric: "gone_ms", title: "no process left, ms" },
    Column { metric: "stop_ms", title: "stop reported, ms" },
];
const HOLD: &[Column] = &[Column { metric: "hold_ms", title: "end after the CLI's exit, ms" }];
const MEMORY: &[Column] = &[
    Column { metric: "total_mib", title: "memory in all, MiB" },
    Column { metric: "host_mib", title: "host, MiB" },
    Column { metric: "helpers_mib", title: "helpers, MiB" },
    Column { metric: "ready_ms", title: "until all stream, ms" },
];
const PEAK: &[Column] = &[
    Column { metric: "peak_mib", title: "peak memory, MiB" },
    Column { metric: "growth_mib", title: "above that before the run, MiB" },
    Column { metric: "wall_ms", title: "whole run, ms" },
];

const SANDBOX_AGENT: (&str, &str) = (
    "sandbox-agent",
    "it runs only agents that it installs itself, behind HTTP; its event stream drops updates in a burst, so that costs an event \
     have no meaning",
);
const CLAUDE_ONLY: (&str, &str) = ("claude-agent-sdk, ai-sdk-provider-claude-code", "they run Claude Code only");
const NO_PROCESS: (&str, &str) = ("lines only, typed parsing", "they measure reading");

/// Returns all rows, in the order of the page.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = bursts();
    rows.extend([latency("latency", 1, 1000), latency("latency-100", 100, 100)]);
    rows.extend([start(), stop(), hold()]);
    rows.extend([memory("live-1", 1), memory("live-100", 100), memory("live-500", 500)]);
    rows.extend(big());
    rows
}

fn row(
    name: &'static str,
    title: &'static str,
    task: &'static str,
    columns: &'static [Column],
    scenario: Value,
) -> Row {
    Row {
        name,
        title,
        about: "",
        form: Form::Claude,
        task,
        runs: 1,
        scenario,
        columns,
        subjects: vec![LIBRARY, LIBRARY_MULTI, COMMAND, CLAUDE_TS, CLAUDE_PY, AI_CLAUDE],
        baseline: RAW,
        left_out: &[],
    }
}

fn bursts() -> Vec<Row> {
    let burst = |name, title, form, peers: &[Subject], left_out| {
        let ours = [LINES, TYPED, LIBRARY, LIBRARY_MULTI, COMMAND];
        Row {
            about: "The CLI writes 200,000 text deltas as fast as they are read. CPU is that of the host with all its threads; for \
                    Teamster's library, that of its helper processes is added.",
            form,
            subjects: ours.iter().chain(peers).copied().collect(),
            baseline: TYPED,
            left_out,
            ..row(name, title, "burst", BURST, json!({ "deltas": DELTAS }))
        }
    };
    vec![
        burst("burst-claude", "Burst, Claude Code", Form::Claude, &[CLAUDE_TS, CLAUDE_PY, AI_CLAUDE], &[SANDBOX_AGENT]),
        Row {
            about: "`codex exec --json` has no deltas; the CLI writes 200,000 items of the agent's text instead.",
            ..burst(
                "burst-codex-exec",
                "Burst, Codex exec",
                Form::CodexExec,
                &[CODEX_TS, AI_CODEX],
                &[SANDBOX_AGENT, CLAUDE_ONLY],
            )
        },
        burst(
            "burst-codex-app",
            "Burst, Codex app-server",
            Form::CodexApp,
            &[AI_CODEX_APP],
            &[SANDBOX_AGENT, CLAUDE_ONLY, ("@openai/codex-sdk", "it uses `codex exec` only")],
        ),
        burst("burst-acp", "Burst, ACP", Form::Acp, &[ACP_TS, ACPX], &[SANDBOX_AGENT, CLAUDE_ONLY]),
    ]
}

fn latency(name: &'static str, runs: u32, rate: u32) -> Row {
    let mut subjects = vec![RAW, LIBRARY, LIBRARY_MULTI, COMMAND, CLAUDE_TS, CLAUDE_PY, AI_CLAUDE];
    let (title, about) = if runs == 1 {
        (
            "From the CLI's write to the consumer, one run",
            "1,000 deltas a second for 4 s, each with the time of its write. The last 2 s count.",
        )
    } else {
        subjects.retain(|subject| *subject != AI_CLAUDE);
        (
            "From the CLI's write to the consumer, 100 runs at once",
            "100 deltas a second in each run for 4 s, 10,000 in all; the last 2 s count. More would measure how the fake CLIs wait for the processor.",
        )
    };
    let left_out: &[_] = if runs == 1 {
        &[SANDBOX_AGENT]
    } else {
        &[SANDBOX_AGENT, ("ai-sdk-provider-claude-code", "it costs more CPU time than the machine has")]
    };
    Row {
        about,
        runs,
        subjects,
        left_out,
        ..row(name, title, "latency", LATENCY, json!({ "deltas": 4 * rate, "rate": rate }))
    }
}

fn start() -> Row {
    let mut row = row("start", "Start and end of a short run", "start", START, json!({ "deltas": 20 }));
    row.about = "From the call to the first event of the CLI, in the first run of a process and in later ones; from the CLI's exit to the \
                 end of the run. For a command, each run is a process.";
    row.subjects.insert(0, RAW);
    row.left_out = &[SANDBOX_AGENT, NO_PROCESS];
    row
}

fn stop() -> Row {
    let scenario = json!({ "deltas": 2, "wait": true, "children": 2 });
    let mut row = row("stop", "Stop of a tree that obeys", "stop", STOP, scenario);
    row.about = "From the call to the end that the host sees, and until no process of the CLI is left. The CLI has two children. It exits on \
                 SIGTERM and at the end of its input.";
    row.subjects.insert(0, RAW);
    row.left_out = &[SANDBOX_AGENT, NO_PROCESS];
    row
}

fn hold() -> Row {
    let mut row = row(
        "hold",
        "End of a run whose grandchild keeps standard output for 5 s",
        "hold",
        HOLD,
        json!({ "deltas": 2, "hold_stdout_s": 5 }),
    );
    row.about = "The CLI exits; a process that it started holds its standard output.";
    row.subjects.retain(|subject| *subject != LIBRARY_MULTI);
    row.baseline = LIBRARY;
    row.left_out = &[SANDBOX_AGENT, NO_PROCESS];
    row
}

fn memory(name: &'static str, runs: u32) -> Row {
    let title = match runs {
        1 => "Memory, 1 live run",
        100 => "Memory, 100 live runs",
        _ => "Memory, 500 live runs",
    };
    let mut row = row(name, title, "live", MEMORY, json!({ "deltas": 200, "wait": true }));
    row.about = "The proportional share (Pss) of the host and of its helper processes, without the CLIs, after each run had 200 deltas.";
    row.runs = runs;
    row.baseline = LIBRARY;
    row.subjects.retain(|subject| *subject != LIBRARY_MULTI && (runs == 1 || *subject != AI_CLAUDE));
    row.left_out = &[SANDBOX_AGENT, NO_PROCESS];
    if runs > 1 {
        row.left_out = &[SANDBOX_AGENT, NO_PROCESS, ("ai-sdk-provider-claude-code", "it wraps the SDK above it")];
    }
    if runs > 100 {
        row.subjects.retain(|subject| *subject != COMMAND);
        row.left_out = &[
            SANDBOX_AGENT,
            NO_PROCESS,
            ("`teamster run`", "it is one process for each run"),
            ("ai-sdk-provider-claude-code", "it wraps the SDK above it"),
        ];
    }
    row
}

fn big() -> Vec<Row> {
    let tool = json!({ "deltas": 2, "tools": 1, "tool_bytes": 16 << 20 });
    let answer = json!({ "deltas": 2048, "text_bytes": 4096 });
    let rows = [
        row("tool-16m", "A tool result of 16 MiB in one line", "burst", PEAK, tool),
        row("answer-8m", "An answer of 8 MiB", "burst", PEAK, answer),
    ];
    rows.map(|mut row| {
        row.subjects.insert(0, TYPED);
        row.baseline = TYPED;
        row.about = "The Python SDK gets a `max_buffer_size` of 1 GiB; with its default of 1 MiB the session ends with an error.";
        row.left_out = &[SANDBOX_AGENT];
        row
    })
    .into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_its_own_name_and_a_baseline_that_is_measured() {
        let rows = all();
        let names: BTreeSet<_> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), rows.len());
        for row in rows {
            assert!(row.subjects.contains(&row.baseline) || row.baseline == RAW, "{}", row.name);
            assert!(!row.columns.is_empty() && !row.about.is_empty(), "{}", row.name);
        }
    }
}
