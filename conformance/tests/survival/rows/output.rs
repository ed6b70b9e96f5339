//! Output of the CLI other than its protocol.

use teamster_testkit::fake::Script;

use crate::cell_env::{TEXT, good_end, started};
use crate::fault::{Cli, Fault};
use crate::row::{Column, Row, success};

/// One byte more than the default limit of a line.
const TOO_LONG: u64 = (64 << 20) + 1;

const STDERR_LINES: u64 = 250_000;

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("a_line_of_64_mb", "64 MB on one line, before the answer", |_| {
            noise(Script::new().long_line(TOO_LONG))
        })
        .fake(success(20))
        .elsewhere("scripted"),
        Row::new("stderr_flood", "25 MB of stderr before the answer", |cell| match cell.column {
            Column::Fake => {
                let line = "e".repeat(100);
                scripted(Script::new().stderr_lines(STDERR_LINES, line).then(started()).then(good_end()))
            }
            Column::Real(_) => cell.answers().after_shell("head -c 25000000 /dev/zero | tr '\\0' e >&2"),
        })
        .fake(success(20))
        .on("claude", success(30))
        .on("codex", success(30))
        .elsewhere("same"),
        Row::new("noise", "noise: text, invalid UTF-8, NUL bytes, half a document, empty lines, CRLF", |cell| {
            cell.answers().after_shell(
                "printf 'Warning: \\303\\251\\n\\377\\376\\200 noise\\n\\000\\000\\n{\"type\":\\n42\\r\\n\\n\\r\\n'",
            )
        })
        .fake(success(10))
        .real(success(30)),
        Row::new("noise_flood", "200,000 lines of noise, before the answer", |cell| {
            cell.answers().after_shell("yes noise | head -n 200000")
        })
        .fake(success(20))
        .on("claude", success(30))
        .elsewhere("same"),
        Row::new("crlf", "all lines end with CRLF", |cell| {
            cell.answers().launched_by("\"$CLI\" \"$@\" | sed -u 's/$/\\r/'")
        })
        .fake(success(10))
        .on("claude", success(30))
        .on("codex", success(30))
        .elsewhere("same"),
        Row::new("no_final_newline", "no newline after the result", |cell| match cell.column {
            Column::Fake => scripted(started().claude_text(TEXT).claude_result_unterminated(TEXT).exit(0)),
            // Each line end is written with the next line.
            Column::Real(_) => cell
                .answers_in_one_shot()
                .launched_by("\"$CLI\" \"$@\" | awk '{ printf \"%s%s\", before, $0; before = \"\\n\"; fflush() }'"),
        })
        .fake(success(10))
        .on("codex", success(30))
        .elsewhere("same"),
        Row::new("all_at_once", "all output at once, then an immediate exit", |_| {
            scripted(started().claude_burst(4000).claude_result(TEXT).exit(0)).expecting_text(counted(4000))
        })
        .fake(success(20))
        .elsewhere("scripted"),
    ]
}

fn scripted(script: Script) -> Fault {
    Fault::new(Cli::Fake(script), TEXT)
}

fn noise(noise: Script) -> Fault {
    scripted(started().then(noise).then(good_end()))
}

/// Returns the text of a burst: `0 1 2 ` and so on.
pub(super) fn counted(count: u64) -> String {
    (0..count).flat_map(|number| [number.to_string(), " ".to_owned()]).collect()
}
