//! `/diff`: what changed in the working directory.

use std::io;
use std::path::Path;
use std::process::Stdio;

use anstyle::{AnsiColor, Style};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::printable::{Printable, printable};

/// The number of bytes of a difference that are read, and of lines that are shown.
const MAX_BYTES: u64 = 1 << 20;
const MAX_LINES: usize = 1000;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const PLACE: Style = AnsiColor::Cyan.on_default();
const FILE: Style = Style::new().bold();

/// Returns the difference of the working directory to the last commit, and the names of new files.
///
/// # Errors
/// Returns a message if Git is missing or fails.
pub(super) async fn diff(directory: &Path) -> Result<Printable, Printable> {
    if git(directory, &["rev-parse", "--git-dir"]).await?.is_err() {
        return Err("this directory is in no Git repository".into());
    }
    // A repository without a commit has no `HEAD`.
    let has_commit = git(directory, &["rev-parse", "--verify", "--quiet", "HEAD"]).await?.is_ok();
    let base: &[&str] = if has_commit { &["HEAD"] } else { &[] };
    let options = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--relative"];
    let changes =
        git(directory, &[&options, base, &["--", "."]].concat()).await?.map_err(|message| failed(&message))?;
    let added =
        git(directory, &["ls-files", "--others", "--exclude-standard"]).await?.map_err(|message| failed(&message))?;
    let mut lines: Vec<Printable> = changes.lines().take(MAX_LINES).map(styled).collect();
    let hidden = changes.lines().count().saturating_sub(MAX_LINES);
    if hidden > 0 {
        lines.push(printable!("... {} more lines: git diff shows them", hidden));
    }
    if !added.is_empty() {
        lines.push("new files:".into());
        lines
            .extend(added.lines().take(MAX_LINES).map(|file| printable!("  {}", Printable::exact(file)).styled(ADDED)));
    }
    Ok(if lines.is_empty() { "nothing changed since the last commit".into() } else { Printable::join(lines, "\n") })
}

fn failed(message: &str) -> Printable {
    printable!("git: {}", Printable::message(message))
}

fn styled(line: &str) -> Printable {
    let style = match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => FILE,
        [b'+', ..] => ADDED,
        [b'-', ..] => REMOVED,
        [b'@', b'@', ..] => PLACE,
        _ => Style::new(),
    };
    Printable::prose(&line.replace('\t', "    ")).styled(style)
}

/// Runs Git. Returns its output, or the message of its failure.
///
/// # Errors
/// Returns a message if Git cannot be started.
async fn git(directory: &Path, arguments: &[&str]) -> Result<Result<String, String>, Printable> {
    let output = run(directory, arguments).await;
    output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "git is not installed".into(),
        _ => printable!("cannot run git: {}", Printable::error(&error)),
    })
}

async fn run(directory: &Path, arguments: &[&str]) -> io::Result<Result<String, String>> {
    // The configuration of a project must not start a program, and nothing is written.
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"]).args(arguments);
    command.current_dir(directory).env("GIT_TERMINAL_PROMPT", "0").kill_on_drop(true);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = tokio::join!(limited(out), limited(err));
    let status = child.wait().await?;
    Ok(if status.success() { Ok(out?) } else { Err(err?) })
}

/// Reads a stream to its end, and returns its beginning.
async fn limited(stream: Option<impl AsyncRead + Unpin>) -> io::Result<String> {
    let Some(mut stream) = stream else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    (&mut stream).take(MAX_BYTES).read_to_end(&mut bytes).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
