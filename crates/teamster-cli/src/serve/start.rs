//! Starts a gateway, serves until a signal, and stops it.

use std::sync::Arc;
use std::time::Duration;

use teamster::Inspection;
use teamster_gateway::config::file::Serve;
use teamster_gateway::{Clock, Gateway, Parts, Running};
use teamster_store::{HostId, SqliteOptions, SqliteStore};
use tokio::net::TcpListener;
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
    let listener = match TcpListener::bind(config.listen).await {
        Ok(listener) => listener,
        Err(error) => {
            let address = config.listen.to_string();
            return fail(&printable!("cannot listen on {}: {}", Printable::exact(&address), Printable::error(&error)));
        }
    };
    let store = match SqliteStore::open(&plan.serve.store, SqliteOptions::default()).await {
        Ok(store) => store,
        Err(error) => return fail(&Printable::error(&error)),
    };
    let runtime = Arc::clone(&plan.runtime);
    let timeout = config.timing.shutdown_timeout + SHUTDOWN_MARGIN;
    let code = match start(&plan, store.clone(), &lock.host, listener, &agent).await {
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
    http: JoinHandle<std::io::Result<()>>,
}

/// Starts the gateway, and prints how to use it.
async fn start(
    plan: &ServePlan,
    store: SqliteStore,
    host: &str,
    listener: TcpListener,
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
    let address = listener.local_addr().map_err(|error| Printable::error(&error))?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let token = interim_token(plan).map_err(|error| Printable::error(&error))?;
    let running = gateway.start().await.map_err(|error| Printable::error(&error))?;
    let http = tokio::spawn(teamster_gateway::http::serve_interim(gateway, listener, token));
    let file = data_dir::token_file(&config.data_dir);
    let access = if plan.token.is_some() { Access::Fixed } else { Access::File(&file) };
    let url = format!("{scheme}://{address}");
    // A closed standard output is no reason to stop.
    _ = greeting::write(&mut anstream::stdout(), &url, &access, &config, agent);
    Ok(Server { running, http })
}

fn interim_token(plan: &ServePlan) -> std::io::Result<String> {
    if let Some(token) = &plan.token {
        return Ok(token.clone());
    }
    let file = data_dir::token_file(&plan.serve.config.data_dir);
    if !file.exists() {
        std::fs::write(&file, uuid::Uuid::new_v4().to_string())?;
    }
    data_dir::read_token(&plan.serve.config.data_dir)
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
            Ok(Ok(())) => printable!("the server has stopped"),
            Ok(Err(error)) => printable!("the server has stopped: {}", Printable::error(&error)),
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
