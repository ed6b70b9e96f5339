//! The certificate of the server.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::error::ServeError;
use crate::config::Tls;

/// Reads the certificate and its key.
pub(super) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, ServeError> {
    let Tls { certificate, key } = tls;
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| pem_error(certificate, &error, "certificate"))?;
    if chain.is_empty() {
        return Err(pem_error(certificate, &pem::Error::NoItemsFound, "certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| pem_error(key, &error, "private key"))?;
    let failed = |source| ServeError::Certificate { certificate: certificate.clone(), key: key.clone(), source };
    // The provider is named, so that no other part of the process decides which one it is.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(failed)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn pem_error(path: &Path, error: &pem::Error, expected: &str) -> ServeError {
    let problem = match error {
        pem::Error::Io(error) => {
            format!("{error}; it must be a file in PEM with the {expected}, readable by this user")
        }
        pem::Error::NoItemsFound => format!("it contains no {expected} in PEM"),
        other => format!("{other}; it must be a file in PEM with the {expected}"),
    };
    ServeError::Pem { path: path.to_owned(), problem }
}
