//! Reads the recorded runs of `tests/captures`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A recorded run.
#[derive(Clone)]
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) argv: Vec<String>,
    pub(crate) exit: Exit,
    pub(crate) note: Option<String>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

#[derive(Clone)]
pub(crate) enum Exit {
    Code(i32),
    Signal(&'static str),
    /// The process could not be started.
    NotStarted(String),
}

#[derive(Deserialize)]
struct RunFile {
    argv: Vec<String>,
    exit: Option<ExitFile>,
    spawn_error: Option<String>,
    note: Option<String>,
}

#[derive(Deserialize)]
struct ExitFile {
    code: Option<i32>,
    signal: Option<i32>,
}

/// Returns the folder of an agent's captures.
pub(crate) fn folder(agent: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures").join(agent)
}

/// Returns the recorded runs of an agent, sorted by name.
pub(crate) fn all(agent: &str) -> Vec<Capture> {
    let mut captures: Vec<_> = fs::read_dir(folder(agent)).unwrap().map(|entry| read(&entry.unwrap().path())).collect();
    captures.sort_by(|a, b| a.name.cmp(&b.name));
    captures
}

fn read(folder: &Path) -> Capture {
    let run: RunFile = serde_json::from_slice(&fs::read(folder.join("run.json")).unwrap()).unwrap();
    let exit = match (run.exit, run.spawn_error) {
        (_, Some(error)) => Exit::NotStarted(error),
        (Some(ExitFile { code: Some(code), .. }), _) => Exit::Code(code),
        (Some(ExitFile { signal: Some(signal), .. }), _) => Exit::Signal(match signal {
            1 => "SIGHUP",
            2 => "SIGINT",
            9 => "SIGKILL",
            15 => "SIGTERM",
            other => panic!("{}: signal {other}", folder.display()),
        }),
        _ => panic!("{}: unknown exit", folder.display()),
    };
    Capture {
        name: folder.file_name().unwrap().to_str().unwrap().to_owned(),
        argv: run.argv,
        exit,
        note: run.note,
        // Missing if it was too large.
        stdout: fs::read(folder.join("stdout.ndjson")).unwrap_or_default(),
        stderr: fs::read(folder.join("stderr.txt"))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default(),
    }
}

impl Capture {
    /// Returns the lines of standard output as the driver does, including a last line without a line end.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let body = self.stdout.strip_suffix(b"\n").unwrap_or(&self.stdout);
        let lines = body.split(|byte| *byte == b'\n');
        lines.filter(|_| !self.stdout.is_empty()).map(|line| line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Whether the command line contains one of these flags.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.argv.iter().any(|argument| names.contains(&argument.as_str()))
    }

    /// Returns the value of a flag: the next argument, or the text after `=`.
    pub(crate) fn value(&self, names: &[&str]) -> Option<&str> {
        let joined = |argument: &'_ String, name: &str| argument.starts_with(&format!("{name}="));
        let at = self
            .argv
            .iter()
            .position(|argument| names.iter().any(|name| argument == name || joined(argument, name)))?;
        match self.argv[at].split_once('=') {
            Some((_, value)) => Some(value),
            None => self.argv.get(at + 1).map(String::as_str),
        }
    }
}
