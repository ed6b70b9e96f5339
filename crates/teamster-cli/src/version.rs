//! `teamster --version`: the version. With `--verbose`: what this build is, and the agents that it was tested with.
//!
//! Both are answered before the command line is parsed: scripts and editors request the version often.

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;
use std::io;

use teamster::Registry;

use crate::exit;
use crate::printable::{Printable, printable};
use crate::vendor;

/// The commit of this build, if the build named it.
const COMMIT: Option<&str> = option_env!("TEAMSTER_COMMIT");

/// What a command line requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// `--version`
    Version,
    /// `--version --verbose`
    Details,
}

/// Returns what a command line requests that has only these options, in any order. Clap handles others.
pub(crate) fn requested(argv: &[OsString]) -> Option<Request> {
    let given = argv.get(1..)?;
    let is_given = |names: [&str; 2]| given.iter().any(|argument| names.iter().any(|name| argument == name));
    let is_version = is_given(["--version", "-V"]);
    match given.len() {
        1 if is_version => Some(Request::Version),
        2 if is_version && is_given(["--verbose", "-v"]) => Some(Request::Details),
        _ => None,
    }
}

/// Prints the lines and returns the exit code.
pub(crate) fn main(request: Request) -> u8 {
    let text = match request {
        Request::Version => first_line(),
        Request::Details => lines(),
    };
    match text.write_line(&mut io::stdout()) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

fn first_line() -> Printable {
    printable!("teamster {}", env!("CARGO_PKG_VERSION"))
}

fn lines() -> Printable {
    let commit = COMMIT.unwrap_or("unknown");
    let mut lines = vec![
        first_line(),
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
    fn the_options_request_the_version_if_there_are_no_others() {
        let requested = |arguments: &[&str]| {
            requested(&["teamster"].iter().chain(arguments).map(OsString::from).collect::<Vec<_>>())
        };
        for arguments in [["--version", "--verbose"], ["--verbose", "--version"], ["-V", "-v"], ["--verbose", "-V"]] {
            assert_eq!(requested(&arguments), Some(Request::Details), "{arguments:?}");
        }
        for arguments in [["--version"], ["-V"]] {
            assert_eq!(requested(&arguments), Some(Request::Version), "{arguments:?}");
        }
        for arguments in [&["--verbose"][..], &["run", "--verbose"], &["run", "--version"], &[]] {
            assert_eq!(requested(arguments), None, "{arguments:?}");
        }
    }

    #[test]
    fn the_version_is_printed_as_clap_prints_it() {
        let rendered = crate::args::command().render_version();
        assert_eq!(format!("{}\n", first_line().as_str()), rendered);
    }

    #[test]
    fn each_agent_is_named_with_its_tested_version() {
        let lines = lines();
        assert!(vendor::AGENTS.iter().all(|agent| lines.as_str().contains(agent)), "{lines}");
        assert!(lines.as_str().starts_with("teamster 0."), "{lines}");
    }
}
