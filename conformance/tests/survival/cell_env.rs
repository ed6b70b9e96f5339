//! The environment of a cell: its directories, the token of its processes, and CLIs without a fault, from which faults are
//! made.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use serde_json::json;
use teamster::request::AgentInterface;
use teamster_testkit::fake::{Child, Script};
use teamster_testkit::provider::Scenario;
use tempfile::TempDir;

use crate::fault::{Cli, Fault};
use crate::row::Column;

/// The text of an agent before a fault.
pub(crate) const TEXT: &str = "Before the fault.";

/// The text of a real CLI after its tool.
pub(crate) const ANSWER: &str = "Done.";

/// The gate at which a model waits in the middle of an answer.
pub(crate) const GATE: &str = "never";

/// The part of an answer that the fake agent emits in the middle of it.
const PARTIAL: &str = " And";

/// The environment of a cell.
#[derive(Debug)]
pub(crate) struct CellEnv {
    folder: TempDir,
    pub(crate) column: Column,
    pub(crate) token: String,
}

impl CellEnv {
    /// Creates an empty environment.
    pub(crate) fn new(column: Column) -> Result<Self> {
        static CELLS: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new()
            .prefix("teamster-survival-")
            .tempdir()
            .context("cannot create a directory for a cell")?;
        // A number of seconds that is not in the arguments of other processes.
        let token = format!("77{:07}{:03}", std::process::id(), CELLS.fetch_add(1, Ordering::Relaxed));
        let cell = Self { folder, column, token };
        for name in ["home", "project", "runtime", "tmp", "state", "cli-tmp", "cli-state"] {
            fs::create_dir(cell.path(name))?;
        }
        fs::set_permissions(cell.path("runtime"), fs::Permissions::from_mode(0o700))?;
        Ok(cell)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a program.
    pub(crate) fn program(&self, name: &str, content: &[u8]) -> Result<PathBuf> {
        let path = self.path(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    /// Writes the shell script around a CLI. It writes its process id, which is the CLI's if it executes the CLI.
    pub(crate) fn wrapper(&self, cli: &Path, shell: &str) -> Result<PathBuf> {
        let cell = self.folder.path().display();
        let script = format!(
            "#!/bin/sh\nCLI='{}'\nT={}\nCELL_DIR='{cell}'\necho $$ > \"$CELL_DIR/leader\"\n{shell}\n",
            cli.display(),
            self.token,
        );
        self.program("cli", script.as_bytes())
    }

    /// Returns the id of the process that was started as the CLI.
    pub(crate) fn leader(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path("leader")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    }

    /// Returns a CLI that answers and exits.
    pub(crate) fn answers(&self) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(started().then(good_end())),
            Column::Real(agent) => Cli::Real(agent.reply().text(TEXT).into()),
        };
        Fault::new(cli, TEXT)
    }

    /// The same, on Codex in its one-shot form. Its app-server needs no private file, and waits for responses.
    pub(crate) fn answers_in_one_shot(&self) -> Fault {
        match self.column {
            Column::Real(agent) if agent.name == "codex" => {
                self.answers().asking(|request| request.interface = AgentInterface::Exec)
            }
            _ => self.answers(),
        }
    }

    /// Returns a CLI that emits text, and then runs a command that never ends.
    pub(crate) fn works(&self) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(working().hang()),
            Column::Real(agent) => {
                let (tool, input) = agent.shell(&format!("sleep {}", self.token));
                Cli::Real(agent.reply().text(TEXT).tool(tool, input).into())
            }
        };
        Fault::new(cli, TEXT)
    }

    /// Returns a CLI that runs a command, and then answers.
    pub(crate) fn runs(&self, command: &str) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(started().then(good_end())),
            Column::Real(agent) => {
                let (tool, input) = agent.shell(command);
                let call = agent.reply().text(TEXT).tool(tool, input);
                Cli::Real(Scenario::new().reply(call).reply(agent.reply().text(ANSWER)))
            }
        };
        Fault::new(cli, TEXT)
    }

    /// Returns a CLI that stops in the middle of its second answer.
    pub(crate) fn streams(&self) -> Fault {
        match self.column {
            Column::Fake => {
                let script = started().claude_text(TEXT).claude_partial_text(PARTIAL).hang();
                Fault::new(Cli::Fake(script), format!("{TEXT}{PARTIAL}"))
            }
            Column::Real(agent) => {
                let (tool, input) = agent.shell("true");
                let call = agent.reply().text(TEXT).tool(tool, input);
                let rest = agent.reply().text(" And then it continues.").gate_after(1, GATE);
                Fault::new(Cli::Real(Scenario::new().reply(call).reply(rest)), TEXT)
            }
        }
    }
}

/// Returns a script with a running tool, in a session of its own.
pub(crate) fn working() -> Script {
    let tool = Child::new(Script::new().ready().hang()).session().without_stdout();
    started().claude_text(TEXT).spawn(tool).claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
}

/// Returns the start of a script.
pub(crate) fn started() -> Script {
    Script::new().claude_init()
}

/// Returns the end of a script: an answer and a result.
pub(crate) fn good_end() -> Script {
    Script::new().claude_text(TEXT).claude_result(TEXT).read_to_end()
}
