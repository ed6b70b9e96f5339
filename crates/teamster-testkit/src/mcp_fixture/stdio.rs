//! The server as a process: one message per line on stdin and stdout.
//!
//! It uses blocking I/O on purpose, and one thread for each slow call: it starts as fast as a
//! process can, and responds while other calls wait.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use super::rpc::{Decision, DelayedResponse, RpcResponse, called_tool, handle_message};

/// The duration of a simulated hang: longer than any client waits, but limited in case nothing
/// kills the process.
const HANG: Duration = Duration::from_mins(10);

/// The options of the binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "faults that go together in any way")]
pub struct StdioFlags {
    /// Exits before it reads anything.
    pub exit_at_start: bool,
    /// Never responds.
    pub hang_at_start: bool,
    /// Waits before it responds to anything.
    pub start_delay: Duration,
    /// Exits at the first tool call.
    pub die_on_call: bool,
    /// Sends no progress notifications.
    pub silent: bool,
    /// The decision of the tool `approve`.
    pub decision: Decision,
    /// The file to which received messages are appended.
    pub log: Option<PathBuf>,
}

/// An error in the arguments.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FlagError {
    /// The flag does not exist.
    #[error("unknown flag `{0}`")]
    Unknown(String),
    /// The flag needs a valid value.
    #[error("`{0}` needs {1}")]
    Value(&'static str, &'static str),
}

impl StdioFlags {
    /// Parses the arguments after the program name.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--exit-at-start" => flags.exit_at_start = true,
                "--hang-at-start" => flags.hang_at_start = true,
                "--die-on-call" => flags.die_on_call = true,
                "--silent" => flags.silent = true,
                "--deny" => flags.decision = Decision::Deny,
                "--start-delay-ms" => {
                    let millis = args.next().and_then(|value| value.parse().ok());
                    flags.start_delay = millis
                        .map(Duration::from_millis)
                        .ok_or(FlagError::Value("--start-delay-ms", "a whole number"))?;
                }
                "--log" => {
                    let path = args.next().ok_or(FlagError::Value("--log", "a file"))?;
                    flags.log = Some(path.into());
                }
                _ => return Err(FlagError::Unknown(arg)),
            }
        }
        Ok(flags)
    }
}

/// The reason why the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed the input.
    Eof,
    /// It simulated a crash.
    Died,
}

/// Serves until the input ends or a crash is simulated.
pub fn serve_stdio(flags: &StdioFlags, input: impl BufRead, output: impl Write + Send + 'static) -> io::Result<Ended> {
    let mut log = Log::open(flags.log.as_ref())?;
    log.line(&start_entry()?.to_string())?;
    if flags.exit_at_start {
        return Ok(Ended::Died);
    }
    if flags.hang_at_start {
        thread::sleep(HANG);
        return Ok(Ended::Died);
    }
    thread::sleep(flags.start_delay);
    let output = Output::new(output);
    for line in input.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        log.line(&line)?;
        let message: Value = serde_json::from_str(&line)?;
        if flags.die_on_call && called_tool(&message).is_some() {
            return Ok(Ended::Died);
        }
        match handle_message(&message, flags.decision) {
            RpcResponse::None => {}
            RpcResponse::Immediate(answer) => output.send(&answer)?,
            RpcResponse::Delayed(delayed) => {
                let (output, silent) = (output.clone(), flags.silent);
                thread::spawn(move || send_delayed(&delayed, silent, &output));
            }
        }
    }
    Ok(Ended::Eof)
}

/// Sends the progress and the response of a slow call. Errors are ignored by the caller: if the
/// client has disconnected, the reader ends the server.
fn send_delayed(delayed: &DelayedResponse, silent: bool, output: &Output) -> io::Result<()> {
    for second in 1..=delayed.takes.as_secs() {
        thread::sleep(Duration::from_secs(1));
        if let Some(progress) = delayed.progress(second).filter(|_| !silent) {
            output.send(&progress)?;
        }
    }
    thread::sleep(Duration::from_nanos(delayed.takes.subsec_nanos().into()));
    output.send(&delayed.answer)
}

fn start_entry() -> io::Result<Value> {
    let mut names: Vec<String> = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    Ok(json!({
        "start": true,
        "args": args,
        "cwd": std::env::current_dir()?.to_string_lossy(),
        "envNames": names,
        "pid": std::process::id(),
    }))
}

/// The output, shared by concurrent calls. Each message is a single write.
#[derive(Clone)]
struct Output(Arc<std::sync::Mutex<dyn Write + Send>>);

impl Output {
    fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(std::sync::Mutex::new(output)))
    }

    fn send(&self, message: &Value) -> io::Result<()> {
        let mut output = self.0.lock().map_err(|_| io::Error::other("a call panicked while it wrote"))?;
        output.write_all(format!("{message}\n").as_bytes())?;
        output.flush()
    }
}

struct Log(Option<File>);

impl Log {
    fn open(path: Option<&PathBuf>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(path.map(open).transpose()?))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        match &mut self.0 {
            Some(file) => file.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }
}
