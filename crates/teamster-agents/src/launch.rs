//! How to start a CLI, as plain data. An agent creates a [`Launch`], and the driver carries it out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use teamster_types::event::Failure;

/// Everything the driver needs to start a CLI.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program: a path, or a name that is searched in PATH.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<Arg>,
    /// Changes to the environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<Arg>>,
    /// Variables that hold a JSON object, which the user may have set too. The fields of this object override those of the
    /// inherited one. It is text because the order of fields and the escapes in strings may matter to the CLI.
    pub json_env: BTreeMap<String, String>,
    /// The working directory; `None` for the directory of the host process.
    pub cwd: Option<PathBuf>,
    /// The content of standard input.
    pub stdin: Stdin,
    /// The stream that carries the protocol. The other one carries diagnostics.
    pub protocol_stream: ProtocolStream,
    /// The server that the CLI starts, if the protocol uses one.
    pub server: Option<LocalServer>,
    /// Files to write before the start, with mode 0600, in a directory of the run that is removed after it.
    pub files: Vec<PrivateFile>,
    /// A directory of the run that replaces the user's home, for CLIs that read their settings only from there.
    pub shadow_home: Option<ShadowHome>,
    /// Entries that are in the user's configuration files while the run lives.
    pub config_files: Vec<ConfigFile>,
    /// Files that must not exist in an untrusted working directory.
    pub forbidden_files: Option<ForbiddenFiles>,
    /// A failure that is certain before the start. Nothing is started, and the run ends with this failure.
    pub refused: Option<Failure>,
}

impl Launch {
    /// Creates a launch of this program without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            json_env: BTreeMap::new(),
            cwd: None,
            stdin: Stdin::Closed,
            protocol_stream: ProtocolStream::Stdout,
            server: None,
            files: Vec::new(),
            shadow_home: None,
            config_files: Vec::new(),
            forbidden_files: None,
            refused: None,
        }
    }

    /// Adds an argument.
    pub fn arg(&mut self, text: impl Into<String>) -> &mut Self {
        self.args.push(Arg::Text(text.into()));
        self
    }

    /// Adds `--flag=value` as one argument, so that a value cannot be taken for a flag.
    pub fn flag(&mut self, flag: &str, value: impl std::fmt::Display) -> &mut Self {
        self.arg(format!("{flag}={value}"))
    }

    /// Adds a private file and `--flag=PATH` with its path.
    pub fn flag_file(&mut self, flag: &str, name: &'static str, content: impl Into<Vec<u8>>) -> &mut Self {
        self.files.push(PrivateFile { name: name.into(), content: content.into() });
        self.args.push(Arg::PathOf { before: format!("{flag}="), file: name.into(), after: String::new() });
        self
    }

    /// Sets an environment variable.
    pub fn env(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.env.insert(name.into(), Some(Arg::Text(value.into())));
        self
    }
}

impl std::fmt::Debug for Launch {
    /// Shows neither arguments nor values, because they may contain secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("env", &self.env.keys().chain(self.json_env.keys()).collect::<Vec<_>>())
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// An argument or the value of a variable.
#[derive(Clone, PartialEq, Eq)]
pub enum Arg {
    /// A literal text.
    Text(String),
    /// A text that contains the path of a private file. The path is known once the directory of the run exists.
    PathOf {
        /// The text before the path, such as `--flag=`.
        before: String,
        /// The name of a file in [`Launch::files`] or of the [shadow home](Launch::shadow_home).
        file: Cow<'static, str>,
        /// The text after the path.
        after: String,
    },
}

impl std::fmt::Debug for Arg {
    /// Shows no text, because it may contain secrets.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(formatter, "Text({} bytes)", text.len()),
            Self::PathOf { file, .. } => write!(formatter, "PathOf({file})"),
        }
    }
}

/// The content of standard input.
#[derive(Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Closed,
    /// These bytes, then the end of input.
    Write(Vec<u8>),
    /// A pipe, which the protocol writes to and closes.
    Open,
}

impl std::fmt::Debug for Stdin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => formatter.write_str("Closed"),
            Self::Write(bytes) => write!(formatter, "Write({} bytes)", bytes.len()),
            Self::Open => formatter.write_str("Open"),
        }
    }
}

/// The stream that carries the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolStream {
    /// Standard output.
    Stdout,
    /// Standard error. Some CLIs write their result document there if they fail.
    Stderr,
}

/// The credentials for the server that the CLI starts on this machine. The driver creates a password for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The user name.
    pub user: &'static str,
    /// The environment variable that passes the password to the CLI.
    pub password_variable: &'static str,
}

/// A file that only the user and the CLI can read.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// A single path component, unique in the launch.
    pub name: Cow<'static, str>,
    /// The content.
    pub content: Vec<u8>,
}

impl std::fmt::Debug for PrivateFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PrivateFile({}, {} bytes)", self.name, self.content.len())
    }
}

/// Entries for a configuration file of the user.
///
/// They are added before the start, next to those of other runs. They are removed when no process of the run is left. Then
/// the file has its previous content.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The directory of the file.
    pub directory: ConfigDirectory,
    /// The possible names of the file. The first one that exists is used; if none exists, the first one is created.
    pub names: &'static [&'static str],
    /// The format of the file.
    pub format: ConfigFormat,
    /// The key of the object that holds the entries.
    pub key: &'static str,
    /// The entries by name. Since they are in the user's file, they name a variable or a private file instead of a secret.
    pub entries: BTreeMap<String, Value>,
    /// The other content of a file that is created for the entries: what the CLI would add to it at once.
    pub template: &'static str,
}

/// Files and folders of the working directory, and of the directories above it, that an agent uses despite all of its options.
///
/// In an untrusted working directory, no process and no turn starts while one of them exists. The user's home is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenFiles {
    /// Names of files and folders.
    pub names: &'static [&'static str],
    /// What the agent does with them, as a clause of a message.
    pub why: &'static str,
}

/// The directory of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigDirectory {
    /// This folder of the working directory.
    Project(&'static str),
    /// A folder of the directory that an environment variable names. Pairs of variable and folder; the first variable that is
    /// set counts.
    Home(&'static [(&'static str, &'static str)]),
}

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFormat {
    /// TOML.
    Toml,
    /// JSON with comments.
    Json,
}

impl std::fmt::Debug for ConfigFile {
    /// Shows no value.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ConfigFile")
            .field("directory", &self.directory)
            .field("names", &self.names)
            .field("entries", &self.entries.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A home directory of the run, next to the private files and removed with them.
///
/// It contains the CLI's folder. That folder links to everything in the user's folder, except the files in `entries`. So the
/// run has its own settings, and the user's files stay unchanged.
#[derive(Clone, PartialEq, Eq)]
pub struct ShadowHome {
    /// A single path component, unique among the private files. [`Arg::PathOf`] refers to the home by this name.
    pub name: &'static str,
    /// Variables that name the user's home. The first one that is set counts.
    pub homes: &'static [&'static str],
    /// The CLI's folder in a home.
    pub folder: &'static str,
    /// Folders in it that outlive the run. They are created in the user's folder if they are missing.
    pub kept: &'static [&'static str],
    /// The files that are not links, by their paths in the folder.
    pub entries: Vec<(&'static str, ShadowEntry)>,
}

/// A file of a [`ShadowHome`] that is not a link.
#[derive(Clone, PartialEq, Eq)]
pub enum ShadowEntry {
    /// A copy of the user's file at the start, if it exists.
    Copy,
    /// This text instead of the user's file.
    Text(String),
    /// The user's file, followed by this text.
    Append(String),
    /// The user's file, a JSON document (comments allowed), merged with these values.
    Merge(JsonMerge),
}

/// Values to merge into a JSON document of the user.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonMerge {
    /// Values that override the user's. Objects are merged key by key; all other values are replaced.
    pub overrides: Value,
    /// Names of objects whose entries are replaced as a whole if both documents have them.
    pub replaced: &'static [&'static str],
    /// Values that the user's override. The first one whose condition holds is used.
    pub defaults: Vec<ConditionalDefaults>,
}

/// Default values that apply if a variable is set.
#[derive(Clone, PartialEq, Eq)]
pub struct ConditionalDefaults {
    /// The variable.
    pub variable: &'static str,
    /// Its required value; `None` for any value that is not empty.
    pub value: Option<&'static str>,
    /// The values.
    pub values: Value,
}

impl std::fmt::Debug for ConditionalDefaults {
    /// Shows no values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ConditionalDefaults({})", self.variable)
    }
}

impl std::fmt::Debug for ShadowHome {
    /// Shows no content.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let entries = self.entries.iter().map(|(path, _)| *path).collect::<Vec<_>>();
        formatter
            .debug_struct("ShadowHome")
            .field("folder", &self.folder)
            .field("entries", &entries)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ShadowEntry {
    /// Shows no content.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Copy => formatter.write_str("Copy"),
            Self::Text(text) => write!(formatter, "Text({} bytes)", text.len()),
            Self::Append(text) => write!(formatter, "Append({} bytes)", text.len()),
            Self::Merge(values) => values.fmt(formatter),
        }
    }
}

impl std::fmt::Debug for JsonMerge {
    /// Shows no values.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<_> = self.overrides.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        write!(formatter, "JsonMerge({keys:?})")
    }
}
