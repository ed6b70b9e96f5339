//! The first screens: `teamster` without arguments, and `teamster doctor`.

use std::process::Command;

use super::{End, State, check};
use crate::workspace::Workspace;

const START: State = State { name: "", agent: "", scenario: "", args: &[], keys: &[], shown: &[], end: End::Exit(0) };

/// Installs the programs that a state names, with the version that each of them prints, and sets its variables.
fn prepare(workspace: &Workspace, state: &State) -> Command {
    let mut command = workspace.teamster(state.args);
    for word in state.scenario.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if name.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
                command.env(name, value);
            }
            Some((program, version)) => {
                workspace.install_script(program, &format!("echo '{}'", version.replace('_', " ")));
            }
            None => workspace.install_script(word, "exit 3"),
        }
    }
    command
}

#[test]
fn the_screen_without_arguments() {
    check(
        &[
            State { name: "welcome_nothing_installed", ..START },
            State { name: "welcome_no_login", scenario: "claude", ..START },
            State { name: "welcome_no_login_of_two", scenario: "codex opencode", ..START },
            State { name: "welcome_one_ready", scenario: "gemini GEMINI_API_KEY=k", ..START },
            State {
                name: "welcome_all_ready",
                scenario: "claude codex gemini opencode ANTHROPIC_API_KEY=k CODEX_API_KEY=k GEMINI_API_KEY=k",
                ..START
            },
        ],
        prepare,
    );
}

const DOCTOR: State = State { args: &["doctor"], ..START };

#[test]
fn the_verdicts_of_doctor() {
    check(
        &[
            State { name: "doctor_nothing_installed", end: End::Exit(1), ..DOCTOR },
            State { name: "doctor_ready", scenario: "claude=2.1.197_(Claude_Code) ANTHROPIC_API_KEY=k", ..DOCTOR },
            State {
                name: "doctor_no_login",
                scenario: "claude=2.1.197_(Claude_Code) codex=codex-cli_0.169.0",
                ..DOCTOR
            },
            State { name: "doctor_too_old", scenario: "claude=1.0.3_(Claude_Code) ANTHROPIC_API_KEY=k", ..DOCTOR },
            State { name: "doctor_cannot_run", scenario: "claude ANTHROPIC_API_KEY=k", end: End::Exit(1), ..DOCTOR },
            State {
                name: "doctor_verbose",
                args: &["doctor", "--verbose", "--agent", "gemini"],
                scenario: "gemini=0.61.0 GEMINI_API_KEY=k",
                ..DOCTOR
            },
        ],
        prepare,
    );
}
