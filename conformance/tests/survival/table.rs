//! Generates the page `docs/survival.md` from the rows of the survival table.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::row::{Column, End, Expected, Row};
use crate::rows;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/survival.md");

const HEAD: &str = "\
# What a run survives

Use this page to look up how a run ends after a fault, on the fake agent and on each real CLI. The
page is generated from the tests: each cell is a test, and states what that test asserts.

    cargo nextest run -p teamster-conformance -E 'binary(survival)'                      # every cell
    cargo nextest run -p teamster-conformance -E 'binary(survival) & test(/^fake::/)'    # without Node
    cargo xtask soak --times 50                                                          # repeated, on busy cores

A cell reads: **ended within** · **`done` events** · **error code** · **processes left** ·
**files left** · **bytes lost**.

- *Ended within* is measured from the fault, on a machine with up to two runnable threads per core.
  With more threads, the test allows proportionally more time. It is an upper bound, not a
  measurement: the run's limits (grace period, silence) are short in these tests.
- *Processes left* counts all descendants of the run when its `done` is read, in any session, under
  any parent, with any environment. (Teamster's own process above the tree ends a moment later; the
  test waits for that.) After the host is killed, no process is left, including its supervisor. With
  `--keep-background`, the remaining processes are exactly those in `leftProcesses` of `done`, and
  they outlive the host.
- *Files left* counts the files in the directories for private and temporary files at that moment.
- *Bytes lost* counts output of the CLI from before the fault that is not in the stream.
- `✓` instead of a code: the run succeeded in spite of the fault. `–`: no program reads the stream,
  or there is nothing to read. *same*: the fault does not depend on the CLI, so the columns with
  values cover it. *scripted*: only the fake agent can produce the fault.

A full disk is a small file system of the host (in a user and mount namespace, where a write fails
with `ENOSPC`). If the machine does not permit that, the size of the host's files is limited
instead, and the same writes fail with `EFBIG`.

In the column of the fake agent, a script plays the CLI. The others use the real CLI with a scripted
model. A shell script around the CLI, a tool call, a signal, or the environment produces the fault.

Each CLI runs below a *keeper*, the per-run process that kills its tree. Keepers run below one
*supervisor* for each host. Both are named `tree-reaper` in process lists
([supervision.md](supervision.md)).

OpenCode reports no final result: after its last step it may continue. So an OpenCode that never
exits is ended by the limit on silence, and its success is kept.
";

/// Fails if the page differs from what the tests assert. With `UPDATE_DOCS` set, writes the page.
pub(crate) fn is_current() -> Result<()> {
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(PAGE, page).context("cannot write the page");
    }
    let there = fs::read_to_string(PAGE).context("no docs/survival.md")?;
    ensure!(
        there == page,
        "docs/survival.md differs from what the tests assert; regenerate it with \
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
