//! A program of a test that reads lines of JSON and answers with lines of JSON.

use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::output::print;

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct JsonLines {
    child: Child,
    stdin: ChildStdin,
    lines: UnboundedReceiver<String>,
}

impl JsonLines {
    /// Starts a program with these variables and nothing else of the user's environment, such as a proxy or a key.
    pub(crate) fn start(mut command: Command, variables: &[(&str, &str)]) -> Result<Self> {
        command.env_clear().envs(variables.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = unbounded_channel();
        thread::spawn(move || {
            let output = std::io::BufRead::lines(std::io::BufReader::new(stdout));
            output.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(Self { child, stdin, lines })
    }

    /// Writes a line of JSON.
    pub(crate) fn write(&mut self, call: &Value) -> Result<()> {
        writeln!(self.stdin, "{call}").context("the program reads nothing")
    }

    /// Returns the next line of JSON, which must come within this time.
    pub(crate) async fn read(&mut self, limit: Duration) -> Result<Value> {
        let line = tokio::time::timeout(limit, self.lines.recv()).await.context("the program answers nothing")?;
        let line = line.context("the program has ended")?;
        print(&line);
        serde_json::from_str(&line).with_context(|| format!("the answer is no JSON: {line}"))
    }
}

impl Drop for JsonLines {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
