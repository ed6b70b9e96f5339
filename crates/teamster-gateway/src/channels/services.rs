//! The channels of chat services of a configuration. Each is compiled with its feature.

use std::sync::Arc;

use teamster_channel::Channel;

use crate::config::Config;

/// What is wrong with the table of a chat service: the path of the key, and the problem, without secrets.
pub(crate) type ServiceProblem = (String, String);

/// Creates the channels of chat services. Give them to [`Parts::channels`](crate::Parts::channels).
///
/// # Errors
/// Returns the first problem: a value is invalid, or this build has not the channel.
pub fn services(config: &Config) -> Result<Vec<Arc<dyn Channel>>, String> {
    let (channels, problems) = all(config);
    match problems.into_iter().next() {
        Some((key, problem)) => Err(format!("serve.{key}: {problem}")),
        None => Ok(channels),
    }
}

/// Returns what is wrong with each table of a chat service.
pub(crate) fn problems(config: &Config) -> Vec<ServiceProblem> {
    all(config).1
}

fn all(config: &Config) -> (Vec<Arc<dyn Channel>>, Vec<ServiceProblem>) {
    let (mut channels, mut problems) = (Vec::new(), Vec::new());
    add_discord(config, &mut channels, &mut problems);
    add_slack(config, &mut channels, &mut problems);
    add_telegram(config, &mut channels, &mut problems);
    (channels, problems)
}

#[cfg(feature = "discord")]
fn add_discord(config: &Config, channels: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    let Some(table) = &config.discord else { return };
    match super::discord::discord(table) {
        Ok(channel) => channels.push(Arc::new(channel)),
        Err(error) => problems.push((format!("discord.{}", error.key), error.problem)),
    }
}

#[cfg(not(feature = "discord"))]
fn add_discord(config: &Config, _: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    if config.discord.is_some() {
        let problem = "this build has no Discord channel: build it with the feature discord";
        problems.push(("discord".to_owned(), problem.to_owned()));
    }
}

#[cfg(feature = "slack")]
fn add_slack(config: &Config, channels: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    let Some(table) = &config.slack else { return };
    match super::slack::slack(table) {
        Ok(channel) => channels.push(Arc::new(channel)),
        Err(error) => problems.push((format!("slack.{}", error.key), error.problem)),
    }
}

#[cfg(not(feature = "slack"))]
fn add_slack(config: &Config, _: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    if config.slack.is_some() {
        let problem = "this build has no Slack channel: build it with the feature slack";
        problems.push(("slack".to_owned(), problem.to_owned()));
    }
}

#[cfg(feature = "telegram")]
fn add_telegram(config: &Config, channels: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    let Some(table) = &config.telegram else { return };
    match super::telegram::telegram(table) {
        Ok(channel) => channels.push(Arc::new(channel)),
        Err(error) => problems.push((format!("telegram.{}", error.key), error.problem)),
    }
}

#[cfg(not(feature = "telegram"))]
fn add_telegram(config: &Config, _: &mut Vec<Arc<dyn Channel>>, problems: &mut Vec<ServiceProblem>) {
    if config.telegram.is_some() {
        let problem = "this build has no Telegram channel: build it with the feature telegram";
        problems.push(("telegram".to_owned(), problem.to_owned()));
    }
}
