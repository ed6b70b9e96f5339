//! Starts a gateway, serves until a signal, and stops it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use teamster::Inspection;
use teamster_channel::Channel;
use teamster_gateway::access::{FirstToken, Secret, first_token};
use teamster_gateway::channels::{self, CheckError, WebhookChannel};
use teamster_gateway::config::file::Serve;
use teamster_gateway::hooks::Hooks;
use teamster_gateway::http::{self, Protection, ProtectionOptions, Server, ServerOptions};
use teamster_gateway::{Clock, Gateway, Parts, Running, web};
use teamster_store::{HostId, SqliteOptions, SqliteStore};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::data_dir;
use super::greeting::{self, Access};
use super::plan::{ServePlan, check_agent, check_other_agents};
use crate::exit;
use crate::path_text::home_relative;
use crate::plan::{Inputs as _, SystemInputs};
use crate::printable::{Printable, printable};
use crate::render::{write_error, write_notice, write_warning};
use crate::signals::Signals;

/// The time that a shutdown may take beyond its limit: killed agents are reaped, and answers are delivered.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(15);

/// How long a shutdown waits for requests after the turns have ended.
const REQUESTS_END: Duration = Duration::from_secs(5);

/// Checks what a start needs, and starts nothing. Returns the exit code.
pub(super) async fn check(mut plan: ServePlan) -> u8 {
    let agent = match ready_agent(&mut plan).await {
        Ok(agent) => agent,
        Err(code) => return code,
    };
    let problems = check_other_agents(&plan).await;
    if !problems.is_empty() {
        return fail_each(&problems);
    }
    // A start takes both, the data directory first.
    if let Err(error) = data_dir::check(&plan.serve.config.data_dir) {
        return fail(&Printable::error(&error));
    }
    if let Err(error) = Server::bind(&plan.serve.config).await {
        return fail(&Printable::error(&error));
    }
    let Serve { config, store, .. } = &plan.serve;
    let hooks = Hooks::new(config.hooks.clone(), Clock::system());
    if let Err(error) = hooks.check() {
        return fail(&Printable::error(&error));
    }
    let mut unusable = match channels::webhooks(&config.webhooks) {
        Ok(webhooks) => unusable_channels(&webhooks).await,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let services = match channels::services(config) {
        Ok(services) => services,
        Err(problem) => return fail(&Printable::message(&problem)),
    };
    unusable.extend(unusable_services(&services).await);
    if !unusable.is_empty() {
        return fail_each(&unusable);
    }
    if let Some(Err(error)) = plan.token.as_deref().map(Secret::fixed) {
        return fail(&printable!("TEAMSTER_TOKEN: {}", Printable::error(&error)));
    }
    let version = agent.version.as_deref().unwrap_or("of an unknown version");
    let mut lines = vec![
        printable!("the configuration is valid"),
        printable!("agent        {} {}", Printable::exact(&agent.agent), Printable::exact(version)),
        printable!("rules        {}", config.rules.len()),
        printable!("hooks        {}", config.hooks.len()),
        printable!("webhooks     {}", config.webhooks.len()),
        printable!("listen       {}", Printable::exact(&config.listen.to_string())),
        printable!("store        {}", home_relative(store)),
    ];
    lines.extend(services.iter().map(|channel| printable!("channel      {}", Printable::exact(channel.name()))));
    let mut out = anstream::stdout();
    match lines.iter().try_for_each(|line| line.write_line(&mut out)) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

/// Checks the webhooks with their receivers, and returns what is wrong with them.
async fn unusable_channels(channels: &[Arc<WebhookChannel>]) -> Vec<Printable> {
    let mut problems = Vec::new();
    for channel in channels {
        problems.extend(problem(&**channel, &printable!("webhook {}", Printable::exact(&channel.config().name))).await);
    }
    problems
}

/// Checks the channels of chat services, and returns what is wrong with them.
async fn unusable_services(channels: &[Arc<dyn Channel>]) -> Vec<Printable> {
    let mut problems = Vec::new();
    for channel in channels {
        problems.extend(problem(&**channel, &printable!("channel {}", Printable::exact(channel.name()))).await);
    }
    problems
}

/// Returns what must be corrected before a channel can be used. That its service cannot be reached now is only a warning: a
/// gateway that starts tries again.
async fn problem(channel: &dyn Channel, name: &Printable) -> Option<Printable> {
    match channels::check(channel).await {
        Ok(()) => None,
        Err(CheckError::Unreachable(reason)) => {
            write_warning(&printable!("the {} cannot be used now: {}", name, Printable::message(&reason)));
            None
        }
        Err(CheckError::Unusable(reason)) => {
            Some(printable!("the {} cannot be used: {}", name, Printable::message(&reason)))
        }
    }
}

/// Serves until a signal. Returns the exit code.
pub(super) async fn serve(mut plan: ServePlan) -> u8 {
    // Signals are caught before anything is started, so that none can leave a process behind.
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return fail(&Printable::error(&error)),
    };
    protect_memory();
    let agent = match ready_agent(&mut plan).await {
        Ok(agent) => agent,
        Err(code) => return code,
    };
    // The turns of these agents fail, and all others run.
    check_other_agents(&plan).await.iter().for_each(write_warning);
    let config = &plan.serve.config;
    let lock = match data_dir::open(&config.data_dir) {
        Ok(lock) => lock,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let options = SqliteOptions { max_bytes: config.limits.store_bytes, ..SqliteOptions::default() };
    let store = match SqliteStore::open(&plan.serve.store, options).await {
        Ok(store) => store,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let runtime = Arc::clone(&plan.runtime);
    let timeout = config.timing.shutdown_timeout + SHUTDOWN_MARGIN;
    let code = match start(&plan, store.clone(), &lock.host, &agent).await {
        Ok(started) => until_stopped(&mut signals, started, timeout).await,
        Err(error) => fail(&Printable::error(&*error)),
    };
    // Turns that run and sessions that are open have had their time.
    let report = runtime.shutdown(Duration::ZERO).await;
    for run in &report.unfinished {
        tracing::warn!(agent = %run.agent, run_id = %run.run_id, "the agent could not be stopped");
    }
    store.close().await;
    code
}

/// What runs.
struct Started {
    running: Running,
    server: JoinHandle<()>,
}

/// Starts the gateway, and prints how to use it.
async fn start(
    plan: &ServePlan,
    store: SqliteStore,
    host: &str,
    agent: &Inspection,
) -> Result<Started, Box<dyn Error + Send + Sync>> {
    let config = plan.serve.config.clone();
    let fixed_token = plan.token.as_deref().map(Secret::fixed).transpose()?;
    let webhooks = channels::webhooks(&config.webhooks)?;
    let as_channel = |channel: &Arc<WebhookChannel>| Arc::clone(channel) as Arc<dyn Channel>;
    // The address is taken before a turn can run.
    let server = Server::bind(&config).await?;
    let gateway = Gateway::new(Parts {
        config: config.clone(),
        store: Arc::new(store),
        runtime: Arc::clone(&plan.runtime),
        channels: webhooks.iter().map(as_channel).chain(channels::services(&config)?).collect(),
        host: HostId::new(host.to_owned()),
        clock: Clock::system(),
    });
    let has_fixed_token = fixed_token.is_some();
    let options = ProtectionOptions { listen: server.address(), fixed_token };
    let protection = Protection::new(gateway.clone(), options)?;
    let token = if has_fixed_token { None } else { Some(first_token(&gateway).await?) };
    let app = http::app(&gateway, &protection, Some(channels::router(webhooks).merge(web::router())));
    let running = gateway.start().await?;
    let scheme = if server.has_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{}", server.address());
    let mut options = ServerOptions::default();
    options.shutdown_timeout = REQUESTS_END;
    // While turns end, callers get answers, and probes see the shutdown.
    let server = tokio::spawn(server.serve(app, options, gateway.closing().clone()));
    let access = match &token {
        None => Access::Fixed,
        // The output of a service is a log, which others read.
        Some(FirstToken::Created { secret, file }) if SystemInputs.stdout_is_terminal() => {
            Access::Created { secret: secret.expose(), file }
        }
        Some(FirstToken::Created { file, .. } | FirstToken::Exists { file }) => Access::File(file),
    };
    // A closed standard output does not stop the gateway.
    _ = greeting::write(&mut anstream::stdout(), &url, &access, &config, agent);
    Ok(Started { running, server })
}

/// Waits for a signal, then for the end of running turns. A second signal ends the wait. Returns the exit code.
async fn until_stopped(signals: &mut Signals, started: Started, timeout: Duration) -> u8 {
    let Started { running, mut server } = started;
    let has_failed = tokio::select! {
        _ = signals.next() => false,
        _ = &mut server => true,
    };
    if has_failed {
        running.shutdown().await;
        return fail(&"the HTTP server has stopped: the log has the reason".into());
    }
    write_notice(&"stopping: waiting for running turns; a second signal kills them".into());
    let shutdown = async {
        running.shutdown().await;
        _ = server.await;
    };
    tokio::select! {
        () = shutdown => exit::SUCCESS,
        () = sleep(timeout) => fail(&"running turns have not ended in time: they are killed".into()),
        _ = signals.next() => exit::INTERRUPTED,
    }
}

/// Keeps other processes of this user, such as agents, from reading the memory and the environment of the gateway, which have
/// its secrets.
fn protect_memory() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "processes of this user can read the memory of the gateway");
    }
}

async fn ready_agent(plan: &mut ServePlan) -> Result<Inspection, u8> {
    match check_agent(plan).await {
        Ok((agent, warnings)) => {
            warnings.iter().for_each(write_warning);
            Ok(agent)
        }
        Err(problem) => Err(fail(&problem)),
    }
}

fn fail_each(messages: &[Printable]) -> u8 {
    for message in messages {
        fail(message);
    }
    exit::FAILURE
}

fn fail(message: &Printable) -> u8 {
    write_error(&mut anstream::stderr(), message, None);
    exit::FAILURE
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    #[test]
    fn other_processes_cannot_read_the_memory_of_the_gateway() {
        super::protect_memory();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
    }
}
