//! How xtask starts other programs: from the workspace's root, printed before they run, a failure named in one line.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::totals::Totals;

/// The number of characters of a command line in an error.
const MAX_SHOWN: usize = 90;

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_path_buf()
}

/// Returns the directory in which cargo builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata =
        output(cargo(&["metadata", "--no-deps", "--format-version", "1"])).context("`cargo metadata` failed")?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cannot read `cargo metadata`")?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    directory.map(PathBuf::from).context("`cargo metadata` names no target directory")
}

/// Returns the path of a program that cargo built in the same directory as xtask.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let xtask = env::current_exe().context("cannot find xtask's own file")?;
    let path = xtask.parent().unwrap_or(Path::new(".")).join(name);
    ensure!(path.is_file(), "{} does not exist: was it built into another target directory?", path.display());
    Ok(path)
}

/// A program that will run in the workspace's root, without standard input.
pub(crate) fn program(name: impl AsRef<OsStr>, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(root()).stdin(Stdio::null());
    command
}

/// The cargo that started us.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = program(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args);
    // `cargo run` describes xtask to us in these; a build script that watches them would be built anew below.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs it to its end; anything but success is an error.
pub(crate) fn run(mut command: Command) -> Result<()> {
    announce(&command);
    let status = command.status().with_context(|| format!("cannot start `{}`", text(&command)))?;
    succeeded(&command, status)
}

/// Runs it to its end. Its output is shown if it fails.
pub(crate) fn run_quietly(mut command: Command) -> Result<()> {
    announce(&command);
    let output = command.output().with_context(|| format!("cannot start `{}`", text(&command)))?;
    if !output.status.success() {
        io::stdout().write_all(&output.stdout)?;
        io::stderr().write_all(&output.stderr)?;
    }
    succeeded(&command, output.status)
}

/// Runs a test runner to its end, shows its output as it comes, and adds what it counted to `totals`.
pub(crate) fn run_tests(mut command: Command, totals: &mut Totals) -> Result<()> {
    announce(&command);
    if io::stderr().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always"); // the pipe below would switch colors off
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{}`", text(&command)))?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        bail!("no pipes to `{}`", text(&command));
    };
    let (from_stdout, from_stderr) = thread::scope(|scope| {
        let stderr_reader = scope.spawn(|| copy_lines(stderr, io::stderr()));
        let from_stdout = copy_lines(stdout, io::stdout());
        (from_stdout, stderr_reader.join())
    });
    totals.add(from_stdout.context("cannot read the tests' output")?);
    totals.add(
        from_stderr
            .map_err(|_| anyhow!("the reader of the tests' output panicked"))?
            .context("cannot read the tests' output")?,
    );
    let status = child.wait().with_context(|| format!("cannot wait for `{}`", text(&command)))?;
    succeeded(&command, status)
}

/// What it printed on standard output, trimmed, when it ran and succeeded.
pub(crate) fn output(mut command: Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The command line as a person would type it (for reading, not for a shell).
pub(crate) fn text(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let args = command.get_args().map(|arg| {
        let arg = arg.to_string_lossy();
        if arg.contains([' ', '(']) { format!("'{arg}'") } else { arg.into_owned() }
    });
    iter::once(program.into_owned()).chain(args).collect::<Vec<_>>().join(" ")
}

fn announce(command: &Command) {
    println!("$ {}", text(command));
}

fn succeeded(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let command = shortened(text(command));
    match status.code() {
        Some(code) => bail!("`{command}` exited with code {code}"),
        None => bail!("`{command}` was ended by a signal"),
    }
}

/// Returns the first words of a long command line. The whole line was printed before the command ran.
fn shortened(line: String) -> String {
    if line.chars().count() <= MAX_SHOWN {
        return line;
    }
    let start: String = line.chars().take(MAX_SHOWN).collect();
    let words = start.rsplit_once(' ').map_or(start.as_str(), |(words, _)| words);
    format!("{words} …")
}

fn copy_lines(from: impl Read, mut to: impl Write) -> io::Result<Totals> {
    let mut totals = Totals::default();
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        totals.read_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(totals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_an_error_with_its_code() {
        let error = run_quietly(program("sh", &["-c", "echo warning >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'echo warning >&2; exit 3'` exited with code 3");
        run_quietly(program("sh", &["-c", "echo warning >&2"])).unwrap();
    }

    #[test]
    fn a_long_command_line_is_cut_after_a_word() {
        assert_eq!(shortened("cargo fmt --all".to_owned()), "cargo fmt --all");
        let long = shortened(format!("cargo nextest run --filterset {}", "test(a) | ".repeat(100)));
        assert!(long.starts_with("cargo nextest run --filterset test(a) | ") && long.ends_with(" …"), "{long}");
        assert!(long.chars().count() <= MAX_SHOWN + 2, "{long}");
    }
}
