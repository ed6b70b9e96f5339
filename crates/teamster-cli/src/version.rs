//! `teamster --version --verbose`: what this build is, and the agents that it was tested with.

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::io;

use teamster::Registry;

use crate::exit;
use crate::printable::{Printable, printable};
use crate::vendor;

/// The commit of this build, if the build named it.
const COMMIT: Option<&str> = option_env!("TEAMSTER_COMMIT");

/// Whether the command line is `--version --verbose`, in any order.
pub(crate) fn is_requested(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let given: Vec<_> = arguments.into_iter().skip(1).collect();
    let is_given = |names: [&str; 2]| given.iter().any(|argument| names.iter().any(|name| argument == name));
    given.len() == 2 && is_given(["--version", "-V"]) && is_given(["--verbose", "-v"])
}

/// Prints the lines and returns the exit code.
pub(crate) fn main() -> u8 {
    match lines().write_line(&mut io::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

fn lines() -> Printable {
    let commit = COMMIT.unwrap_or("unknown");
    let mut lines = vec![
        printable!("teamster {}", env!("CARGO_PKG_VERSION")),
        printable!("commit    {}", commit),
        printable!("target    {}-{}", ARCH, OS),
        "tested with".into(),
    ];
    let registry = Registry::default();
    for agent in vendor::AGENTS {
        let version = registry.get(agent).ok().and_then(|agent| agent.capabilities()).map(|known| known.tested_version);
        lines.push(printable!("  {:<9} {}", agent, version.unwrap_or_default()));
    }
    Printable::join(lines, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_both_options_together_request_it() {
        let requested = |arguments: &[&str]| is_requested(["teamster"].iter().chain(arguments).map(OsString::from));
        for arguments in [["--version", "--verbose"], ["--verbose", "--version"], ["-V", "-v"], ["--verbose", "-V"]] {
            assert!(requested(&arguments), "{arguments:?}");
        }
        for arguments in [&["--version"][..], &["--verbose"], &["run", "--verbose"], &[]] {
            assert!(!requested(arguments), "{arguments:?}");
        }
    }

    #[test]
    fn each_agent_is_named_with_its_tested_version() {
        let lines = lines();
        assert!(vendor::AGENTS.iter().all(|agent| lines.as_str().contains(agent)), "{lines}");
        assert!(lines.as_str().starts_with("teamster 0."), "{lines}");
    }
}
