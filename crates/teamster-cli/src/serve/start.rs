//! Starts a gateway, serves until a signal, and stops it.

use std::sync::Arc;
use std::time::Duration;

use teamster::Inspection;
use teamster_gateway::access::{FirstToken, Secret, first_token};
use teamster_gateway::config::file::Serve;
use teamster_gateway::http::{self, Protection, ProtectionOptions, ServerOptions};
use teamster_gateway::{Clock, Gateway, Parts, Running};
use teamster_store::{HostId, SqliteOptions, SqliteStore};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::data_dir;
use super::greeting::{self, Access};
use super::plan::{ServePlan, check_agent};
use crate::exit;
use crate::path_text::home_relative;
use crate::printable::{Printable, printable};
use crate::render::{write_error, write_notice};
use crate::signals::Signals;

/// What the end of a shutdown may take beyond its limit: killed agents are reaped, and the store is closed.
const SHUTDOWN_MARGIN: Duration = Duration::from_secs(10);

/// Checks what a start needs, and starts nothing. Returns the exit code.
pub(super) async fn check(mut plan: ServePlan) -> u8 {
    let agent = match ready_agent(&mut plan).await {
        Ok(agent) => agent,
        Err(code) => return code,
    };
    let Serve { config, store, .. } = &plan.serve;
    let version = agent.version.as_deref().unwrap_or("of an unknown version");
    let lines = [
        printable!("the configuration is valid"),
        printable!("agent        {} {}", Printable::exact(&agent.agent), Printable::exact(version)),
        printable!("rules        {}", config.rules.len()),
        printable!("webhooks     {}", config.webhooks.len()),
        printable!("listen       {}", Printable::exact(&config.listen.to_string())),
        printable!("store        {}", home_relative(store)),
    ];
    let mut out = anstream::stdout();
    match lines.iter().try_for_each(|line| line.write_line(&mut out)) {
        Ok(()) => exit::SUCCESS,
        Err(_) => exit::NO_READER,
    }
}

/// Serves until a signal. Returns the exit code.
pub(super) async fn serve(mut plan: ServePlan) -> u8 {
    // Signals are caught before anything is started, so that none can leave a process behind.
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let agent = match ready_agent(&mut plan).await {
        Ok(agent) => agent,
        Err(code) => return code,
    };
    let config = &plan.serve.config;
    let lock = match data_dir::open(&config.data_dir) {
        Ok(lock) => lock,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let fixed_token = match plan.token.clone().map(Secret::fixed).transpose() {
        Ok(token) => token,
        Err(error) => return fail(&printable!("TEAMSTER_TOKEN cannot be used: {}", Printable::error(&error))),
    };
    let listener = match http::Server::bind(config).await {
        Ok(listener) => listener,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let store = match SqliteStore::open(&plan.serve.store, SqliteOptions::default()).await {
        Ok(store) => store,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let runtime = Arc::clone(&plan.runtime);
    let timeout = config.timing.shutdown_timeout + SHUTDOWN_MARGIN;
    let code = match start(&plan, store.clone(), &lock.host, listener, fixed_token, &agent).await {
        Ok(server) => until_stopped(&mut signals, server, timeout).await,
        Err(error) => fail(&error),
    };
    runtime.shutdown().await;
    store.close().await;
    code
}

/// What runs.
struct Server {
    running: Running,
    http: JoinHandle<()>,
}

/// Starts the gateway, and prints how to use it.
async fn start(
    plan: &ServePlan,
    store: SqliteStore,
    host: &str,
    listener: http::Server,
    fixed_token: Option<Secret>,
    agent: &Inspection,
) -> Result<Server, Printable> {
    let config = plan.serve.config.clone();
    let gateway = Gateway::new(Parts {
        config: config.clone(),
        store: Arc::new(store),
        runtime: Arc::clone(&plan.runtime),
        channels: Vec::new(),
        host: HostId::new(host.to_owned()),
        clock: Clock::system(),
    });
    let address = listener.address();
    let scheme = if listener.has_tls() { "https" } else { "http" };
    let first = match fixed_token {
        Some(_) => None,
        None => Some(first_token(&gateway).await.map_err(|error| Printable::error(&error))?),
    };
    let options = ProtectionOptions { listen: address, fixed_token };
    let protection = Protection::new(gateway.clone(), options).map_err(|error| Printable::error(&error))?;
    let app = http::app(&gateway, &protection, None);
    let mut options = ServerOptions::default();
    options.shutdown_timeout = config.timing.shutdown_timeout;
    let running = gateway.start().await.map_err(|error| Printable::error(&error))?;
    let http = tokio::spawn(listener.serve(app, options, gateway.stopping().clone()));
    let access = match &first {
        None => Access::Fixed,
        Some(FirstToken::Created { secret, file }) => Access::Created { secret: secret.expose(), file },
        Some(FirstToken::Exists { file }) => Access::File(file),
    };
    let url = format!("{scheme}://{address}");
    // A closed standard output is no reason to stop.
    _ = greeting::write(&mut anstream::stdout(), &url, &access, &config, agent);
    Ok(Server { running, http })
}

/// Waits for a signal, then for the end of running turns. A second signal ends the wait. Returns the exit code.
async fn until_stopped(signals: &mut Signals, server: Server, timeout: Duration) -> u8 {
    let Server { running, mut http } = server;
    let failed = tokio::select! {
        _ = signals.next() => None,
        ended = &mut http => Some(ended),
    };
    if let Some(ended) = failed {
        let problem = match ended {
            Ok(()) => printable!("the server has stopped"),
            Err(error) => printable!("the server has stopped: {}", Printable::error(&error)),
        };
        running.shutdown().await;
        return fail(&problem);
    }
    write_notice(&"stopping: running turns may end; a second signal kills them".into());
    let shutdown = async {
        running.shutdown().await;
        _ = http.await;
    };
    tokio::select! {
        () = shutdown => exit::SUCCESS,
        () = sleep(timeout) => fail(&"running turns have not ended in time: they are killed".into()),
        _ = signals.next() => exit::INTERRUPTED,
    }
}

async fn ready_agent(plan: &mut ServePlan) -> Result<Inspection, u8> {
    match check_agent(plan).await {
        Ok((agent, warnings)) => {
            warnings.iter().for_each(write_notice);
            Ok(agent)
        }
        Err(problem) => Err(fail(&problem)),
    }
}

fn fail(message: &Printable) -> u8 {
    write_error(&mut anstream::stderr(), message, None);
    exit::FAILURE
}
