//! Reads a configuration file. A problem in one place does not hide the other places.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use teamster::Registry;
use teamster::agent::acp::Acp;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Invalid, suggestion};
use super::{agents, projects, syntax};
use crate::plan::Inputs;
use crate::settings::{Assignment, Kind, Origin, Scope, Setting, check, permits};

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    User,
    /// It has the table `defaults` only, with the settings that restrict the agent.
    Project,
}

/// The contents of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    pub(crate) defaults: Vec<Assignment>,
    pub(crate) profiles: BTreeMap<String, Vec<Assignment>>,
    pub(crate) agents: Vec<Acp>,
    /// The rules that were saved in chats, by directory and agent.
    pub(crate) projects: projects::SavedRules,
    /// The table `serve`.
    #[cfg(feature = "serve")]
    pub(crate) serve: super::serve::ServeSection,
    /// What is wrong, in the order of the lines.
    pub(crate) problems: Vec<ConfigError>,
}

/// A table of the file.
type Table<'i> = DeTable<'i>;

/// The keys at the top of the user's file.
pub(super) const TABLES: [&str; 5] = ["agents", "defaults", "profiles", "projects", "serve"];

/// Those of them that contain tables with names: `[profiles.NAME]`.
const NAMED: [&str; 2] = ["agents", "profiles"];

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    owner: Owner,
    settings: Option<&'a [Setting]>,
    /// The user's home, which `~/` stands for.
    home: Option<PathBuf>,
    problems: Vec<Invalid>,
}

/// Parses a file; without `settings` only its agents.
pub(crate) fn parse(
    path: &Path,
    bytes: &[u8],
    owner: Owner,
    settings: Option<&[Setting]>,
    inputs: &impl Inputs,
) -> ConfigFile {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let invalid = |at: usize, problem: String| {
        let line = bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        ConfigError::Invalid { file: path.to_owned(), line, problem }
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let problems = vec![invalid(error.valid_up_to(), "invalid UTF-8".to_owned())];
            return ConfigFile { problems, ..ConfigFile::default() };
        }
    };
    let home = inputs.variable("HOME").map(PathBuf::from);
    let mut reader = Reader { path, text, owner, settings, home, problems: Vec::new() };
    let mut file = reader.document();
    reader.problems.sort_by_key(|problem| problem.at);
    file.problems = reader.problems.into_iter().map(|Invalid { at, problem }| invalid(at, problem)).collect();
    file
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> ConfigFile {
        let (document, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let span = error.span().unwrap_or_default();
            let problem = syntax::problem(self.text, span.clone(), error.message());
            self.problems.extend(problem.map(|problem| Invalid { at: span.start, problem }));
        }
        let mut file = ConfigFile::default();
        for (key, value) in document.into_inner() {
            let name = key.get_ref().as_ref().to_owned();
            match (name.as_str(), self.owner) {
                ("defaults", _) | ("profiles", Owner::User) if self.settings.is_none() => {}
                ("defaults", _) => file.defaults = self.settings_of(value, "defaults", None),
                ("profiles", Owner::User) => file.profiles = self.profiles(value),
                ("agents", Owner::User) => file.agents = self.agents(value),
                ("projects", Owner::User) => file.projects = projects::read(&value, &mut self.problems),
                #[cfg(feature = "serve")]
                ("serve", Owner::User) if self.settings.is_some() => {
                    let home = self.home.clone();
                    file.serve = super::serve::read(value, self.path, self.text, home.as_deref(), &mut self.problems);
                }
                // A command without the gateway does not use it.
                ("serve", Owner::User) => {}
                (_, owner) => self.unknown_table(&key, value.get_ref(), owner),
            }
        }
        file
    }

    fn settings(&self) -> &'a [Setting] {
        self.settings.unwrap_or_default()
    }

    fn invalid(&mut self, at: usize, problem: impl Into<String>) {
        self.problems.push(Invalid { at, problem: problem.into() });
    }

    fn unknown_table(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, value: &DeValue<'_>, owner: Owner) {
        let name = key.get_ref();
        let inner = match value {
            DeValue::Table(table) => table.iter().find(|(_, value)| matches!(value.get_ref(), DeValue::Table(_))),
            _ => None,
        };
        let plural = format!("{name}s");
        let problem = match owner {
            Owner::Project if TABLES.contains(&name.as_ref()) => {
                format!("a project's file cannot have the table {name}: only defaults")
            }
            // `[profile.review]`
            Owner::User if NAMED.contains(&plural.as_str()) && matches!(value, DeValue::Table(_)) => match inner {
                Some((inner, _)) => format!("unknown table [{name}.{0}]: write [{plural}.{0}]", inner.get_ref()),
                None => format!("unknown table [{name}]: write [{plural}.NAME]"),
            },
            _ if self.settings().iter().any(|setting| setting.key == name.as_ref()) => {
                format!("the setting {name} must be in the table [defaults] or [profiles.NAME]")
            }
            _ => format!("unknown table {name:?}{}", suggestion(name, TABLES)),
        };
        self.invalid(key.span().start, problem);
    }

    /// Returns the entries of a table; a value that is no table is a problem.
    fn table<'i>(&mut self, value: Spanned<DeValue<'i>>, name: &str) -> Table<'i> {
        let at = value.span().start;
        let DeValue::Table(table) = value.into_inner() else {
            self.invalid(at, format!("{name} must be a table, as in [{name}]"));
            return Table::new();
        };
        table
    }

    fn profiles(&mut self, value: Spanned<DeValue<'_>>) -> BTreeMap<String, Vec<Assignment>> {
        let mut profiles = BTreeMap::new();
        for (key, value) in self.table(value, "profiles") {
            let name = key.get_ref().as_ref().to_owned();
            let assignments = self.settings_of(value, &format!("profiles.{name}"), Some(&name));
            profiles.insert(name, assignments);
        }
        profiles
    }

    fn agents(&mut self, value: Spanned<DeValue<'_>>) -> Vec<Acp> {
        let registry = Registry::default();
        let mut found = Vec::new();
        for (name, entry) in self.table(value, "agents") {
            match agents::read(&name, entry, &registry) {
                Ok(agent) => found.push(agent),
                Err(invalid) => self.problems.push(invalid),
            }
        }
        found
    }

    fn settings_of(&mut self, value: Spanned<DeValue<'_>>, table: &str, profile: Option<&str>) -> Vec<Assignment> {
        let mut found = Vec::new();
        for (key, value) in self.table(value, table) {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let line = self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
            let setting = self.settings().iter().find(|setting| setting.key == name);
            let assigned = match setting {
                None => {
                    let known = self.settings().iter().filter(|setting| self.can_set(setting, profile).is_ok());
                    Err(format!("unknown setting {name:?}{}", suggestion(name, known.map(|setting| &*setting.key))))
                }
                Some(setting) => self
                    .can_set(setting, profile)
                    .and_then(|()| self.values(setting, value.get_ref()))
                    .and_then(|values| check(setting, &values).map(|()| values))
                    .and_then(|values| match self.owner {
                        Owner::Project => permits(setting, &values).map(|()| values),
                        Owner::User => Ok(values),
                    })
                    .map_err(|problem| format!("{name}: {problem}"))
                    .map(|values| {
                        let profile = profile.map(str::to_owned);
                        let origin = Origin::File { file: self.path.to_owned(), line, profile };
                        Assignment { id: setting.id.clone(), values, origin }
                    }),
            };
            match assigned {
                Ok(assignment) => found.push(assignment),
                Err(problem) => self.invalid(at, problem),
            }
        }
        found
    }

    fn can_set(&self, setting: &Setting, profile: Option<&str>) -> Result<(), String> {
        match setting.scope {
            Scope::OneCall => Err(format!("it belongs to one call: use --{}", setting.key.replace('_', "-"))),
            Scope::NotInProfiles if profile.is_some() || self.owner == Owner::Project => {
                Err("it is allowed in [defaults] of the user's file only".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the values as the option takes them. Paths are resolved against the directory of the file.
    fn values(&self, setting: &Setting, value: &DeValue<'_>) -> Result<Vec<String>, String> {
        match (setting.kind, value) {
            (Kind::Switch, DeValue::Boolean(on)) => Ok(vec![on.to_string()]),
            (Kind::Switch, _) => Err("true or false is needed".to_owned()),
            (Kind::List, DeValue::Array(items)) => items.iter().map(|item| self.one(setting, item.get_ref())).collect(),
            (Kind::List, DeValue::Table(pairs)) if setting.takes_pairs() => pairs
                .iter()
                .map(|(name, value)| Ok(format!("{}={}", name.get_ref(), self.one(setting, value.get_ref())?)))
                .collect(),
            (_, DeValue::Array(_)) => Err("a list is not allowed".to_owned()),
            (_, value) => Ok(vec![self.one(setting, value)?]),
        }
    }

    fn one(&self, setting: &Setting, value: &DeValue<'_>) -> Result<String, String> {
        match value {
            DeValue::String(text) if setting.takes_path(text) => Ok(self.absolute(text)),
            DeValue::String(text) => Ok(text.as_ref().to_owned()),
            DeValue::Integer(number) if setting.takes_number() => Ok(number.to_string()),
            DeValue::Float(number) if setting.takes_number() => Ok(number.as_str().to_owned()),
            DeValue::Integer(number) => Err(format!("a text is needed: {} = \"{number}\"", setting.key)),
            // A number that is no number is reported as such.
            DeValue::Float(number) if !number.as_str().is_empty() => {
                Err(format!("a text is needed: {} = \"{}\"", setting.key, number.as_str()))
            }
            DeValue::Float(_) => Ok(String::new()),
            table @ DeValue::Table(_) if setting.takes_json() => Ok(json(table).to_string()),
            _ => Err("a text is needed".to_owned()),
        }
    }

    fn absolute(&self, path: &str) -> String {
        let joined = match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.path.parent().unwrap_or(Path::new("/")).join(path),
        };
        joined.to_string_lossy().into_owned()
    }
}

/// Returns the JSON of a TOML value.
fn json(value: &DeValue<'_>) -> serde_json::Value {
    match value {
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Integer(number) => serde_json::from_str(number.as_str()).unwrap_or_else(|_| number.as_str().into()),
        DeValue::Float(number) => serde_json::from_str(number.as_str()).unwrap_or_else(|_| number.as_str().into()),
        DeValue::Boolean(on) => (*on).into(),
        DeValue::Datetime(time) => time.to_string().into(),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let entries = table.iter().map(|(name, value)| (name.get_ref().as_ref().to_owned(), json(value.get_ref())));
            serde_json::Value::Object(entries.collect())
        }
    }
}
