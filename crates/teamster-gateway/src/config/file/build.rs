//! Makes the configuration of a gateway from the table `[serve]`, and checks its values.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster::Registry;

use super::apply::apply;
use super::checks::{Checks, KeyProblem};
use super::table::ServeTable;
use super::values::Role;
use crate::config::Config;

/// What `teamster serve` starts.
#[derive(Clone, Debug)]
pub struct Serve {
    /// The configuration of the gateway.
    pub config: Config,
    /// What the process does.
    pub role: Role,
    /// The file of the store.
    pub store: PathBuf,
}

/// The shortest lease. Leases are renewed after a third of it, which must succeed on a busy disk.
const MIN_LEASE: Duration = Duration::from_secs(3);

/// The longest time that events may wait for the log.
const MAX_BATCH: Duration = Duration::from_secs(1);

/// Makes the configuration. `data_dir` is used if the table has none. Paths of the table must be absolute.
///
/// # Errors
/// Returns every problem of the values.
pub fn build(table: &ServeTable, data_dir: &Path, registry: &Registry) -> Result<Serve, Vec<KeyProblem>> {
    let mut checks = Checks::default();
    let mut config =
        Config { data_dir: table.data_dir.clone().unwrap_or_else(|| data_dir.to_owned()), ..Config::default() };
    apply(table, &mut config);
    if let Some(listen) = &table.listen {
        match address(listen) {
            Ok(address) => config.listen = address,
            Err(problem) => checks.add("listen", problem),
        }
    }
    let role = table.role.unwrap_or_default();
    if role != Role::All {
        let problem =
            format!("the role {role} needs a store that several machines share; with SQLite, use the role all");
        checks.add("role", problem);
    }
    let store = store_file(table.store.as_deref(), &config.data_dir).unwrap_or_else(|problem| {
        checks.add("store", problem);
        PathBuf::new()
    });
    check_exposure(&config, &mut checks);
    check_times(&config, &mut checks);
    checks.agent("agent", &config.turn.agent, registry);
    checks.directories(&mut config);
    checks.files(&config);
    checks.tool_rules("allow_tools", &config.turn.allow_tools);
    checks.rules(&mut config, registry);
    checks.separation(&config, &store);
    checks.hooks(&config);
    checks.webhooks(&config);
    checks.services(&config);
    checks.other_chats(&config);
    checks.result(Serve { config, role, store })
}

/// Reads `HOST:PORT`. The host is an address, or `localhost`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| {
        format!(
            "invalid address {text:?}: write an IP address and a port, such as \"127.0.0.1:4780\" or \"[::1]:4780\""
        )
    })
}

/// Returns the file of the store. Its location is a path, or `sqlite:PATH`; the default is in the data directory.
///
/// # Errors
/// Returns what is wrong with the location.
pub fn store_file(location: Option<&str>, data_dir: &Path) -> Result<PathBuf, String> {
    let Some(text) = location else { return Ok(data_dir.join("gateway.db")) };
    let path = text.strip_prefix("sqlite://").or_else(|| text.strip_prefix("sqlite:")).unwrap_or(text);
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Err("PostgreSQL is not supported yet: use the path of an SQLite file".to_owned());
    }
    if path.is_empty() || path.contains("://") {
        return Err("it must be the path of an SQLite file".to_owned());
    }
    Ok(PathBuf::from(path))
}

fn check_exposure(config: &Config, checks: &mut Checks) {
    if config.behind_proxy && config.tls.is_some() {
        checks.add(
            "behind_proxy",
            "either the proxy or the gateway terminates TLS: remove tls or behind_proxy".to_owned(),
        );
    }
    if !config.listen.ip().is_loopback() && config.tls.is_none() && !config.behind_proxy {
        let problem = format!(
            "{} can be reached from other machines: set tls, or behind_proxy = true if a proxy terminates TLS",
            config.listen
        );
        checks.add("listen", problem);
    }
    for (index, host) in config.hosts.iter().enumerate() {
        if host.is_empty() || host.contains(['/', '*', ' ', '@']) {
            checks.add(
                &format!("hosts.{index}"),
                format!("{host:?} must be a host name, such as \"agents.example.org\""),
            );
        }
    }
}

fn check_times(config: &Config, checks: &mut Checks) {
    let timing = &config.timing;
    if timing.lease < MIN_LEASE {
        checks.add("timing.lease", "it must be at least 3s".to_owned());
    }
    if timing.batch > MAX_BATCH {
        checks.add("timing.batch", "it must be at most 1s".to_owned());
    }
    for (key, time) in
        [("timing.heartbeat", timing.heartbeat), ("timing.permission_timeout", timing.permission_timeout)]
    {
        if time < Duration::from_secs(1) {
            checks.add(key, "it must be at least 1s".to_owned());
        }
    }
    if config.turn.deadline.is_some_and(|deadline| deadline.is_zero()) {
        checks.add("deadline", "it must be longer than 0s".to_owned());
    }
    if config.retries.max > 0 && config.retries.first_delay.is_zero() {
        checks.add("retries.first_delay", "it must be longer than 0s".to_owned());
    }
}
