//! Parsers of option values, with their error messages.

use std::ffi::OsStr;
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};
use teamster::agent::rules::ToolRules;
use teamster::request::{Permissions, RequestError, Retries};

/// Parses the name of an agent. Help lists the built-in agents; a configuration file may define others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentName;

impl TypedValueParser for AgentName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        NonEmptyStringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let registry = teamster::Registry::default();
        let names: Vec<_> = registry.names().map(|name| PossibleValue::new(name.to_owned())).collect();
        Some(Box::new(names.into_iter()))
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("{error} (write 500ms, 90s, 5m, 1h30m, or 0)"))
}

pub(super) fn turns(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "a whole number from 1 is needed".to_owned())
}

pub(super) fn tokens(text: &str) -> Result<NonZeroU64, String> {
    text.parse().map_err(|_| "a whole number from 1 is needed".to_owned())
}

pub(super) fn retries(text: &str) -> Result<u32, String> {
    let retries = text.parse().ok().filter(|retries| *retries <= Retries::MOST);
    retries.ok_or_else(|| format!("a whole number up to {} is needed", Retries::MOST))
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "a positive amount of US dollars is needed, such as 0.5".to_owned())
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| speed.is_finite() && *speed >= 0.0);
    speed.ok_or_else(|| "a number is needed, such as 10, or 0".to_owned())
}

/// Parses an environment variable for the agent, as `NAME=VALUE`.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("NAME=VALUE is needed".to_owned()),
    }
}

/// Parses a label, as `KEY=VALUE`.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    variable(text).map_err(|_| "KEY=VALUE is needed".to_owned())
}

/// Checks the form of a tool rule.
pub(super) fn rule(text: &str) -> Result<String, String> {
    let permissions = Permissions::default().with_allow([text]);
    match ToolRules::read(&permissions, None) {
        Ok(_) => Ok(text.to_owned()),
        Err(RequestError::Rule { why, .. }) => {
            Err(format!("{why}; use TOOL, TOOL(WORDS:*), TOOL(PATTERN) or mcp__SERVER__TOOL"))
        }
        Err(error) => Err(error.to_string()),
    }
}
