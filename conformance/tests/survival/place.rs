//! Where a cell happens: directories of its own, a token by which its processes are known, and the faultless beginnings from
//! which faults are made.

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

/// What an agent says before a fault.
pub(crate) const SAID: &str = "Before the fault.";

/// What a real CLI says when its tool has run.
pub(crate) const ANSWER: &str = "Done.";

/// The gate that a model waits at in the middle of an answer.
pub(crate) const GATE: &str = "never";

/// What the fake agent has said when it is in the middle of an answer.
const BEGUN: &str = " And";

/// A place.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) column: Column,
    pub(crate) token: String,
}

impl Place {
    /// An empty place.
    pub(crate) fn new(column: Column) -> Result<Self> {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::Builder::new().prefix("teamster-survival-").tempdir().context("no place for a cell")?;
        // A number of seconds that nobody else sleeps.
        let token = format!("77{:07}{:03}", std::process::id(), PLACES.fetch_add(1, Ordering::Relaxed));
        let place = Self { folder, column, token };
        for name in ["home", "project", "runtime", "tmp", "state", "cli-tmp", "cli-state"] {
            fs::create_dir(place.path(name))?;
        }
        fs::set_permissions(place.path("runtime"), fs::Permissions::from_mode(0o700))?;
        Ok(place)
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

    /// The shell script around a CLI. It writes its number, which is the CLI's if it executes the CLI.
    pub(crate) fn wrapper(&self, cli: &Path, shell: &str) -> Result<PathBuf> {
        let place = self.folder.path().display();
        let script = format!(
            "#!/bin/sh\nCLI='{}'\nT={}\nPLACE='{place}'\necho $$ > \"$PLACE/leader\"\n{shell}\n",
            cli.display(),
            self.token,
        );
        self.program("cli", script.as_bytes())
    }

    /// The number of the process that was started as the CLI.
    pub(crate) fn leader(&self) -> Option<u32> {
        let text = fs::read_to_string(self.path("leader")).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    }

    /// A CLI that answers and ends.
    pub(crate) fn answers(&self) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(begun().then(good_end())),
            Column::Real(agent) => Cli::Real(agent.reply().text(SAID).into()),
        };
        Fault::new(cli, SAID)
    }

    /// The same; on Codex in its one-shot form. By its app-server it needs no private file, and waits for answers to what it says.
    pub(crate) fn answers_in_one_shot(&self) -> Fault {
        match self.column {
            Column::Real(agent) if agent.name == "codex" => {
                self.answers().asking(|request| request.interface = AgentInterface::Exec)
            }
            _ => self.answers(),
        }
    }

    /// A CLI that says something and then runs a command that never ends.
    pub(crate) fn works(&self) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(working().hang()),
            Column::Real(agent) => {
                let (tool, input) = agent.shell(&format!("sleep {}", self.token));
                Cli::Real(agent.reply().text(SAID).tool(tool, input).into())
            }
        };
        Fault::new(cli, SAID)
    }

    /// A CLI that runs a command and answers then.
    pub(crate) fn runs(&self, command: &str) -> Fault {
        let cli = match self.column {
            Column::Fake => Cli::Fake(begun().then(good_end())),
            Column::Real(agent) => {
                let (tool, input) = agent.shell(command);
                let call = agent.reply().text(SAID).tool(tool, input);
                Cli::Real(Scenario::new().reply(call).reply(agent.reply().text(ANSWER)))
            }
        };
        Fault::new(cli, SAID)
    }

    /// A CLI that stays in the middle of its second answer.
    pub(crate) fn streams(&self) -> Fault {
        match self.column {
            Column::Fake => {
                let script = begun().claude_text(SAID).claude_partial_text(BEGUN).hang();
                Fault::new(Cli::Fake(script), format!("{SAID}{BEGUN}"))
            }
            Column::Real(agent) => {
                let (tool, input) = agent.shell("true");
                let call = agent.reply().text(SAID).tool(tool, input);
                let rest = agent.reply().text(" And then it goes on.").gate_after(1, GATE);
                Fault::new(Cli::Real(Scenario::new().reply(call).reply(rest)), SAID)
            }
        }
    }
}

/// The fake agent at work, with a tool in a session of its own.
pub(crate) fn working() -> Script {
    let tool = Child::new(Script::new().ready().hang()).session().without_stdout();
    begun().claude_text(SAID).spawn(tool).claude_tool("toolu_1", "Bash", &json!({"command": "make"}))
}

/// The fake agent's first words.
pub(crate) fn begun() -> Script {
    Script::new().claude_init()
}

/// The fake agent's answer, and an end as it should be.
pub(crate) fn good_end() -> Script {
    Script::new().claude_text(SAID).claude_result(SAID).read_to_end()
}
