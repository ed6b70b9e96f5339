//! Copies the values of the table into a configuration, and makes the table of the built-in values.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use super::channels::{BotsTable, DeliveryTable, UnknownName};
use super::rule::RuleTable;
use super::table::{LimitsTable, RetriesTable, ServeTable, TimingTable};
use super::values::{CompatName, InterruptedName, PermissionName, Role, Time, TrustName};
use crate::config::{Config, Rule, Tls};

/// Replaces a value if the table has one.
fn set<T, V: From<T>>(to: &mut V, value: Option<T>) {
    if let Some(value) = value {
        *to = value.into();
    }
}

fn set_size(to: &mut usize, value: Option<NonZeroU32>) {
    if let Some(value) = value {
        *to = usize::try_from(value.get()).unwrap_or(usize::MAX);
    }
}

fn set_number(to: &mut u32, value: Option<NonZeroU32>) {
    set(to, value.map(NonZeroU32::get));
}

impl From<Time> for Duration {
    fn from(time: Time) -> Self {
        time.0
    }
}

/// Copies the values that need no check of their form.
pub(super) fn apply(table: &ServeTable, config: &mut Config) {
    set(&mut config.behind_proxy, table.behind_proxy);
    config.tls = table.tls.clone().map(|tls| Tls { certificate: tls.certificate, key: tls.key });
    set(&mut config.hosts, table.hosts.clone());
    set(&mut config.roots, table.roots.clone());
    set(&mut config.interrupted, table.interrupted.map(InterruptedName::value));
    apply_turn(table, config);
    if let Some(instructions) = &table.instructions {
        set(&mut config.instructions.files, instructions.files.clone());
        config.instructions.text.clone_from(&instructions.text);
    }
    config.limits.store_bytes = table.store_bytes.map(NonZeroU64::get);
    apply_limits(table, config);
    apply_times(table, config);
    config.rules = table.rules.iter().map(rule).collect();
    config.hooks.clone_from(&table.hooks);
    config.webhooks.clone_from(&table.webhooks);
    config.discord.clone_from(&table.discord);
    config.slack.clone_from(&table.slack);
    config.telegram.clone_from(&table.telegram);
    set(&mut config.tools, table.tools.clone());
    set(&mut config.schedules, table.schedules);
    apply_channels(table, config);
}

fn apply_turn(table: &ServeTable, config: &mut Config) {
    let turn = &mut config.turn;
    set(&mut turn.agent, table.agent.clone());
    set(&mut turn.allow_tools, table.allow_tools.clone());
    set(&mut turn.keep_keys, table.keep_keys.clone());
    set(&mut turn.project_trust, table.project_trust.map(TrustName::value));
    set(&mut turn.directory, table.directory.clone());
    set(&mut turn.permission, table.permission.map(PermissionName::mode));
    turn.cli_path.clone_from(&table.cli_path);
    turn.model.clone_from(&table.model);
    turn.max_turns = table.max_turns.or(turn.max_turns);
    turn.deadline = table.deadline.map(Duration::from);
}

fn apply_limits(table: &ServeTable, config: &mut Config) {
    let Some(given) = &table.limits else { return };
    let limits = &mut config.limits;
    set_number(&mut limits.max_running, given.max_running);
    set_number(&mut limits.max_running_per_chat, given.max_running_per_chat);
    set_number(&mut limits.queue_per_chat, given.queue_per_chat);
    set_number(&mut limits.queue_total, given.queue_total);
    set(&mut limits.events_per_turn, given.events_per_turn.map(NonZeroU32::get));
    set_size(&mut limits.body_bytes, given.body_bytes);
    set_size(&mut limits.attachment_bytes, given.attachment_bytes);
    set(&mut limits.files_bytes, given.files_bytes.map(NonZeroU64::get));
    set_size(&mut limits.subscribers, given.subscribers);
    set(&mut limits.requests_per_second, given.requests_per_second);
    set_size(&mut limits.concurrent_requests, given.concurrent_requests);
    if let Some(sessions) = given.idle_sessions {
        limits.idle_sessions = usize::try_from(sessions).unwrap_or(usize::MAX);
    }
}

fn apply_times(table: &ServeTable, config: &mut Config) {
    if let Some(given) = &table.timing {
        let timing = &mut config.timing;
        set(&mut timing.idle_timeout, given.idle_timeout);
        set(&mut timing.lease, given.lease);
        set(&mut timing.affinity_timeout, given.affinity_timeout);
        set(&mut timing.permission_timeout, given.permission_timeout);
        set(&mut timing.heartbeat, given.heartbeat);
        set(&mut timing.shutdown_timeout, given.shutdown_timeout);
        set(&mut timing.batch, given.batch);
    }
    if let Some(given) = &table.retries {
        let retries = &mut config.retries;
        set(&mut retries.max, given.max);
        set(&mut retries.first_delay, given.first_delay);
        set(&mut retries.after_tools, given.after_tools);
        set(&mut retries.pause_on_rate_limit, given.pause_on_rate_limit);
    }
    if let Some(given) = &table.retention {
        let retention = &mut config.retention;
        retention.events = given.events.map(Duration::from);
        retention.events_per_conversation = given.events_per_conversation.map(|count| u64::from(count.get()));
        retention.turns = given.turns.map(Duration::from);
        retention.files = given.files.map(Duration::from);
    }
}

fn apply_channels(table: &ServeTable, config: &mut Config) {
    if let Some(given) = &table.delivery {
        let delivery = &mut config.channels.delivery;
        set_size(&mut delivery.concurrency, given.concurrency);
        set_number(&mut delivery.max_attempts, given.max_attempts);
        set(&mut delivery.first_delay, given.first_delay);
        set(&mut delivery.max_delay, given.max_delay);
        set(&mut delivery.unknown, given.unknown);
    }
    if let Some(given) = &table.bots {
        let bots = &mut config.channels.bots;
        set(&mut bots.accept, given.accept);
        set(&mut bots.max_in_a_row, given.max_in_a_row);
    }
}

fn rule(table: &RuleTable) -> Rule {
    let RuleTable {
        channel,
        chats,
        authors,
        agent,
        model,
        permission,
        directory,
        instructions,
        allow_tools,
        daily_budget_usd,
        approvers,
        reject,
    } = table.clone();
    Rule {
        channel,
        chats,
        authors,
        agent,
        model,
        permission: permission.map(PermissionName::mode),
        directory,
        instructions,
        allow_tools,
        daily_budget_usd,
        approvers,
        reject,
    }
}

fn number<N: TryInto<u32>>(value: N) -> Option<NonZeroU32> {
    value.try_into().ok().and_then(NonZeroU32::new)
}

impl ServeTable {
    /// Returns the values with which another gateway starts, where they differ from the built-in ones.
    #[must_use]
    pub fn preset(compat: CompatName) -> Self {
        match compat {
            CompatName::Aetheel => Self {
                permission: Some(PermissionName::Full),
                project_trust: Some(TrustName::Trusted),
                retries: Some(RetriesTable { after_tools: Some(true), ..RetriesTable::default() }),
                ..Self::default()
            },
        }
    }

    /// Returns the rules with which another gateway starts. They apply if the configuration has none.
    #[must_use]
    pub fn preset_rules(compat: CompatName) -> Vec<RuleTable> {
        match compat {
            // All members of the servers in which the bot is.
            CompatName::Aetheel => vec![RuleTable { channel: Some("discord".to_owned()), ..RuleTable::default() }],
        }
    }

    /// Returns the built-in values, as they would be written. Values that depend on the machine are missing.
    pub fn built_in() -> Self {
        let Config { listen, turn, limits, timing, retries, tools, schedules, channels, .. } = Config::default();
        Self {
            listen: Some(listen.to_string()),
            behind_proxy: Some(false),
            role: Some(Role::All),
            permission: Some(PermissionName::Ask),
            project_trust: Some(TrustName::Untrusted),
            max_turns: turn.max_turns,
            interrupted: Some(InterruptedName::Report),
            limits: Some(LimitsTable {
                max_running: number(limits.max_running),
                max_running_per_chat: number(limits.max_running_per_chat),
                queue_per_chat: number(limits.queue_per_chat),
                queue_total: number(limits.queue_total),
                events_per_turn: number(limits.events_per_turn),
                body_bytes: number(limits.body_bytes),
                attachment_bytes: number(limits.attachment_bytes),
                files_bytes: NonZeroU64::new(limits.files_bytes),
                subscribers: number(limits.subscribers),
                requests_per_second: Some(limits.requests_per_second),
                concurrent_requests: number(limits.concurrent_requests),
                idle_sessions: u32::try_from(limits.idle_sessions).ok(),
            }),
            timing: Some(TimingTable {
                idle_timeout: Some(Time(timing.idle_timeout)),
                lease: Some(Time(timing.lease)),
                affinity_timeout: Some(Time(timing.affinity_timeout)),
                permission_timeout: Some(Time(timing.permission_timeout)),
                heartbeat: Some(Time(timing.heartbeat)),
                shutdown_timeout: Some(Time(timing.shutdown_timeout)),
                batch: Some(Time(timing.batch)),
            }),
            retries: Some(RetriesTable {
                max: Some(retries.max),
                first_delay: Some(Time(retries.first_delay)),
                after_tools: Some(retries.after_tools),
                pause_on_rate_limit: Some(retries.pause_on_rate_limit),
            }),
            tools: Some(tools),
            schedules: Some(schedules),
            delivery: Some(DeliveryTable {
                concurrency: number(channels.delivery.concurrency),
                max_attempts: number(channels.delivery.max_attempts),
                first_delay: Some(Time(channels.delivery.first_delay)),
                max_delay: Some(Time(channels.delivery.max_delay)),
                unknown: Some(UnknownName::Repeat),
            }),
            bots: Some(BotsTable {
                accept: Some(channels.bots.accept),
                max_in_a_row: Some(channels.bots.max_in_a_row),
            }),
            ..Self::default()
        }
    }
}
