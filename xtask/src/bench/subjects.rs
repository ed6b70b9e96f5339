//! What is measured: Teamster, the floors and the peers.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::form::Form;
use crate::bench::peers::{Language, Peers};

/// A program that prints one line of JSON for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `lines`, `typed` or `raw`.
    Floor(&'static str),
    /// Teamster's library, with Tokio's `current` thread or `multi`ple threads.
    Library(&'static str),
    /// `teamster run --output ndjson`.
    Command,
    /// A library for Node.js, by the name of its module in `benches/peers`.
    Node(&'static str),
    /// The Agent SDK for Python.
    Python,
    Acpx,
}

pub(crate) const LINES: Subject = Subject { name: "floor: lines only", kind: Kind::Floor("lines") };
pub(crate) const TYPED: Subject = Subject { name: "floor: typed parsing", kind: Kind::Floor("typed") };
pub(crate) const RAW: Subject = Subject { name: "floor: bare process and pipe", kind: Kind::Floor("raw") };
pub(crate) const LIBRARY: Subject = Subject { name: "Teamster, library", kind: Kind::Library("current") };
pub(crate) const LIBRARY_MULTI: Subject =
    Subject { name: "Teamster, library, 2 threads", kind: Kind::Library("multi") };
pub(crate) const COMMAND: Subject = Subject { name: "`teamster run --output ndjson`", kind: Kind::Command };
pub(crate) const CLAUDE_TS: Subject =
    Subject { name: "@anthropic-ai/claude-agent-sdk", kind: Kind::Node("claude-sdk") };
pub(crate) const CLAUDE_PY: Subject = Subject { name: "claude-agent-sdk (Python)", kind: Kind::Python };
pub(crate) const AI_CLAUDE: Subject =
    Subject { name: "ai-sdk-provider-claude-code", kind: Kind::Node("ai-sdk-claude") };
pub(crate) const CODEX_TS: Subject = Subject { name: "@openai/codex-sdk", kind: Kind::Node("codex-sdk") };
pub(crate) const AI_CODEX: Subject =
    Subject { name: "ai-sdk-provider-codex-cli, exec", kind: Kind::Node("ai-sdk-codex") };
pub(crate) const AI_CODEX_APP: Subject =
    Subject { name: "ai-sdk-provider-codex-cli, app-server", kind: Kind::Node("ai-sdk-codex-app") };
pub(crate) const ACP_TS: Subject = Subject { name: "@agentclientprotocol/sdk", kind: Kind::Node("acp-sdk") };
pub(crate) const ACPX: Subject = Subject { name: "acpx", kind: Kind::Acpx };

/// Where the programs are.
pub(crate) struct Programs<'a> {
    pub(crate) peers: &'a Peers,
    /// Where cargo builds for release.
    pub(crate) release: PathBuf,
}

impl Subject {
    /// Returns whether this is Teamster itself.
    pub(crate) fn is_ours(self) -> bool {
        matches!(self.kind, Kind::Library(_) | Kind::Command)
    }

    pub(crate) fn is_floor(self) -> bool {
        matches!(self.kind, Kind::Floor(_))
    }

    /// Returns whether the program that prints the line is not the one that is measured.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self.kind, Kind::Command | Kind::Acpx)
    }

    /// Returns what must be installed.
    pub(crate) fn language(self) -> Option<Language> {
        match self.kind {
            Kind::Node(_) | Kind::Acpx => Some(Language::Node),
            Kind::Python => Some(Language::Python),
            Kind::Floor(_) | Kind::Library(_) | Kind::Command => None,
        }
    }

    /// Returns the program for a task, which gets this CLI.
    pub(crate) fn command(self, programs: &Programs<'_>, (task, form, runs): (&str, Form, u32), cli: &Path) -> Command {
        let example = |name: &str| Command::new(programs.release.join("examples").join(name));
        let node = programs.peers.node();
        let mut command = match self.kind {
            Kind::Floor(kind) => with(example("floor"), &[kind]),
            Kind::Library(threads) => with(example("subject"), &[threads]),
            Kind::Command | Kind::Acpx => example("outside"),
            Kind::Node(module) => {
                let mut command = Command::new("node");
                command.arg(node.join("measure.mjs")).arg(module);
                command
            }
            Kind::Python => {
                let mut command = Command::new(programs.peers.python().join("bin/python"));
                command.arg(programs.peers.python().join("claude_sdk.py"));
                command
            }
        };
        command.args([task, form.name()]).arg(cli).arg(runs.to_string());
        match self.kind {
            Kind::Command => teamster(&mut command, &programs.release, form, cli),
            Kind::Acpx => {
                command.arg(node.join("node_modules/.bin/acpx")).arg("--agent").arg(format!("{} acp", cli.display()));
                command.args(["--approve-all", "--format", "json", "exec", "hello"]);
            }
            _ => {}
        }
        command
    }
}

fn with(mut command: Command, args: &[&str]) -> Command {
    command.args(args);
    command
}

fn teamster(command: &mut Command, release: &Path, form: Form, cli: &Path) {
    command.arg(release.join("teamster")).args(["run", "--output", "ndjson", "--agent", form.agent()]);
    command.arg("--cli-path").arg(cli);
    if form == Form::CodexExec {
        command.args(["--mode", "exec"]);
    }
    command.arg("hello");
}
