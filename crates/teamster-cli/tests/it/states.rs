//! The screens of each state: on a small and on a large terminal, with and without color.

mod chat;
mod run;
mod start;

use std::process::Command;

use teamster_terminal::{Signal, steady, text_with_styles};

use crate::screen::{SIZES, Terminal};
use crate::workspace::Workspace;

/// A state of the command.
struct State {
    name: &'static str,
    agent: &'static str,
    /// What the agent does.
    scenario: &'static str,
    args: &'static [&'static str],
    /// Keys, each with a text that must be on the screen before it is sent.
    keys: &'static [(&'static str, &'static str)],
    /// The texts that are on the screen in this state.
    shown: &'static [&'static str],
    end: End,
}

/// What ends the command after the state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The state is the end of the command, with this exit code.
    Exit(i32),
    /// The command is killed.
    Killed,
}

/// A command of a state, in a workspace.
type Prepare = fn(&Workspace, &State) -> Command;

/// Compares the screens of each state with its snapshot.
fn check(states: &[State], prepare: Prepare) {
    for state in states {
        insta::assert_snapshot!(state.name, screens(state, prepare));
    }
}

/// Returns the screens of a state.
fn screens(state: &State, prepare: Prepare) -> String {
    let mut all = String::new();
    for (columns, rows) in SIZES {
        let of_color = |has_color: bool| {
            let workspace = Workspace::new();
            let mut command = prepare(&workspace, state);
            if !has_color {
                command.env("NO_COLOR", "1");
            }
            let screen = screen(state, &command, (columns, rows));
            let (styled, plain) = (text_with_styles(&screen), teamster_terminal::rows(&screen));
            assert!(has_color || styled == plain, "a style without color: {styled}");
            [styled, plain].map(|text| steady(&workspace.neutral(&text)))
        };
        let ([styled, text], [_, plain]) = (of_color(true), of_color(false));
        let plain = if plain == text { "(the same text)" } else { plain.as_str() };
        let size = format!("== {columns}x{rows}");
        all.extend([&size, "\n", &styled, "\n\n", &size, " without color\n", plain, "\n\n"]);
    }
    all
}

/// Plays a state on a terminal.
fn screen(state: &State, command: &Command, size: (u16, u16)) -> vt100::Screen {
    let mut terminal = Terminal::start(command, size);
    for (before, keys) in state.keys {
        terminal.wait_for_steady(before);
        terminal.press(keys);
    }
    for shown in state.shown {
        terminal.wait_for_steady(shown);
    }
    if let End::Exit(code) = state.end {
        assert_eq!(terminal.wait_for_exit(), code, "{}: {}", state.name, terminal.text());
    }
    let screen = terminal.screen();
    if state.end == End::Killed {
        terminal.signal(Signal::SIGTERM);
        terminal.wait_for_exit();
    }
    screen
}
