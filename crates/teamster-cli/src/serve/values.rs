//! The values of the table `[serve]` in effect, each with its origin.
//!
//! The precedence is: built-in < `compat` < `[defaults]` < `[serve]` < environment < command line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};
use teamster::Registry;
use teamster::backend::variables::DISCORD_TOKEN;
use teamster_gateway::config::file::{CompatName, ServeTable};

use super::args::ServeArgs;
use crate::config::serve::ServeSection;
use crate::config::{self, ConfigError};
use crate::plan::Inputs;
use crate::printable::{Printable, printable};
use crate::settings::{self, Given, Resolution, Setting};
use crate::vendor;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    BuiltIn,
    /// The key `compat`.
    Compat,
    /// A file, a variable or the machine.
    Setting(settings::Origin),
    /// The option of this name.
    Option(&'static str),
}

impl Source {
    /// Returns the origin as people write it.
    pub(crate) fn text(&self) -> Printable {
        match self {
            Self::BuiltIn => "built-in".into(),
            Self::Compat => "compat".into(),
            Self::Setting(origin) => origin.text(),
            Self::Option(name) => printable!("--{}", *name),
        }
    }
}

/// The values in effect.
#[derive(Debug)]
pub(crate) struct ServeValues {
    /// The values by the path of the key, such as `limits.max_running`.
    pub(crate) values: BTreeMap<String, (Value, Source)>,
    /// What is wrong with the files and variables.
    pub(crate) problems: Vec<ConfigError>,
    /// Notes for the operator.
    pub(crate) notes: Vec<Printable>,
    /// The agents.
    pub(crate) registry: Registry,
    /// The table of the file.
    pub(crate) section: ServeSection,
}

/// Keys of `[serve]` whose values fall back to settings of `[defaults]`, and are set by the settings' variables. The second
/// name is that of the setting.
const SHARED: [(&str, &str); 9] = [
    ("agent", "agent"),
    ("cli_path", "cli_path"),
    ("model", "model"),
    ("permission", "permission"),
    ("allow_tools", "allow_tool"),
    ("keep_keys", "keep_key"),
    ("directory", "cwd"),
    ("max_turns", "max_turns"),
    ("deadline", "deadline"),
];

/// Keys that have an option and a variable of their own.
const OWN: [(&str, &str); 5] = [
    ("compat", "TEAMSTER_COMPAT"),
    ("listen", "TEAMSTER_LISTEN"),
    ("data_dir", "TEAMSTER_DATA_DIR"),
    ("role", "TEAMSTER_ROLE"),
    ("store", "TEAMSTER_STORE"),
];

/// The arrays of tables, which may contain secrets.
pub(crate) const FILE_ONLY: [&str; 3] = ["rules", "hooks", "webhooks"];

/// The values of one source, by key.
type Layer = Vec<(String, Value, Source)>;

/// Determines the values in effect. `default_agent` selects the agent if nothing names one.
pub(crate) fn resolve(
    args: &ServeArgs,
    definition: &clap::Command,
    inputs: &mut impl Inputs,
    default_agent: fn() -> &'static str,
) -> ServeValues {
    let settings = settings::settings(definition);
    let named = args.config.clone().or_else(|| inputs.variable_os("TEAMSTER_CONFIG").map(PathBuf::from));
    let named = named.filter(|path| !path.as_os_str().is_empty());
    // The file of a project is for its runs. A gateway has many directories.
    let given = Given { config: named.clone(), is_untrusted: Some(true), ..Given::default() };
    let resolution = settings::resolve(&settings, &settings::conflicts(definition, "run"), &given, inputs);
    let Resolution { values: shared, problems, mut notes, .. } = resolution;
    let (registry, _) = config::registry(named.as_deref(), inputs);
    let section = config::read_user_file(named.as_deref(), Some(&settings), inputs).serve;

    let mut defaults = Layer::new();
    let mut variables = Layer::new();
    for (key, id) in SHARED {
        let Some(assignment) = shared.get(id) else { continue };
        let setting = settings.iter().find(|setting| setting.id == id);
        let Some(value) = setting.and_then(|setting| value_of(setting, &assignment.values)) else { continue };
        let layer = match assignment.origin {
            settings::Origin::Variable(_) => &mut variables,
            settings::Origin::File { .. } | settings::Origin::Machine => &mut defaults,
        };
        layer.push((key.to_owned(), value, Source::Setting(assignment.origin.clone())));
    }
    let own_variables = OWN.into_iter().filter_map(|(key, name)| {
        let value = inputs.variable(name).filter(|value| !value.is_empty())?;
        Some((key.to_owned(), Value::from(value), Source::Setting(settings::Origin::Variable(name.to_owned()))))
    });
    variables.extend(own_variables);
    let compat = compat(&section, &variables);
    if let Some(compat) = compat {
        notes.push(compat_note(compat));
    }
    let built_in =
        flat(&ServeTable::built_in()).into_iter().map(|(key, value)| (key, value, Source::BuiltIn)).collect();
    if inputs.variable_os(DISCORD_TOKEN).is_some_and(|token| !token.is_empty()) {
        variables.extend(discord_token(&section, compat, &mut notes));
    }
    let preset = compat.map(|compat| flat(&ServeTable::preset(compat))).unwrap_or_default();
    let preset = preset.into_iter().map(|(key, value)| (key, value, Source::Compat)).collect();
    let layers = [built_in, preset, defaults, file_layer(&section), variables, options(args)];
    let mut values = merge(layers, default_agent);
    choose_agent(&mut values, &mut notes);
    ServeValues { values, problems, notes, registry, section }
}

/// Returns the gateway whose defaults are used. The variable overrides the file.
fn compat(section: &ServeSection, variables: &Layer) -> Option<CompatName> {
    match variables.iter().find(|(key, ..)| key == "compat") {
        // An unknown name is reported with the other values.
        Some((_, value, _)) => serde_json::from_value(value.clone()).ok(),
        None => section.table.compat,
    }
}

/// Returns what the operator must know about the defaults of another gateway.
fn compat_note(compat: CompatName) -> Printable {
    match compat {
        CompatName::Aetheel => {
            "compat = \"aetheel\": unless the configuration says otherwise, agents run every command \
                                without asking, use the configuration of their directory, and obey every member of the \
                                Discord servers of the bot"
                .into()
        }
    }
}

/// Returns the value with which the variable of existing deployments starts the Discord channel, unless the file names a token.
fn discord_token(
    section: &ServeSection,
    compat: Option<CompatName>,
    notes: &mut Vec<Printable>,
) -> Option<(String, Value, Source)> {
    if !cfg!(feature = "discord") {
        notes.push("DISCORD_TOKEN is set, but this build has no Discord channel: it is not used".into());
        return None;
    }
    let table = section.table.discord.clone().unwrap_or_default();
    if table.token_file.is_some() || table.token_env.is_some() {
        return None;
    }
    if section.table.rules.is_empty() && compat.is_none() {
        notes.push(
            "DISCORD_TOKEN starts a Discord bot, but no rule admits anyone: add [[serve.rules]] (docs/discord.md)"
                .into(),
        );
    }
    let source = Source::Setting(settings::Origin::Variable(DISCORD_TOKEN.to_owned()));
    Some(("discord.token_env".to_owned(), DISCORD_TOKEN.into(), source))
}

/// Replaces the value `auto` of the agent, and notes which agent was chosen on this machine.
fn choose_agent(values: &mut BTreeMap<String, (Value, Source)>, notes: &mut Vec<Printable>) {
    let Some((agent, source)) = values.get_mut("agent") else { return };
    if agent.as_str().is_some_and(vendor::is_auto) {
        let chosen = vendor::auto_agent();
        (*agent, *source) = (chosen.into(), Source::Setting(settings::Origin::Machine));
        notes.push(vendor::note_of_auto(chosen));
    } else if *source == Source::Setting(settings::Origin::Machine) {
        let chosen = vendor::AGENTS.into_iter().find(|name| agent.as_str() == Some(name));
        notes.extend(chosen.and_then(vendor::note_of_default));
    }
}

/// Returns the value of a setting as `[serve]` has it.
fn value_of(setting: &Setting, values: &[String]) -> Option<Value> {
    match setting.id.as_str() {
        "allow_tool" | "keep_key" => Some(values.into()),
        "max_turns" => values.first()?.parse::<u32>().ok().map(Value::from),
        _ => values.first().map(|value| value.as_str().into()),
    }
}

fn file_layer(section: &ServeSection) -> Layer {
    let origin = |key: &str| settings::Origin::File {
        file: section.file.clone(),
        line: section.line(key).unwrap_or(1),
        profile: None,
    };
    let written = flat(&section.table).into_iter().filter(|(key, _)| section.lines.contains_key(key));
    written.map(|(key, value)| (key.clone(), value, Source::Setting(origin(&key)))).collect()
}

fn options(args: &ServeArgs) -> Layer {
    let text = |path: &PathBuf| Value::from(path.to_string_lossy());
    let given = [
        ("listen", "listen", args.listen.clone().map(Value::from)),
        ("data_dir", "data-dir", args.data_dir.as_ref().map(text)),
        ("role", "role", args.role.map(|role| role.name().into())),
        ("store", "store", args.store.clone().map(Value::from)),
        ("behind_proxy", "behind-proxy", args.behind_proxy.then_some(true.into())),
    ];
    let given = given.into_iter().filter_map(|(key, option, value)| Some((key, option, value?)));
    given.map(|(key, option, value)| (key.to_owned(), value, Source::Option(option))).collect()
}

/// Combines the layers, the lowest first. The program and the model of a layer belong to its agent: a higher layer with another
/// agent drops them.
fn merge(layers: [Layer; 6], default_agent: fn() -> &'static str) -> BTreeMap<String, (Value, Source)> {
    let mut values: BTreeMap<String, (Value, Source)> = BTreeMap::new();
    for layer in layers {
        let agent = layer.iter().find(|(key, ..)| key == "agent").map(|(_, value, _)| value.clone());
        let known = values.get("agent").map(|(value, _)| value.clone());
        if agent.is_some() && known.is_some() && agent != known {
            values.remove("cli_path");
            values.remove("model");
        }
        values.extend(layer.into_iter().map(|(key, value, source)| (key, (value, source))));
    }
    if !values.contains_key("agent") {
        // A program without an agent's name is that of the default agent.
        let agent = if values.contains_key("cli_path") { Registry::DEFAULT } else { default_agent() };
        values.insert("agent".to_owned(), (agent.into(), Source::Setting(settings::Origin::Machine)));
    }
    values
}

/// Returns the single values and lists of a table, by the path of the key. Rules, hooks and webhooks are only in the file.
fn flat(table: &ServeTable) -> Vec<(String, Value)> {
    fn add(prefix: &str, object: Map<String, Value>, found: &mut Vec<(String, Value)>) {
        for (name, value) in object {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match value {
                Value::Object(object) => add(&key, object, found),
                value => found.push((key, value)),
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(Value::Object(mut object)) = serde_json::to_value(table) {
        for list in FILE_ONLY {
            object.remove(list);
        }
        add("", object, &mut found);
    }
    found
}

/// Inserts a value at the path of its key.
fn insert(object: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => _ = object.insert(key.to_owned(), value),
        Some((table, rest)) => {
            if let Value::Object(inner) = object.entry(table).or_insert_with(|| Value::Object(Map::new())) {
                insert(inner, rest, value);
            }
        }
    }
}

impl ServeValues {
    /// Returns the table of the values in effect.
    ///
    /// # Errors
    /// A value of a variable or an option is not valid.
    pub(crate) fn table(&self) -> Result<ServeTable, ConfigError> {
        let mut object = Map::new();
        for (key, (value, _)) in &self.values {
            insert(&mut object, key, value.clone());
        }
        let table = serde_json::from_value::<ServeTable>(Value::Object(object));
        let table = table.map_err(|error| ConfigError::Serve(error.to_string()))?;
        let ServeTable { mut rules, hooks, webhooks, .. } = self.section.table.clone();
        if let Some(compat) = table.compat.filter(|_| rules.is_empty() && table.discord.is_some()) {
            rules = ServeTable::preset_rules(compat);
        }
        Ok(ServeTable { rules, hooks, webhooks, ..table })
    }

    /// Returns the error of a problem with a key, which names the origin of its value.
    pub(crate) fn error(&self, key: &str, problem: &str) -> ConfigError {
        let parents = std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(parent, _)| parent));
        let source = parents.into_iter().find_map(|key| self.values.get(key)).map(|(_, source)| source);
        match source {
            Some(Source::Option(name)) => ConfigError::Serve(format!("--{name}: {problem}")),
            Some(Source::Setting(settings::Origin::Variable(name))) => {
                ConfigError::Variable { name: name.clone(), problem: problem.to_owned() }
            }
            // The value is in [defaults].
            Some(Source::Setting(settings::Origin::File { file, line, .. })) if self.section.line(key).is_none() => {
                ConfigError::Invalid { file: file.clone(), line: *line, problem: problem.to_owned() }
            }
            _ if let Some(line) = self.section.line(key) => {
                let file = self.section.file.clone();
                ConfigError::Invalid { file, line, problem: format!("serve.{key}: {problem}") }
            }
            _ => ConfigError::Serve(format!("serve.{key}: {problem}")),
        }
    }
}
