//! Records what a terminal shows as frames.

use std::process::Command;

use teamster_terminal::spans;

use super::page::plausible;
use super::svg::Frame;
use crate::screen::Terminal;
use crate::workspace::Workspace;

/// The size of the terminal in the pictures.
pub(super) const SIZE: (u16, u16) = (80, 34);

pub(super) struct Recorder<'a> {
    workspace: &'a Workspace,
    pub(super) terminal: Terminal,
    frames: Vec<Frame>,
}

impl<'a> Recorder<'a> {
    pub(super) fn start(workspace: &'a Workspace, command: &Command) -> Self {
        Self { workspace, terminal: Terminal::start(command, SIZE), frames: Vec::new() }
    }

    /// Lets the agent continue.
    pub(super) fn go(&self, name: &str) {
        std::fs::write(self.workspace.path("home/dev").join(name), "").unwrap();
    }

    /// Waits until all texts are on the screen, and adds it as a frame at this number of seconds. It is shown for some tenths
    /// of a second. The texts must include the last one that appears before the agent waits, or the frame can differ.
    pub(super) fn frame(&mut self, shown: &[&str], seconds: u32, tenths: u32) {
        let what = format!("{shown:?} is on the screen");
        self.terminal.wait_until(&what, |screen| {
            let screen = teamster_terminal::steady(screen);
            shown.iter().all(|text| screen.contains(text))
        });
        self.add(seconds, tenths);
    }

    /// Waits for the end of the command, adds the last frame, and returns the text on the screen and the frames.
    pub(super) fn finish(mut self, seconds: u32, tenths: u32) -> (String, Vec<Frame>) {
        assert_eq!(self.terminal.wait_for_exit(), 0, "{}", self.terminal.text());
        self.add(seconds, tenths);
        (self.terminal.text(), self.frames)
    }

    fn add(&mut self, seconds: u32, tenths: u32) {
        let mut rows = spans(&self.terminal.screen());
        for row in &mut rows {
            for span in &mut *row {
                span.text = plausible(&self.workspace.neutral(&span.text), seconds);
            }
            // The duration of a call is removed. It is shown only if the call is slow.
            row.retain(|span| !span.text.is_empty());
        }
        self.frames.push(Frame { rows, tenths });
    }
}
