//! `teamster config set` and `teamster config unset`: change one value of the user's file, and check the file before it is written.

use std::io;
use std::path::Path;

use super::error::{ConfigError, suggestion};
use super::file::{ConfigFile, Owner, TABLES, parse};
use super::toml_text::{self, TextError, format_key, format_list, format_text, parse_key};
use super::write::LockedFile;
use crate::plan::Inputs;
use crate::settings::{Kind, Setting};

/// Why a value was not changed. Then the file is as before.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetError {
    #[error("{0:?} is no key: use a setting, such as model, or a path, such as profiles.NAME.model")]
    Key(String),
    #[error("unknown setting {0:?}{1}")]
    Unknown(String, String),
    #[error("{0} has one value")]
    SeveralValues(String),
    #[error(transparent)]
    Text(#[from] TextError),
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file already has these problems.
    #[error("the file has errors: correct them first")]
    Broken(Vec<ConfigError>),
    /// With the new value, the file would have these problems.
    #[error("the value was not written")]
    Invalid(Vec<ConfigError>),
}

/// What was changed.
#[derive(Debug)]
pub(super) struct Changed {
    /// The full key.
    pub(super) key: String,
    /// The value as it is in the file; `None` if it was removed.
    pub(super) value: Option<String>,
    /// Its line.
    pub(super) line: usize,
    /// Other problems of the file, which it already had.
    pub(super) problems: Vec<ConfigError>,
    /// The setting, if the key is one of `[defaults]`.
    pub(super) setting: Option<String>,
}

/// Sets a key to values: one, or those of a list.
pub(super) fn set(
    path: &Path,
    key: &str,
    values: &[String],
    settings: &[Setting],
    inputs: &impl Inputs,
) -> Result<Changed, SetError> {
    let full = full_key(key, settings)?;
    let setting = setting_of(&full, settings);
    let file = LockedFile::open(path)?;
    let text = file.text()?.to_owned();
    let before = checked(path, &text, settings, inputs);
    if has_syntax_error(&text) {
        return Err(SetError::Broken(before.problems));
    }
    let mut problems = Vec::new();
    for candidate in candidates(setting, values)? {
        let (new, at) = toml_text::with_value(&text, &full, &candidate)?;
        let after = checked(path, &new, settings, inputs);
        let (caused, known): (Vec<_>, Vec<_>) =
            after.problems.into_iter().partition(|problem| is_new(problem, &before));
        if caused.is_empty() {
            let line = new.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
            file.replace(&new)?;
            let setting = setting.filter(|_| full.first().is_some_and(|table| table == "defaults"));
            let setting = setting.map(|setting| setting.id.clone());
            return Ok(Changed { key: format_key(&full), value: Some(candidate), line, problems: known, setting });
        }
        // The reason why a text is not valid helps more than that a number is not.
        problems = caused;
    }
    Err(SetError::Invalid(problems))
}

/// Removes a key. Returns `None` if it is not set.
pub(super) fn unset(
    path: &Path,
    key: &str,
    settings: &[Setting],
    inputs: &impl Inputs,
) -> Result<Option<Changed>, SetError> {
    let full = full_key(key, settings)?;
    if !path.exists() {
        return Ok(None);
    }
    let file = LockedFile::open(path)?;
    let text = file.text()?.to_owned();
    let before = checked(path, &text, settings, inputs);
    if has_syntax_error(&text) {
        return Err(SetError::Broken(before.problems));
    }
    let Some(new) = toml_text::without(&text, &full)? else { return Ok(None) };
    let after = checked(path, &new, settings, inputs);
    let (caused, problems): (Vec<_>, Vec<_>) = after.problems.into_iter().partition(|problem| is_new(problem, &before));
    if !caused.is_empty() {
        return Err(SetError::Invalid(caused));
    }
    file.replace(&new)?;
    Ok(Some(Changed { key: format_key(&full), value: None, line: 0, problems, setting: None }))
}

fn checked(path: &Path, text: &str, settings: &[Setting], inputs: &impl Inputs) -> ConfigFile {
    parse(path, text.as_bytes(), Owner::User, Some(settings), inputs)
}

fn has_syntax_error(text: &str) -> bool {
    toml_edit::Document::parse(text).is_err()
}

/// Whether a file did not have this problem before. Its line may have changed.
fn is_new(problem: &ConfigError, before: &ConfigFile) -> bool {
    let text = |problem: &ConfigError| match problem {
        ConfigError::Invalid { problem, .. } => problem.clone(),
        other => other.to_string(),
    };
    !before.problems.iter().any(|known| text(known) == text(problem))
}

/// Returns the path of a key in the file. A setting is one of `[defaults]`, and may be written like its option.
fn full_key(key: &str, settings: &[Setting]) -> Result<Vec<String>, SetError> {
    let name = key.strip_prefix("--").unwrap_or(key).replace('-', "_");
    if settings.iter().any(|setting| setting.key == name) {
        return Ok(vec!["defaults".to_owned(), name]);
    }
    let path = parse_key(key).ok_or_else(|| SetError::Key(key.to_owned()))?;
    match path.first() {
        Some(first) if path.len() > 1 && TABLES.contains(&first.as_str()) => Ok(path),
        Some(first) if path.len() > 1 => Err(SetError::Unknown(key.to_owned(), suggestion(first, TABLES))),
        _ => {
            let known = settings.iter().map(|setting| setting.key.as_str());
            Err(SetError::Unknown(key.to_owned(), suggestion(&name, known)))
        }
    }
}

/// Returns the setting that a key of `[defaults]` or of a profile sets.
fn setting_of<'s>(path: &[String], settings: &'s [Setting]) -> Option<&'s Setting> {
    let name = match path {
        [table, name] if table == "defaults" => name,
        [table, _, name] if table == "profiles" => name,
        _ => return None,
    };
    settings.iter().find(|setting| setting.key == *name)
}

/// Returns the forms in which the values may be written, the most likely one first. The first one that is valid is used.
fn candidates(setting: Option<&Setting>, values: &[String]) -> Result<Vec<String>, SetError> {
    let takes_list = setting.is_none_or(|setting| setting.kind == Kind::List);
    let [value] = values else {
        let name = setting.map_or("it", |setting| setting.key.as_str());
        return if takes_list { Ok(vec![format_list(values)]) } else { Err(SetError::SeveralValues(name.to_owned())) };
    };
    let literal = value.parse::<toml_edit::Value>().ok().map(|_| value.trim().to_owned());
    let is_list = value.trim_start().starts_with(['[', '{']);
    let text = match setting.map(|setting| setting.kind) {
        Some(Kind::List) => format_list(std::slice::from_ref(value)),
        _ => format_text(value),
    };
    let list = (setting.is_none()).then(|| format_list(std::slice::from_ref(value)));
    let literal_first = match setting {
        Some(setting) => setting.kind == Kind::Switch || setting.takes_number() || is_list && !setting.takes_json(),
        None => true,
    };
    let text = Some(text).filter(|_| setting.is_none_or(|setting| setting.kind != Kind::Switch));
    let (first, second) = if literal_first { (literal, text) } else { (text, literal) };
    let mut found: Vec<String> = [first, second, list].into_iter().flatten().collect();
    if found.is_empty() {
        found.push(format_text(value));
    }
    Ok(found)
}
