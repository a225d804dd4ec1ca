//! Encrypted connections, and clients that show a certificate.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Why connections cannot be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate.
    #[error("there is no certificate in PEM")]
    NoCertificate,
    /// There is no key.
    #[error("there is no private key in PEM")]
    NoKey,
    /// There is no authority.
    #[error("there is no authority in PEM")]
    NoAuthority,
    /// They do not fit together, or are not good for it.
    #[error("{0}")]
    Unusable(String),
}

/// What encrypts connections: a chain of certificates and its key, in PEM. With authorities, only
/// clients with a certificate of theirs are let in.
pub fn acceptor(
    chain: &[u8],
    key: &[u8],
    authorities: Option<&[u8]>,
) -> Result<TlsAcceptor, TlsError> {
    let unusable = |error: &dyn ToString| TlsError::Unusable(error.to_string());
    let chain = certificates(chain).ok_or(TlsError::NoCertificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::NoKey)?;
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    let builder = match authorities {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            for authority in certificates(authorities).ok_or(TlsError::NoAuthority)? {
                roots.add(authority).map_err(|error| unusable(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(&error))?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_slice_iter(pem);
    let certificates = certificates.collect::<Result<Vec<_>, _>>().ok()?;
    (!certificates.is_empty()).then_some(certificates)
}
