//! How the fake CLI is started in each of its forms, without a library.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::fcntl::{FcntlArg, fcntl};

/// A protocol of a CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `claude -p --input-format stream-json --output-format stream-json`.
    Claude,
    /// `codex exec --json`.
    CodexExec,
    /// `codex app-server`.
    CodexApp,
    /// The Agent Client Protocol.
    Acp,
}

/// A started CLI that received its prompt.
#[derive(Debug)]
pub struct Cli {
    /// The process.
    pub child: Child,
    /// Its input, if it is still open. The CLI exits when it is dropped.
    pub stdin: Option<ChildStdin>,
}

impl Form {
    /// Returns the form with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "claude" => Some(Self::Claude),
            "codex-exec" => Some(Self::CodexExec),
            "codex-app" => Some(Self::CodexApp),
            "acp" => Some(Self::Acp),
            _ => None,
        }
    }

    /// Returns the name of Teamster's agent.
    #[must_use]
    pub fn agent(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::CodexExec | Self::CodexApp => "codex",
            Self::Acp => "acp",
        }
    }

    /// Starts the CLI and sends a prompt. Its standard output goes to a pipe as large as Teamster's.
    ///
    /// # Errors
    /// The CLI does not start, or does not answer.
    pub fn start(self, program: &Path) -> io::Result<(Cli, ChildStdout)> {
        let mut command = Command::new(program);
        command.args(self.args()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        // The user's allowance of large pipes may be used up.
        let _enlarged = fcntl(&stdout, FcntlArg::F_SETPIPE_SZ(1 << 20));
        for request in self.requests() {
            writeln!(stdin, "{request}")?;
        }
        let stdin = (self != Self::CodexExec).then_some(stdin); // which reads it to its end first
        Ok((Cli { child, stdin }, stdout))
    }

    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--verbose",
                "--include-partial-messages",
            ],
            Self::CodexExec => &["exec", "--json", "-"],
            Self::CodexApp => &["app-server"],
            Self::Acp => &["acp"],
        }
    }

    /// The CLI does not require that its answers are read in between.
    fn requests(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[r#"{"type":"user","message":{"role":"user","content":"hello"}}"#],
            Self::CodexExec => &["hello"],
            Self::CodexApp => &[
                r#"{"id":1,"method":"initialize","params":{}}"#,
                r#"{"id":2,"method":"thread/start","params":{}}"#,
                r#"{"id":3,"method":"turn/start","params":{}}"#,
            ],
            Self::Acp => &[
                r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}"#,
            ],
        }
    }

    /// Returns whether a line ends the turn.
    #[must_use]
    pub fn ends_turn(self, line: &[u8]) -> bool {
        let start: &[u8] = match self {
            Self::Claude => br#"{"type":"result""#,
            Self::CodexExec => br#"{"type":"turn.completed""#,
            Self::CodexApp => br#"{"method":"turn/completed""#,
            Self::Acp => br#"{"jsonrpc":"2.0","id":3,"#,
        };
        line.starts_with(start)
    }
}

/// Waits for the first line of a pipe.
///
/// # Errors
/// The pipe cannot be read.
pub fn first_line(stdout: &ChildStdout) -> io::Result<String> {
    let mut line = String::new();
    let pipe = File::from(std::os::fd::AsFd::as_fd(stdout).try_clone_to_owned()?);
    BufReader::new(pipe).read_line(&mut line)?;
    Ok(line)
}
