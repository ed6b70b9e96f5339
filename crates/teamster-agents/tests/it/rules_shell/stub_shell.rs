//! Runs commands in a real bash. Every program is a stub that records its arguments.
//!
//! Invariants: the environment is cleared, and `PATH` contains only stubs. A command with a path other than `/dev/null` or a system
//! shell is not run.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use teamster_agents::rules::{TextOnly, ToolCall, ToolRules, Verdict};
use teamster_types::request::{PermissionMode, Permissions};

const BASH: &str = "/bin/bash";

/// Programs that commands of the test may name. Others are recorded by bash's handler for unknown commands.
const STUBS: [&str; 12] = ["git", "rm", "ls", "cat", "env", "sudo", "x", "a", "diff", "evil", "kill", "tee"];

/// The time limit of a command.
const LIMIT: Duration = Duration::from_secs(20);

/// A directory with stubs, and an empty directory in which commands run.
pub(crate) struct StubShell {
    root: tempfile::TempDir,
    rules: ToolRules,
}

impl StubShell {
    /// Creates the stubs, with the rule `Bash(git diff:*)`.
    pub(crate) fn new() -> io::Result<Self> {
        let root = tempfile::tempdir()?;
        let record = root.path().join("record");
        let (bin, work) = (root.path().join("bin"), root.path().join("work"));
        fs::create_dir(&bin)?;
        fs::create_dir(&work)?;
        let put = |path: PathBuf, text: String| {
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700))
        };
        let record = record.display();
        for name in STUBS {
            let stub = format!("#!{BASH}\nunset BASH_ENV\nprintf '%s\\n' \"{name} ${{1-}}\" >> '{record}'\n");
            put(bin.join(name), stub)?;
        }
        for shell in ["bash", "sh", "zsh"] {
            put(bin.join(shell), format!("#!{BASH}\nexec {BASH} --noprofile --norc \"$@\"\n"))?;
        }
        // Every bash without a terminal reads this file. It records unknown programs, disables `kill`, and limits time and file sizes.
        let setup = format!(
            "ulimit -t 5\nulimit -f 64\nenable -n kill\n\
             command_not_found_handle() {{ builtin printf '%s\\n' \"$1 ${{2-}}\" >> '{record}'; return 127; }}\n"
        );
        put(root.path().join("setup"), setup)?;
        let permissions = permissions();
        let rules = ToolRules::read(&permissions, Some(&work)).map_err(io::Error::other)?;
        Ok(Self { root, rules })
    }

    /// Whether the rule allows this command.
    pub(crate) fn allows(&self, command: &str) -> bool {
        let input = json!({ "command": command });
        let call = ToolCall::new("Bash", &input);
        self.rules.verdict(PermissionMode::Ask, &call, &TextOnly) == Some(Verdict::Allow)
    }

    /// Runs a command, and checks that it ran only `git diff` and wrote no file. Returns whether it was run.
    pub(crate) fn check(&self, command: &str) -> Result<bool, String> {
        let paths = ["/dev/null", "/usr/local/bin/bash", "/usr/bin/bash", "/bin/bash"];
        let rest = paths.iter().fold(command.to_owned(), |text, path| text.replace(path, ""));
        if rest.contains('/') || command.contains('\0') {
            return Ok(false);
        }
        let runs = self.run(command).map_err(|error| format!("{command:?} did not run: {error}"))?;
        if let Some(other) = runs.lines().find(|line| *line != "git diff") {
            return Err(format!("{command:?} is allowed, and ran {other:?}"));
        }
        let left = fs::read_dir(self.work()).map_err(|error| error.to_string())?.flatten().next();
        match left {
            Some(file) => Err(format!("{command:?} is allowed, and made {:?}", file.file_name())),
            None => Ok(true),
        }
    }

    /// Returns the programs that a command runs, each with its first argument.
    fn run(&self, command: &str) -> io::Result<String> {
        let record = self.root.path().join("record");
        fs::write(&record, "")?;
        let mut child = Command::new(BASH)
            .args(["--noprofile", "--norc", "-c", command])
            .env_clear()
            .env("PATH", self.root.path().join("bin"))
            .env("HOME", self.work())
            .env("BASH_ENV", self.root.path().join("setup"))
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let Some(mut output) = child.stdout.take() else { return Err(io::Error::other("no output")) };
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || ended.send(output.read_to_end(&mut Vec::new())));
        let in_time = end.recv_timeout(LIMIT).is_ok();
        if !in_time {
            child.kill()?;
        }
        child.wait()?;
        if in_time { fs::read_to_string(record) } else { Err(io::Error::other("it did not exit in time")) }
    }

    fn work(&self) -> PathBuf {
        Path::new(self.root.path()).join("work")
    }
}

fn permissions() -> Permissions {
    let mut permissions = Permissions::default();
    permissions.allow = vec!["Bash(git diff:*)".to_owned()];
    permissions
}
