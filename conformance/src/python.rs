//! Python programs of the tests, in the environments that `cargo xtask install-python` creates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::TIMEOUT;
use crate::json_lines::JsonLines;
use crate::output::print;

/// The variable that skips the tests of Python programs.
pub const WITHOUT_PYTHON: &str = "TEAMSTER_WITHOUT_PYTHON";

/// A Python program that reads lines of JSON and answers with lines of JSON. It is killed when this is dropped.
#[derive(Debug)]
pub struct PythonProgram(JsonLines);

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
        command.arg(script_path(script)?);
        Ok(Some(Self(JsonLines::start(command, variables)?)))
    }

    /// Writes a line of JSON.
    pub fn write(&mut self, call: &Value) -> Result<()> {
        self.0.write(call)
    }

    /// Returns the next line of JSON.
    pub async fn read(&mut self) -> Result<Value> {
        self.0.read(TIMEOUT).await
    }
}

fn script_path(name: &str) -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(name);
    fs::canonicalize(&path).with_context(|| format!("cannot find {}", path.display()))
}
