//! Python programs of the tests, in the environments that `cargo xtask install-python` creates.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::{fs, thread};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::TIMEOUT;
use crate::output::print;

/// The variable that skips the tests of Python programs.
pub const WITHOUT_PYTHON: &str = "TEAMSTER_WITHOUT_PYTHON";

/// A Python program that reads lines of JSON and answers with lines of JSON. It is killed when this is dropped.
#[derive(Debug)]
pub struct PythonProgram {
    child: Child,
    stdin: ChildStdin,
    lines: UnboundedReceiver<String>,
}

impl PythonProgram {
    /// Starts the program `conformance/python/SCRIPT` in an environment. `None` if the variable [`WITHOUT_PYTHON`] is set.
    ///
    /// # Errors
    /// If the environment is not installed.
    pub fn start(environment: &str, script: &str, variables: &[(&str, &str)]) -> Result<Option<Self>> {
        if std::env::var_os(WITHOUT_PYTHON).is_some_and(|value| !value.is_empty()) {
            print(&format!("skipped: {WITHOUT_PYTHON} is set"));
            return Ok(None);
        }
        let conformance = Path::new(env!("CARGO_MANIFEST_DIR"));
        let python = conformance.join("../target/python").join(environment).join("bin/python");
        ensure!(
            python.exists(),
            "{} does not exist: run `cargo xtask install-python`, or set {WITHOUT_PYTHON}=1 to skip this test",
            python.display()
        );
        let mut command = Command::new(python);
        // Nothing of the user's environment, such as a proxy or a key, has an effect.
        command.arg(script_path(script)?).env_clear().envs(variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start Python")?;
        let stdin = child.stdin.take().context("no standard input")?;
        let stdout = child.stdout.take().context("no standard output")?;
        let (sender, lines) = unbounded_channel();
        thread::spawn(move || {
            let output = std::io::BufRead::lines(std::io::BufReader::new(stdout));
            output.map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Ok(Some(Self { child, stdin, lines }))
    }

    /// Writes a line of JSON.
    pub fn write(&mut self, call: &Value) -> Result<()> {
        writeln!(self.stdin, "{call}").context("the program reads nothing")
    }

    /// Returns the next line of JSON.
    pub async fn read(&mut self) -> Result<Value> {
        let line = tokio::time::timeout(TIMEOUT, self.lines.recv()).await.context("the program answers nothing")?;
        let line = line.context("the program has ended")?;
        print(&line);
        serde_json::from_str(&line).with_context(|| format!("the answer is no JSON: {line}"))
    }
}

impl Drop for PythonProgram {
    fn drop(&mut self) {
        // Both fail if it has ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn script_path(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name);
    fs::canonicalize(&path).with_context(|| format!("cannot find {}", path.display()))
}
