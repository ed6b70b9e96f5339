//! The server as a process: one message a line on stdin and stdout.
//!
//! It blocks on purpose and has a thread for each slow call: it starts as fast as a process can, and answers while others wait.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use thiserror::Error;

use super::rpc::{Decision, Slow, Step, called_tool, step};

/// How long a server hangs that hangs: longer than any client waits, and not for ever, should nobody kill it.
const HANG: Duration = Duration::from_mins(10);

/// What the binary is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(clippy::struct_excessive_bools, reason = "faults that go together in any way")]
pub struct StdioFlags {
    /// Dies before it reads anything.
    pub exit_at_start: bool,
    /// Never answers.
    pub hang_at_start: bool,
    /// Answers nothing before this has passed.
    pub start_delay: Duration,
    /// Dies at the first call of a tool.
    pub die_on_call: bool,
    /// Tells nothing of the progress of slow calls.
    pub silent: bool,
    /// What the tool `approve` says.
    pub decision: Decision,
    /// Where the messages are written down.
    pub log: Option<PathBuf>,
}

/// A flag that is not understood.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FlagError {
    /// There is no such flag.
    #[error("unknown flag `{0}`")]
    Unknown(String),
    /// The flag needs a value of its own kind.
    #[error("`{0}` needs {1}")]
    Value(&'static str, &'static str),
}

impl StdioFlags {
    /// Reads the arguments after the program's name.
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

/// How the server came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The client closed the input.
    Eof,
    /// It was told to die.
    Died,
}

/// Serves until the input ends.
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
        match step(&message, flags.decision) {
            Step::Nothing => {}
            Step::Answer(answer) => output.send(&answer)?,
            Step::Slow(slow) => {
                let (output, silent) = (output.clone(), flags.silent);
                thread::spawn(move || sleep_through(&slow, silent, &output));
            }
        }
    }
    Ok(Ended::Eof)
}

/// A client that has gone away meanwhile needs no answer: the reading side ends the server.
fn sleep_through(slow: &Slow, silent: bool, output: &Output) -> io::Result<()> {
    for second in 1..=slow.takes.as_secs() {
        thread::sleep(Duration::from_secs(1));
        if let Some(progress) = slow.progress(second).filter(|_| !silent) {
            output.send(&progress)?;
        }
    }
    thread::sleep(Duration::from_nanos(slow.takes.subsec_nanos().into()));
    output.send(&slow.answer)
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

/// The output, shared by the calls that run at the same time. A message is one write.
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
