//! Finds the installed tools, before long work starts.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command::{cargo, output, program};
use crate::python;

/// The oldest Node.js that Claude Code's package supports.
const NODE_MIN: u32 = 18;

/// Succeeds on a Python that can run and install the pinned packages.
const PYTHON: &str = "import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))";

/// The target that stands for macOS: what differs by system differs alike on both of its processors.
pub(crate) const MACOS: &str = "x86_64-apple-darwin";

#[expect(clippy::struct_excessive_bools, reason = "each is a tool that may be installed or not")]
pub(crate) struct Tools {
    pub(crate) nextest: bool,
    pub(crate) deny: bool,
    /// Whether code for macOS can be checked here.
    pub(crate) macos: bool,
    /// Counts instructions.
    pub(crate) valgrind: bool,
    missing_rust: Vec<String>,
    missing_node: Option<String>,
    missing_python: Option<String>,
}

impl Tools {
    pub(crate) fn find() -> Self {
        let node = output(program("node", &["--version"])).and_then(|text| major(&text));
        let npm = output(program("npm", &["--version"]));
        Self {
            nextest: has("nextest"),
            deny: has("deny"),
            macos: has_target(MACOS),
            valgrind: output(program("valgrind", &["--version"])).is_some(),
            missing_rust: missing_rust(has("fmt"), has("clippy")),
            missing_node: missing_node(node, npm.is_some()),
            missing_python: missing_python(output(program("python3", &["-c", PYTHON])).is_some()),
        }
    }

    pub(crate) fn require_rust(&self) -> Result<()> {
        fail_on(&self.missing_rust)
    }

    pub(crate) fn require_node(&self) -> Result<()> {
        fail_on(self.missing_node.as_slice())
    }

    pub(crate) fn require_python(&self) -> Result<()> {
        fail_on(self.missing_python.as_slice())
    }

    /// Requires what all checks need: Python only if the user has not left it out.
    pub(crate) fn require_all(&self) -> Result<()> {
        let python = if python::is_left_out() { &[] } else { self.missing_python.as_slice() };
        fail_on(&[self.missing_rust.as_slice(), self.missing_node.as_slice(), python].concat())
    }
}

fn has(subcommand: &str) -> bool {
    output(cargo(&[subcommand, "--version"])).is_some()
}

fn has_target(target: &str) -> bool {
    output(program("rustc", &["--print", "target-libdir", "--target", target]))
        .is_some_and(|directory| Path::new(&directory).is_dir())
}

fn missing_rust(rustfmt: bool, clippy: bool) -> Vec<String> {
    [("rustfmt", rustfmt), ("clippy", clippy)]
        .into_iter()
        .filter(|(_, there)| !there)
        .map(|(name, _)| format!("{name} (checks the code; get it: rustup component add {name})"))
        .collect()
}

fn missing_node(node: Option<u32>, npm: bool) -> Option<String> {
    let node = match node {
        Some(major) if major >= NODE_MIN => None,
        Some(major) => Some(format!("Node.js {NODE_MIN} or newer, not {major}")),
        None => Some(format!("Node.js {NODE_MIN} or newer")),
    };
    let npm = (!npm).then(|| "npm".to_owned());
    let missing: Vec<_> = node.into_iter().chain(npm).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "{} (to install the pinned agent CLIs for the conformance tests and the demo; get it from nodejs.org or \
             your system's packages)",
            missing.join(" and ")
        )
    })
}

fn missing_python(has_venv: bool) -> Option<String> {
    (!has_venv).then(|| {
        format!(
            "Python 3.11 or newer with the modules venv and ensurepip (for the official OpenAI client and Schemathesis; get it from your \
             system's packages: python3-venv; `{}=1` does without it)",
            python::WITHOUT_PYTHON
        )
    })
}

fn fail_on(missing: &[String]) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    bail!("missing on this machine: {}", missing.join("; "));
}

/// `v20.11.1` is 20.
fn major(version: &str) -> Option<u32> {
    version.trim_start_matches('v').split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Tools, major, missing_node, missing_python, missing_rust};

    #[test]
    fn reads_the_major_version_of_node() {
        assert_eq!(major("v20.11.1"), Some(20));
        assert_eq!(major("18.0.0"), Some(18));
        assert_eq!(major("unknown"), None);
    }

    #[test]
    fn asks_for_nothing_that_is_there() {
        assert!(missing_rust(true, true).is_empty());
        assert_eq!(missing_node(Some(18), true), None);
        assert_eq!(missing_python(true), None);
    }

    #[test]
    fn names_everything_that_is_missing_in_one_line() {
        let tools = Tools {
            nextest: false,
            deny: false,
            macos: false,
            valgrind: false,
            missing_rust: missing_rust(true, false),
            missing_node: missing_node(Some(16), false),
            missing_python: missing_python(true),
        };
        let message = tools.require_all().unwrap_err().to_string();
        assert!(message.contains("rustup component add clippy"), "{message}");
        assert!(message.contains("Node.js 18 or newer, not 16 and npm ("), "{message}");
        assert!(!message.contains('\n') && !message.contains("rustfmt"), "{message}");
    }
}
