//! Checks the values of a setting with clap's definition of its option.

use std::error::Error as _;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Id};

use super::table::{Kind, Setting};

/// Checks values.
///
/// # Errors
/// Returns what is wrong with a value and what is allowed.
pub(crate) fn check(setting: &Setting, values: &[String]) -> Result<(), String> {
    let option = |value: &String| match setting.kind {
        Kind::Switch if value == "true" => Some(format!("--{}", setting.arg.get_long().unwrap_or_default())),
        Kind::Switch => None,
        Kind::One | Kind::List => Some(format!("--{}={value}", setting.arg.get_long().unwrap_or_default())),
    };
    let arg = alone(setting.arg.clone());
    let parser = Command::new("teamster").no_binary_name(true).disable_help_flag(true).arg(arg);
    parser.try_get_matches_from(values.iter().filter_map(option)).map(drop).map_err(|error| problem(&error))
}

/// Removes what relates the option to others.
fn alone(arg: Arg) -> Arg {
    let arg = arg.requires(Resettable::<Id>::Reset).conflicts_with(Resettable::<Id>::Reset);
    arg.overrides_with(Resettable::<Id>::Reset).group(Resettable::<Id>::Reset).global(false)
}

/// Returns clap's error without the option's name.
fn problem(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    let value = text(ContextKind::InvalidValue);
    if value.is_empty() {
        return "the value is empty".to_owned();
    }
    let allowed = match (error.kind(), error.get(ContextKind::ValidValue), error.source()) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(names)), _) => format!("use {}", names.join(", ")),
        (_, _, Some(source)) => source.to_string(),
        (kind, _, None) => kind.to_string(),
    };
    format!("invalid value {value:?}: {allowed}")
}

/// Returns the known name that is most similar to a mistyped one.
pub(crate) fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.into_iter().map(|name| (strsim::jaro(typed, name), name)).filter(|(rating, _)| *rating > 0.7);
    // `model` and `mode` have the same rating for `modle`; `model` has its length.
    let distance = |name: &str| typed.len().abs_diff(name.len());
    let nearer = |(one, name): &(f64, &str), (other, second): &(f64, &str)| {
        one.total_cmp(other).then_with(|| distance(second).cmp(&distance(name)))
    };
    rated.max_by(nearer).map(|(_, name)| name)
}
