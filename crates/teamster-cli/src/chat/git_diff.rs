//! `/diff`: what changed in the working directory.

use std::collections::BTreeSet;
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
    // Git runs further programs in the directories of submodules, unless it ignores their state.
    let options = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--relative"];
    let options = [&options[..], &["--ignore-submodules=dirty", "--submodule=short"]].concat();
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

/// Runs Git. The configuration of a project must not start a program, and nothing is written.
async fn run(directory: &Path, arguments: &[&str]) -> io::Result<Result<String, String>> {
    let filters = output(command(directory, &FILTERS)).await?.unwrap_or_default();
    let mut command = command(directory, arguments);
    let earlier = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0);
    let mut count: usize = earlier;
    for name in filters_of_project(&filters) {
        for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
            command.env(format!("GIT_CONFIG_KEY_{count}"), format!("filter.{name}.{key}"));
            command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
    }
    if count > earlier {
        command.env("GIT_CONFIG_COUNT", count.to_string());
    }
    output(command).await
}

/// Lists the settings of filters, each as its scope, its key and its value.
const FILTERS: [&str; 5] = ["config", "--null", "--show-scope", "--get-regexp", r"^filter\."];

/// Returns the names of the filters that a project defines or changes. Git runs their programs to read a changed file.
fn filters_of_project(listed: &str) -> BTreeSet<&str> {
    let fields: Vec<&str> = listed.split('\0').collect();
    let of_project = fields.as_chunks::<2>().0.iter().filter(|[scope, _]| matches!(*scope, "local" | "worktree"));
    of_project
        .filter_map(|[_, setting]| {
            let key = setting.split('\n').next().unwrap_or_default();
            Some(key.strip_prefix("filter.")?.rsplit_once('.')?.0)
        })
        .collect()
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.args(["--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false"]).args(arguments);
    // A missing object is not fetched: the project configures how.
    command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "").env("GIT_TERMINAL_PROMPT", "0");
    command.current_dir(directory).kill_on_drop(true);
    command
}

async fn output(mut command: Command) -> io::Result<Result<String, String>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(directory: &Path, script: &str) {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-ec").arg(script).current_dir(directory).env("HOME", directory).env("GIT_CONFIG_NOSYSTEM", "1");
        let done = shell.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    const COMMIT: &str = "git add . && git -c user.name=a -c user.email=a@example.org commit -qm x";

    #[tokio::test]
    async fn the_configuration_of_a_project_starts_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        let program = "touch ran; cat";
        shell(directory, "git init -q . && echo a > f && echo 'f filter=a=b' > .gitattributes && git init -q sub");
        shell(&directory.join("sub"), &format!("echo a > g; echo '* filter=x' > .gitattributes; {COMMIT}; echo b > g"));
        shell(directory, &format!("{COMMIT} 2>/dev/null; echo b > f"));
        for (place, filter) in [(directory.to_owned(), "a=b"), (directory.join("sub"), "x")] {
            for (key, value) in [("clean", program), ("process", program), ("required", "true")] {
                shell(&place, &format!("git config 'filter.{filter}.{key}' '{value}'"));
            }
        }
        let shown = diff(directory).await.unwrap();
        assert!(shown.without_styles().as_str().contains("-a\n+b"), "{shown}");
        assert!(!directory.join("ran").exists() && !directory.join("sub/ran").exists());
    }

    #[tokio::test]
    async fn a_missing_object_is_not_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        shell(directory, &format!("git init -q . && echo a > f && {COMMIT} && echo b > f"));
        shell(directory, "object=$(git rev-parse HEAD:f | sed 's|^..|&/|'); rm -f .git/objects/$object");
        for setting in [
            "core.repositoryFormatVersion 1",
            "extensions.partialClone origin",
            "remote.origin.promisor true",
            "remote.origin.url ssh://host.invalid/x",
            "core.sshCommand 'touch ran; false'",
        ] {
            shell(directory, &format!("git config {setting}"));
        }
        assert!(diff(directory).await.is_err());
        assert!(!directory.join("ran").exists());
    }
}
