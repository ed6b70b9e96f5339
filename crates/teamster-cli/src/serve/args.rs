//! The options of `teamster serve`, as typed.

use std::path::PathBuf;

use clap::ValueHint;

/// Run the gateway: an HTTP API and channels for agents
///
/// The gateway connects people and programs to agents and keeps their conversations. An accepted message survives a
/// crash. Without options it listens on this machine only, keeps its data in ~/.local/share/teamster, and uses
/// claude if it is installed, otherwise the first agent with a login. The first line of its output is the URL.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct ServeArgs {
    /// Listen on this address [127.0.0.1:4780]
    ///
    /// Port 0 picks a free port. Other machines can reach the gateway only with TLS or behind a proxy: set tls or
    /// `behind_proxy` in the configuration file.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) listen: Option<String>,

    /// Expect a proxy that terminates TLS
    ///
    /// The gateway may then listen beyond this machine without a certificate. Clients must not be able to reach it
    /// without the proxy.
    #[arg(long)]
    pub(crate) behind_proxy: bool,

    /// Keep the store, attachments and the token in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) data_dir: Option<PathBuf>,

    /// Use this configuration file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Set the role of this process: all (default)
    ///
    /// The roles api, worker and channels are not available yet: they need a store that several machines share.
    #[arg(long, value_name = "ROLE", hide_possible_values = true)]
    pub(crate) role: Option<RoleName>,

    /// Use this store: the path of an SQLite file
    #[arg(long, value_name = "URL", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<String>,

    /// Check the configuration, the agent and the channels, and exit
    ///
    /// The data directory and the port are checked too, so the check fails while a gateway uses them.
    #[arg(long)]
    pub(crate) check: bool,

    /// Write log lines as: text (default) or json
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_default_value = true, hide_possible_values = true)]
    pub(crate) log_format: LogFormat,
}

/// What a gateway process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RoleName {
    All,
    Api,
    Worker,
    Channels,
}

impl RoleName {
    /// Returns the name as the file has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Channels => "channels",
        }
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

const AFTER: &str = "\
Configuration:
  The table [serve] of ~/.config/teamster/config.toml; teamster config init writes
  a template, and teamster config show prints each value with its origin. Options
  override variables, and variables override the file. See docs/configuration.md.

  Variables: TEAMSTER_LISTEN, TEAMSTER_DATA_DIR, TEAMSTER_ROLE, TEAMSTER_STORE,
  TEAMSTER_PERMISSION, AGENT_BACKEND, BACKEND_CLI_PATH, BACKEND_MODEL,
  BACKEND_MAX_TURNS, ALLOWED_TOOLS, QUERY_TIMEOUT_MS and WORKING_DIR. TEAMSTER_TOKEN
  sets a fixed token of the operator.

Signals:
  On SIGTERM or Ctrl-C the gateway waits for running turns, for at most
  timing.shutdown_timeout, and then exits. Other turns stay in the store for the
  next start. A second signal stops it at once.

Exit codes:
  0    it was stopped, or --check found no problem
  1    it could not start, for example because the agent cannot run
  2    wrong usage, or the configuration is invalid
  130  a second signal stopped it";
