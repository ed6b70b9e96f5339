//! How a CLI is to be started: plain data that a protocol makes and the driver carries out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

use teamster_types::event::Failure;

/// Everything the driver needs to start a CLI.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program: a name that is looked up in PATH, or a path.
    pub program: PathBuf,
    /// Its arguments, without the program's own name.
    pub args: Vec<Arg>,
    /// Changes to the environment; `None` removes a variable.
    pub env: BTreeMap<String, Option<Arg>>,
    /// Variables that hold a JSON object which the user may have set too: this one's fields are laid over those of the
    /// inherited one. Text, since the order of fields and the way strings are written may count.
    pub json_env: BTreeMap<String, String>,
    /// The working directory; the host's own if left out.
    pub cwd: Option<PathBuf>,
    /// What goes to standard input.
    pub stdin: Stdin,
    /// Which stream carries the protocol; the other one is diagnostics.
    pub protocol_stream: ProtocolStream,
    /// The server that the CLI starts, where the protocol is spoken over one.
    pub server: Option<LocalServer>,
    /// Files to write before the start, with mode 0600 in a directory of the run's own that is gone after it.
    pub files: Vec<PrivateFile>,
    /// A directory of the run's own that stands in for the user's home, for a CLI that takes its settings only from there.
    pub shadow_home: Option<ShadowHome>,
    /// Entries that stand in files of the user's while the run lives.
    pub config_files: Vec<ConfigFile>,
    /// What must not be there, where the working directory is a stranger's.
    pub forbidden_files: Option<ForbiddenFiles>,
    /// Why the agent could only fail: nothing is started, and the run ends with this.
    pub refused: Option<Failure>,
}

impl Launch {
    /// A launch of this program without arguments.
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

    /// Adds `--flag=value`: one argument, so that no value can become a flag of its own.
    pub fn flag(&mut self, flag: &str, value: impl std::fmt::Display) -> &mut Self {
        self.arg(format!("{flag}={value}"))
    }

    /// Adds a private file and `--flag=PATH` with its path.
    pub fn flag_file(&mut self, flag: &str, name: &'static str, content: impl Into<Vec<u8>>) -> &mut Self {
        self.files.push(PrivateFile { name: name.into(), content: content.into() });
        self.args.push(Arg::PathOf { before: format!("{flag}="), file: name.into(), after: String::new() });
        self
    }

    /// Sets a variable.
    pub fn env(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.env.insert(name.into(), Some(Arg::Text(value.into())));
        self
    }
}

impl std::fmt::Debug for Launch {
    /// Shows neither arguments nor values: either may hold what is nobody's business.
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

/// An argument or a variable's value.
#[derive(Clone, PartialEq, Eq)]
pub enum Arg {
    /// As it is.
    Text(String),
    /// The path of a private file amid text, known only when the run has its directory.
    PathOf {
        /// What stands before the path, such as `--flag=`.
        before: String,
        /// The file's name in [`Launch::files`], or that of the [stand-in](Launch::shadow_home).
        file: Cow<'static, str>,
        /// What stands behind it.
        after: String,
    },
}

impl std::fmt::Debug for Arg {
    /// Shows no text: it may be what is nobody's business.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(formatter, "Text({} bytes)", text.len()),
            Self::PathOf { file, .. } => write!(formatter, "PathOf({file})"),
        }
    }
}

/// What goes to standard input.
#[derive(Clone, PartialEq, Eq)]
pub enum Stdin {
    /// Nothing: `/dev/null`.
    Closed,
    /// These bytes, then the end.
    Write(Vec<u8>),
    /// A pipe that the protocol writes to and closes.
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
    /// Standard error: some CLIs write their result document there when they fail.
    Stderr,
}

/// How a server that the CLI starts on this machine knows us: by a password that is made for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// The user's name there.
    pub user: &'static str,
    /// The variable by which the CLI gets the password.
    pub password_variable: &'static str,
}

/// A file for the CLI's eyes only.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateFile {
    /// A single path component, unique in the launch.
    pub name: Cow<'static, str>,
    /// What stands in it.
    pub content: Vec<u8>,
}

impl std::fmt::Debug for PrivateFile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PrivateFile({}, {} bytes)", self.name, self.content.len())
    }
}

/// Entries for a file of the user's configuration. They are put in before the start, beside those of other runs, and taken
/// out again when nothing of the run is left; the file is then what it was.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where its directory is.
    pub directory: ConfigDirectory,
    /// Its name in there. Of several, the first one that is there counts; where none is, the first one is made.
    pub names: &'static [&'static str],
    /// Its language.
    pub format: ConfigFormat,
    /// The key of the object that holds the entries.
    pub key: &'static str,
    /// The entries by name. They stand in the user's file: a secret goes by the name of a variable or of a file's one.
    pub entries: BTreeMap<String, Value>,
    /// What a file that is made for them holds beside them: what the CLI would add to it at once.
    pub template: &'static str,
}

/// What an agent uses of its working directory, and of those above it, whatever it is told. Where a stranger may have made
/// it, nothing starts while anything of these names is there, and no turn begins. The user's home is no stranger's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenFiles {
    /// Names of files and folders.
    pub names: &'static [&'static str],
    /// What the agent does with them, as a clause of a message.
    pub why: &'static str,
}

/// Where a configuration file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigDirectory {
    /// In this folder of the working directory.
    Project(&'static str),
    /// In a folder of the directory that a variable of the process names; of several, the first one that is set counts.
    Home(&'static [(&'static str, &'static str)]),
}

/// The language of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFormat {
    /// TOML.
    Toml,
    /// JSON, in which comments are allowed.
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

/// A home directory of the run's own, made beside the private files and gone with them.
///
/// In it is the CLI's folder, and in that a link to everything that the user's folder holds, but for what `entries` name:
/// so the run has settings of its own, and the user's files stay as they are.
#[derive(Clone, PartialEq, Eq)]
pub struct ShadowHome {
    /// A single path component, unique among the private files. [`Arg::PathOf`] gives the home by this name.
    pub name: &'static str,
    /// Variables that name the user's home; the first one that is set counts.
    pub homes: &'static [&'static str],
    /// The CLI's folder in a home.
    pub folder: &'static str,
    /// Folders in it that outlive the run: they are made in the user's, where they are missing.
    pub kept: &'static [&'static str],
    /// What is not linked, by its path in the folder.
    pub entries: Vec<(&'static str, ShadowEntry)>,
}

/// A file that a [`ShadowHome`] has of its own.
#[derive(Clone, PartialEq, Eq)]
pub enum ShadowEntry {
    /// The user's file as it is at the start, if there is one.
    Copy,
    /// This text, whatever the user's file holds.
    Text(String),
    /// The user's file, and then this text.
    Append(String),
    /// The user's file, a JSON document (comments allowed), with these values laid over its own.
    Merge(JsonMerge),
}

/// Values for a JSON document of the user's.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonMerge {
    /// They win over the user's. Objects are merged, key by key; everything else is replaced.
    pub overrides: Value,
    /// Objects of the document, by name, whose entries are replaced as a whole where both have them.
    pub replaced: &'static [&'static str],
    /// The user's win over these, of which the first one holds whose variable is set.
    pub defaults: Vec<ConditionalDefaults>,
}

/// Values that hold where a variable is set.
#[derive(Clone, PartialEq, Eq)]
pub struct ConditionalDefaults {
    /// The variable.
    pub variable: &'static str,
    /// What it must be; anything but nothing if left out.
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
