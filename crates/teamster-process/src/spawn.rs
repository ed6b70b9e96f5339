//! The description of a program to start, and the errors of a failed start.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

pub use crate::pipes::{PIPE_BYTES, Pipes};
use crate::{
    limits,
    supervise::{SupervisorError, wire::Start},
};

/// A program to start.
#[derive(Clone)]
pub struct Spawn {
    /// The path of the executable, as [`find_program`](crate::find_program) returns it. A relative
    /// path is relative to `cwd`. `PATH` is never searched.
    pub program: PathBuf,
    /// The arguments, without the program's name.
    pub args: Vec<OsString>,
    /// The whole environment; nothing is inherited. One variable `TEAMSTER_TREE_...` is added, by
    /// which descendants are found.
    pub env: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The program's stdin.
    pub stdin: Stdin,
    /// The stream that carries the program's output.
    pub output: Output,
}

/// The stdin of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`: an end of file at the first read.
    Null,
    /// A pipe, see [`Pipes::stdin`].
    Pipe,
}

/// The stream that carries a program's output. The other stream carries diagnostics.
///
/// Its pipe holds [`PIPE_BYTES`], if the user's pipe allowance permits it: see [`Pipes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    #[default]
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpawnError {
    /// The program does not exist.
    #[error("{program:?} does not exist")]
    NotFound {
        /// The program.
        program: PathBuf,
    },
    /// The program exists, but its interpreter or dynamic loader does not.
    #[error("{program:?} cannot run: {} is not installed", named(interpreter.as_deref()))]
    InterpreterNotFound {
        /// The program.
        program: PathBuf,
        /// The interpreter in its `#!` line; `None` for a binary, whose dynamic loader is missing.
        interpreter: Option<PathBuf>,
    },
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory {cwd:?}")]
    WorkingDirectory {
        /// The working directory.
        cwd: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The program may not be executed.
    #[error("{program:?} may not be executed; check its permissions and how its file system is mounted")]
    Permission {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a program for this system.
    #[error(
        "{program:?} is not a program for this machine: it was built for another one, or is a script without a `#!` line"
    )]
    Format {
        /// The program.
        program: PathBuf,
    },
    /// The helper process above the program could not be started.
    #[error("cannot start the process that supervises the program")]
    Keeper {
        /// The error of the system.
        source: io::Error,
    },
    /// Arguments and environment exceed the limit of the system.
    #[error(
        "arguments and environment of {program:?} are too large: {total} bytes, the largest {largest} (the limit \
         of one on Linux is 131071); pass long text on stdin or in a file"
    )]
    TooLong {
        /// The program.
        program: PathBuf,
        /// The size of the largest argument or variable, in bytes.
        largest: usize,
        /// The size of all of them, in bytes.
        total: usize,
    },
    /// The program's file is open for writing.
    #[error("{program:?} is being written, perhaps by an update; try again")]
    Busy {
        /// The program.
        program: PathBuf,
    },
    /// A limit on processes, descriptors or memory is reached.
    #[error("the system cannot start another process: {}", limits::reason(source))]
    Exhausted {
        /// The error of the system.
        source: io::Error,
    },
    /// An argument or a variable contains a NUL byte.
    #[error("an argument or variable for {program:?} has a NUL byte")]
    Nul {
        /// The program.
        program: PathBuf,
    },
    /// The lease of the host has expired ([`HostLease`](crate::HostLease)).
    #[error("the host did not renew the lease under which its programs run")]
    LeaseExpired,
    /// No supervisor could be started.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The caller stopped the start.
    #[error("the start was stopped")]
    Stopped,
    /// Another error.
    #[error("cannot start {program:?}")]
    Other {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

fn named(interpreter: Option<&Path>) -> String {
    interpreter.map_or_else(|| "its dynamic loader".into(), |path| path.display().to_string())
}

/// Returns the start request for the keeper.
pub(crate) fn start(spawn: &Spawn, marker: &str, directory: Option<&Path>) -> Result<Start, SpawnError> {
    let program = spawn.cwd.join(&spawn.program);
    let strings = spawn.args.iter().chain(spawn.env.iter().flat_map(|(name, value)| [name, value]));
    if strings.map(OsString::as_os_str).chain([program.as_os_str()]).any(has_nul) {
        return Err(SpawnError::Nul { program: spawn.program.clone() });
    }
    Ok(Start {
        program: program.into(),
        args: spawn.args.clone(),
        env: spawn.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        marker: marker.to_owned(),
        cwd: spawn.cwd.clone().into(),
        has_stdin: spawn.stdin == Stdin::Pipe,
        directory: directory.map(Into::into),
        lease_term: None,
    })
}

fn has_nul(string: &OsStr) -> bool {
    memchr::memchr(0, string.as_bytes()).is_some()
}

/// Finds the cause of a failed start: the error number alone does not show which file it concerns.
pub(crate) fn explain(spawn: &Spawn, source: io::Error) -> SpawnError {
    let program = spawn.program.clone();
    match Errno::from_io_error(&source) {
        Some(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => explain_path(spawn, source),
        Some(Errno::NOEXEC) => SpawnError::Format { program },
        Some(Errno::TOOBIG) => {
            let variables = spawn.env.iter().map(|(name, value)| name.len() + value.len() + 1);
            let sizes = || spawn.args.iter().map(|arg| arg.len()).chain(variables.clone());
            SpawnError::TooLong { program, largest: sizes().max().unwrap_or(0), total: sizes().sum() }
        }
        Some(Errno::TXTBSY) => SpawnError::Busy { program },
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => SpawnError::Exhausted { source },
        _ => SpawnError::Other { program, source },
    }
}

/// Finds the cause of a keeper that could not be started.
pub(crate) fn explain_keeper(source: io::Error) -> SpawnError {
    match Errno::from_io_error(&source) {
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => SpawnError::Exhausted { source },
        _ => SpawnError::Keeper { source },
    }
}

fn explain_path(spawn: &Spawn, source: io::Error) -> SpawnError {
    let program = spawn.program.clone();
    // Reading `.` in it needs the same permission as entering it.
    if let Err(source) = std::fs::metadata(spawn.cwd.join(".")) {
        return SpawnError::WorkingDirectory { cwd: spawn.cwd.clone(), source };
    }
    let file = spawn.cwd.join(&program);
    if source.kind() == io::ErrorKind::PermissionDenied {
        return SpawnError::Permission { program, source };
    }
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => SpawnError::NotFound { program },
        Err(source) => SpawnError::Other { program, source },
        Ok(_) if source.kind() == io::ErrorKind::NotFound => {
            SpawnError::InterpreterNotFound { program, interpreter: interpreter(&file) }
        }
        Ok(_) => SpawnError::Other { program, source },
    }
}

/// Returns the interpreter in the `#!` line of a script.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    std::fs::File::open(file).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii_start().split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

/// Arguments and values are omitted: they may be prompts and secrets.
impl fmt::Debug for Spawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .field("stdin", &self.stdin)
            .field("output", &self.output)
            .finish()
    }
}
