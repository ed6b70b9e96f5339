//! The checks of `Host` and `Origin`.
//!
//! A page of another site can make a browser send requests to this gateway, also under a name of its own that resolves to this
//! machine (DNS rebinding). So both headers are compared with an exact list, before anything else.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Uri};

use crate::config::Config;

/// The names of this machine for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names under which clients reach the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// Names in lower case, with a port or for any port.
    names: Vec<String>,
    /// The scheme that clients use.
    scheme: &'static str,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrongOrigin {
    /// `Host` is missing, doubled, or not in the list.
    Host,
    /// `Origin` is not this gateway.
    Origin,
}

impl Hosts {
    /// Takes the names of a configuration, and the address where the gateway listens.
    pub(crate) fn new(config: &Config, listen: SocketAddr) -> Self {
        let mut names: Vec<_> = LOOPBACK.iter().map(|name| (*name).to_owned()).collect();
        // Addresses that no client uses as a name, such as 0.0.0.0, are not added.
        if !listen.ip().is_unspecified() {
            names.push(literal(listen.ip()));
        }
        names.extend(config.hosts.iter().map(|host| host.to_ascii_lowercase()));
        Self { names, scheme: if is_https(config) { "https" } else { "http" } }
    }

    /// Checks both headers, and returns whether `Origin` is present.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<bool, WrongOrigin> {
        let host = host(uri, headers).ok_or(WrongOrigin::Host)?;
        if !self.names.iter().any(|name| is_named(&host, name)) {
            return Err(WrongOrigin::Host);
        }
        let mut origins = headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(false) };
        let origin = origin.to_str().map_err(|_| WrongOrigin::Origin)?;
        if origins.next().is_some() || !self.is_own(origin, &host) {
            return Err(WrongOrigin::Origin);
        }
        Ok(true)
    }

    /// Returns whether an origin is this gateway: the host of the request, or a configured one where a proxy replaces `Host`.
    fn is_own(&self, origin: &str, host: &str) -> bool {
        let Some((scheme, origin)) = origin.split_once("://") else { return false };
        let origin = origin.to_ascii_lowercase();
        let configured = self.names.iter().skip(LOOPBACK.len());
        scheme == self.scheme && (origin == host || configured.into_iter().any(|name| *name == origin))
    }
}

/// Returns whether clients use TLS, even if a proxy terminates it.
pub(crate) fn is_https(config: &Config) -> bool {
    config.tls.is_some() || config.behind_proxy
}

/// Returns the one host of a request, in lower case. HTTP/2 has it in the URI.
fn host(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(HOST).iter();
    let header = values.next();
    if values.next().is_some() {
        return None;
    }
    let header = header.map(|value| value.to_str().map(str::to_ascii_lowercase)).transpose().ok()?;
    let authority = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
    match (header, authority) {
        (Some(header), Some(authority)) => (header == authority).then_some(header),
        (header, authority) => header.or(authority),
    }
}

/// Returns whether a host is this name, at any port if the name has none.
fn is_named(host: &str, name: &str) -> bool {
    match host.strip_prefix(name) {
        Some("") => true,
        Some(rest) => {
            let port = rest.strip_prefix(':').filter(|port| !port.is_empty());
            port.is_some_and(|port| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()))
                && !has_port(name)
        }
        None => false,
    }
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
        && !name.ends_with(']')
}

fn literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
