//! The page of the tour: sections with text, and what a terminal shows.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use teamster_terminal::{replaced, steady};

use crate::command::ended;
use crate::screen::Terminal;
use crate::workspace::Workspace;

const HEAD: &str = "\
# The first five minutes

Read this page to see what the command looks like before you install it. Each block is what a
terminal of 80 columns shows. A scripted agent ([fake.md](fake.md)) replaces the model, so the
answers, tokens and costs are made up. The rest is real output.

<!-- generated: cargo xtask tour -->
";

/// A terminal on which nothing scrolls out of sight.
const SIZE: (u16, u16) = (80, 70);

/// Replaces the values that differ between two runs with plausible ones.
pub(super) fn plausible(text: &str, seconds: u32) -> String {
    let (status, whole) = (format!(" {seconds} s"), format!(" {seconds}.4s"));
    let replacements = [
        (" N s", status.as_str()),
        (" Ns", &whole),
        ("⠿", "⠹"),
        ("00000000-0000-0000-0000-000000000000", "67c9c3e6-c7de-48a2-bc6b-8c0c662932f4"),
    ];
    let text = steady(text);
    // A status has the time of the call, and then that of the run.
    let text = if text.matches(" N s").count() > 1 { text.replacen(" N s", " 2 s", 1) } else { text };
    replaced(&text, &replacements)
}

/// Formats a value as an inline table of TOML.
pub(super) fn toml(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name} = {}", toml(value)));
            format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
        }
        serde_json::Value::Array(values) => {
            format!("[{}]", values.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

pub(super) struct Page<'a> {
    workspace: &'a Workspace,
    text: String,
    variables: Vec<(&'static str, &'static str)>,
}

impl<'a> Page<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, text: HEAD.to_owned(), variables: Vec::new() }
    }

    pub(super) fn text(self) -> String {
        self.text
    }

    pub(super) fn section(&mut self, title: &str) {
        _ = write!(self.text, "\n## {title}\n");
    }

    /// Adds a paragraph.
    pub(super) fn prose(&mut self, text: &str) {
        self.text.push('\n');
        for line in textwrap::wrap(text, 100) {
            _ = writeln!(self.text, "{line}");
        }
    }

    /// Sets a variable for the following commands.
    pub(super) fn set(&mut self, name: &'static str, value: &'static str) {
        self.variables.push((name, value));
    }

    /// Returns a line for a shell.
    pub(super) fn line(&self, line: &str) -> Command {
        let mut command = self.workspace.line(line);
        command.envs(self.variables.iter().copied());
        command
    }

    /// Runs a line, and shows what is on the terminal at its end.
    pub(super) fn run(&mut self, line: &str) {
        let mut terminal = Terminal::start(&self.line(line), SIZE);
        terminal.wait_for_exit();
        self.show(&terminal.text());
    }

    /// Runs a line whose numbers are the same in each run, and shows them as they are.
    pub(super) fn run_exact(&mut self, line: &str) {
        let mut terminal = Terminal::start(&self.line(line), SIZE);
        terminal.wait_for_exit();
        let screen = self.workspace.neutral(&terminal.text());
        self.block(&screen);
    }

    /// Runs a line that is not shown.
    pub(super) fn quietly(&self, line: &str) {
        let mut command = self.line(line);
        command.stdin(Stdio::null());
        assert_eq!(ended(command).code, Some(0), "{line}");
    }

    /// Shows what is on a terminal.
    pub(super) fn show(&mut self, screen: &str) {
        let screen = plausible(&self.workspace.neutral(screen), 8);
        self.block(&screen);
    }

    fn block(&mut self, screen: &str) {
        let lines: Vec<_> = screen.trim_end().lines().map(str::trim_end).collect();
        _ = write!(self.text, "\n```console\n{}\n```\n", lines.join("\n"));
    }
}
