//! Where the gateway is, its token, and calls of its API.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueHint;
use reqwest::{Client, Method, RequestBuilder, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use teamster::backend::variables;

use crate::plan::{Inputs as _, SystemInputs};
use crate::printable::{Printable, printable};
use crate::serve::data_dir;

/// The default address of a gateway.
const SERVER: &str = "http://127.0.0.1:4780";

/// How long a call may take, without event streams.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of every client.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ServerArgs {
    /// Use the gateway at this URL, by default the one on this machine
    ///
    /// The variable `TEAMSTER_SERVER` sets it too. The token is read from `TEAMSTER_TOKEN`, or from the data directory
    /// of the gateway on this machine. The token of the default data directory is sent to this machine only.
    #[arg(long, value_name = "URL", global = true, value_hint = ValueHint::Url)]
    pub(super) server: Option<String>,

    /// Read the token from this data directory of a gateway
    #[arg(long, value_name = "DIR", global = true, value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub(super) data_dir: Option<PathBuf>,

    /// Permit http to another machine; others can read the token
    #[arg(long, global = true, hide_short_help = true)]
    pub(super) insecure: bool,
}

impl ServerArgs {
    /// Returns the value of `--server`.
    pub(crate) fn server_option(&self) -> Option<&str> {
        self.server.as_deref()
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{0}")]
    Usage(String),
    #[error("there is no token: cannot read {}: {source}", file.to_string_lossy())]
    NoToken { file: PathBuf, source: io::Error },
    #[error("there is no token for {server}: the token of this machine's gateway is not sent to another machine")]
    NoTokenFor { server: String },
    #[error("cannot reach the gateway at {server}: {source}")]
    Unreachable { server: String, source: reqwest::Error },
    #[error("the gateway has no conversation {id}")]
    NoConversation { id: String },
    #[error("{detail}")]
    Refused { status: u16, code: String, detail: String },
    #[error("{server} does not answer like a gateway: {problem}; check --server")]
    Unexpected { server: String, problem: String },
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    #[error("cannot catch signals: {0}")]
    Signals(#[source] io::Error),
}

impl ClientError {
    /// Returns what the user can do.
    pub(crate) fn hint(&self) -> Option<Printable> {
        match self {
            Self::NoToken { source, .. } if source.kind() == io::ErrorKind::NotFound => Some(
                "start the gateway, which writes the token: teamster serve; or set TEAMSTER_TOKEN, or name the \
                 gateway's directory with --data-dir"
                    .into(),
            ),
            Self::NoToken { .. } | Self::NoTokenFor { .. } => {
                Some("set TEAMSTER_TOKEN, or name the gateway's directory with --data-dir".into())
            }
            Self::Unreachable { server, source } => Some(unreachable_hint(server, source)),
            Self::NoConversation { .. } => Some("teamster conversations lists the conversations".into()),
            Self::Refused { status: 403, .. } => {
                Some("use a token with the scope that is needed; docs/gateway.md lists the scopes".into())
            }
            Self::Refused { status: 401, .. } => {
                Some(printable!("set {} to a token of this gateway", variables::GATEWAY_TOKEN))
            }
            _ => None,
        }
    }

    /// Whether a later attempt may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || *status == 429,
            _ => false,
        }
    }
}

/// A gateway.
#[derive(Clone)]
pub(crate) struct Connection {
    client: Client,
    server: Url,
    token: String,
}

impl fmt::Debug for Connection {
    /// The token is secret.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("server", &self.server.as_str()).finish_non_exhaustive()
    }
}

/// A problem as the API returns it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    title: String,
    detail: String,
    code: String,
}

impl Connection {
    /// Reads the location and the token. Nothing is sent.
    ///
    /// # Errors
    /// The URL is invalid, or there is no token.
    pub(crate) fn open(args: &ServerArgs) -> Result<Self, ClientError> {
        let set = |name: &str| SystemInputs.variable(name).filter(|value| !value.trim().is_empty());
        let server = args.server.clone().or_else(|| set("TEAMSTER_SERVER")).unwrap_or_else(|| SERVER.to_owned());
        let invalid = |problem: String| ClientError::Usage(format!("invalid URL of a gateway {server:?}: {problem}"));
        let mut url = Url::parse(&server).map_err(|error| invalid(format!("{error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("it must begin with http:// or https://".to_owned()));
        }
        let is_here = is_loopback(&url);
        if url.scheme() == "http" && !is_here && !args.insecure {
            let problem =
                "http sends the token in clear text to another machine: use https, or --insecure to permit it";
            return Err(invalid(problem.to_owned()));
        }
        // The paths of the API are appended.
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        let token = match set(variables::GATEWAY_TOKEN) {
            Some(token) => token.trim().to_owned(),
            None if !is_here && args.data_dir.is_none() => return Err(ClientError::NoTokenFor { server }),
            None => stored_token(args)?,
        };
        // An error means that another provider is installed already.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        // A proxy for other machines would get the token.
        let client = if is_here { client.no_proxy() } else { client };
        let client = client.build().map_err(|source| ClientError::Unreachable { server: server.clone(), source })?;
        Ok(Self { client, server: url, token })
    }

    /// Calls the API and reads its answer.
    ///
    /// # Errors
    /// The gateway cannot be reached or refuses the call.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<T, ClientError> {
        let mut request = self.request(method, path)?.timeout(CALL_TIMEOUT);
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = self.send(request).await?;
        let text = response.text().await.map_err(|source| self.unreachable(source))?;
        serde_json::from_str(&text).map_err(|error| self.unexpected(&error))
    }

    /// Reads a document.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, None, None).await
    }

    /// Opens an event stream. It has no time limit.
    pub(super) async fn stream(&self, path: &str, last: Option<u64>) -> Result<Response, ClientError> {
        let mut request = self.request(Method::GET, path)?.header("accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("last-event-id", last.to_string());
        }
        self.send(request).await
    }

    pub(super) fn unreachable(&self, source: reqwest::Error) -> ClientError {
        ClientError::Unreachable { server: self.server.to_string(), source: source.without_url() }
    }

    /// Reads a document that was received.
    pub(super) fn read<T: DeserializeOwned>(&self, document: Value) -> Result<T, ClientError> {
        serde_json::from_value(document).map_err(|error| self.unexpected(&error))
    }

    fn unexpected(&self, error: &serde_json::Error) -> ClientError {
        ClientError::Unexpected { server: self.server.to_string(), problem: error.to_string() }
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let url = self.server.join(path).map_err(|error| ClientError::Usage(format!("invalid id: {error}")))?;
        Ok(self.client.request(method, url).bearer_auth(&self.token))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        let Problem { title, detail, code } = serde_json::from_str(&text).unwrap_or_default();
        let detail = [detail, title].into_iter().find(|text| !text.is_empty());
        let detail = detail.unwrap_or_else(|| format!("the gateway answered with the status {status}"));
        Err(ClientError::Refused { status: status.as_u16(), code, detail })
    }
}

/// Returns what to do about a gateway that cannot be reached.
fn unreachable_hint(server: &str, source: &reqwest::Error) -> Printable {
    let mut cause = source.source();
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return "start it: teamster serve; or name it with --server URL".into();
        }
        cause = error.source();
    }
    let https = server.starts_with("https:");
    if https && source.is_connect() && !source.is_timeout() {
        return "if a program answers there, it may not use TLS: try http://; SSL_CERT_FILE names a private certificate"
            .into();
    }
    if !https && !source.is_connect() && !source.is_timeout() {
        return "a program answers there, but not with http: if the gateway uses TLS, name it with https://".into();
    }
    "check the address in --server and the network".into()
}

/// Returns whether a URL names this machine by a loopback address.
fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or(host == "localhost", |address| address.to_canonical().is_loopback())
}

fn stored_token(args: &ServerArgs) -> Result<String, ClientError> {
    let directory = args
        .data_dir
        .clone()
        .or_else(|| SystemInputs.variable_os("TEAMSTER_DATA_DIR").filter(|path| !path.is_empty()).map(PathBuf::from));
    let directory = directory.or_else(|| data_dir::default_directory(&SystemInputs));
    let Some(directory) = directory else {
        let source = io::Error::new(io::ErrorKind::NotFound, "HOME is not set");
        return Err(ClientError::NoToken { file: PathBuf::from("token"), source });
    };
    data_dir::read_token(&directory)
        .map_err(|source| ClientError::NoToken { file: data_dir::token_file(&directory), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the hint of a call to a program that sends this answer.
    async fn hint_of(scheme: &str, answer: &'static [u8]) -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("{scheme}://{}/", listener.local_addr().unwrap());
        let program = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            io::Read::read(&mut stream, &mut [0; 1024]).unwrap();
            io::Write::write_all(&mut stream, answer).unwrap();
        });
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().no_proxy().build().unwrap();
        let error = client.get(&server).send().await.unwrap_err();
        program.join().unwrap();
        unreachable_hint(&server, &error).as_str().to_owned()
    }

    #[tokio::test]
    async fn the_hint_depends_on_what_answers_instead_of_a_gateway() {
        let alert = b"\x15\x03\x01\x00\x02\x02\x46";
        assert!(hint_of("http", alert).await.contains("https://"));
        assert!(hint_of("https", b"HTTP/1.1 400 Bad Request\r\n\r\n").await.contains("http://"));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}/", listener.local_addr().unwrap());
        drop(listener);
        let error = Client::builder().no_proxy().build().unwrap().get(&server).send().await.unwrap_err();
        assert!(unreachable_hint(&server, &error).as_str().contains("teamster serve"));
    }

    #[test]
    fn only_loopback_addresses_are_this_machine() {
        for (url, expected) in [
            ("http://127.0.0.1:4780", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("https://localhost", true),
            ("http://localhost.example.org", false),
            ("http://127.0.0.1.example.org", false),
            ("http://0.0.0.0", false),
            ("http://192.168.1.2", false),
            ("http://user@agents.example.org", false),
            ("http://127.0.0.1@agents.example.org", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
