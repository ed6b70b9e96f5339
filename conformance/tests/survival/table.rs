//! The page: `docs/survival.md`, written from the rows.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::row::{Column, End, Expected, Row};
use crate::rows;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/survival.md");

const HEAD: &str = "\
# What a run survives

This page is written by the tests that prove it: each cell is a test of its own, and says what that test asserts.

    cargo nextest run -p teamster-conformance -E 'binary(survival)'                      # every cell
    cargo nextest run -p teamster-conformance -E 'binary(survival) & test(/^fake::/)'    # without Node and the CLIs
    cargo xtask soak --times 50                                                          # again and again, on a busy machine

A cell reads: **ended within** · **`done` events** · **error code** · **processes left** · **files left** · **bytes lost**.

- *Ended within* is counted from the moment of the fault, on busy cores: each has two threads to run all the time. Where there
  are more, the test allows as much more time. It is a bound, not a measurement: the limits of the run that matter (grace
  period, silence) are set short.
- *Processes left* counts everybody who descends from the run when its `done` is read, whatever session or parent it has now and
  whatever became of its environment. (Teamster's own process above the tree ends a moment later; the test waits for that.) Of a
  host that was killed nothing at all is left, its supervisor neither. Where some are to be kept (`--keep-background`), they are
  the ones that `done` names in `leftProcesses`, no more and no fewer, and they live on after the host's end.
- *Files left* counts what is then in the directories for private and temporary files.
- *Bytes lost* counts what the CLI had said before the fault and the stream does not tell.
- `✓` in place of a code: the run went well in spite of the fault. `–`: nobody is there to read a `done`, or nothing can be read.

A full disk is a small file system of the host's own (in a user and mount namespace, where a write fails with `ENOSPC`); a machine
that lets nobody make one limits the size of the host's files instead, so that the same writes fail with `EFBIG`.

In the column of the fake agent a script plays the CLI. In the others it is the real CLI, with a scripted model: the fault is made by a
shell script around the CLI, by a tool call, by signals, or by its surroundings.

Each CLI runs below a *keeper*, a small process that ends the CLI's processes, and keepers run below one *supervisor* for each host.
Both are called `tree-reaper` in lists of processes.

OpenCode tells no result of its own: after what was its last step it may go on. So what ends an OpenCode that never exits is the limit
of silence, and the success stands.
";

/// The page says what the tests assert.
pub(crate) fn is_current() -> Result<()> {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(PAGE, page).context("cannot write the page");
    }
    let there = fs::read_to_string(PAGE).context("no docs/survival.md")?;
    ensure!(
        there == page,
        "docs/survival.md is not what the tests assert: write it anew with \
         `UPDATE_DOCS=1 cargo test -p teamster-conformance --test survival table::`"
    );
    Ok(())
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (title, rows) in rows::groups() {
        _ = write!(page, "\n## {title}\n\n| fault |");
        for column in Column::all() {
            _ = write!(page, " {} |", column.title());
        }
        page.push_str("\n|---|---|---|---|---|---|\n");
        for row in &rows {
            line(&mut page, row);
        }
    }
    page
}

fn line(page: &mut String, row: &Row) {
    _ = write!(page, "| {} |", row.fault);
    for column in Column::all() {
        match row.expected(column) {
            Some(expected) => _ = write!(page, " {} |", cell(expected)),
            None => _ = write!(page, " – {} |", row.reason()),
        }
    }
    page.push('\n');
}

fn cell(expected: Expected) -> String {
    let Expected { end, within, kept } = expected;
    let seconds = within.as_secs();
    match end {
        End::Success => format!("{seconds} s · 1 · ✓ · {kept} · 0 · 0"),
        End::Error(code) => format!("{seconds} s · 1 · `{code}` · {kept} · 0 · 0"),
        End::Either(code) => format!("{seconds} s · 1 · ✓ or `{code}` · {kept} · 0 · 0"),
        End::Unread => format!("{seconds} s · – · – · {kept} · 0 · –"),
    }
}
