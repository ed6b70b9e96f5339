//! Why the server cannot listen or serve.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server cannot listen or serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines could reach the gateway, and read its tokens on the way.
    #[error(
        "{address} can be reached from other machines, and tokens would be sent in clear text: configure a certificate and its \
         key for TLS, use --behind-proxy if a proxy terminates TLS, or listen on 127.0.0.1"
    )]
    Unencrypted {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}; choose another address or port, or stop the program that uses it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A file of the certificate cannot be read.
    #[error("cannot read {path:?}: {problem}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong, and how to correct it.
        problem: String,
    },
    /// The certificate and the key do not fit.
    #[error("the certificate {certificate:?} cannot be used with the key {key:?}: {source}")]
    Certificate {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}
