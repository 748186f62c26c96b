//! TLS towards PostgreSQL: libpq's modes over rustls, with the one crypto provider of the whole binary.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, OtherError, RootCertStore,
    SignatureScheme,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::postgres::url::{TlsMode, TlsOptions};

/// Where systems keep the roots that they trust, for `verify-ca` and `verify-full` without `sslrootcert`.
const SYSTEM_ROOTS: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Makes TLS connections as the options of a URL say.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads certificates and keys from their files; blocks briefly. The error is a reason for a person.
    pub(crate) fn new(options: &TlsOptions) -> Result<Tls, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = verifier(options, &provider)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&options.certificate, &options.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key).map_err(|e| format!("{}: {e}", key.display()))?;
                config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
            }
            _ => config.with_no_client_auth(),
        };
        Ok(Tls { config: Arc::new(config) })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let all = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{shown}: {error}"))?;
    if all.is_empty() { Err(format!("{shown}: there is no certificate in it")) } else { Ok(all) }
}

/// How far a server's certificate is looked into.
#[derive(Debug)]
struct Verifier {
    // None: nothing is verified.
    chain: Option<Arc<WebPkiServerVerifier>>,
    // Certificates that are trusted as they are: PostgreSQL's users often give the server's own as the root.
    pinned: Vec<CertificateDer<'static>>,
    check_name: bool,
    provider: Arc<CryptoProvider>,
}

fn verifier(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
    let provider = provider.clone();
    if !options.verifies() {
        return Ok(Verifier { chain: None, pinned: Vec::new(), check_name: false, provider });
    }
    let path = match options.root_file() {
        Some(path) => path,
        None => SYSTEM_ROOTS
            .iter()
            .map(Path::new)
            .find(|path| path.exists())
            .ok_or("this system has no bundle of trusted roots; give one as sslrootcert=FILE")?,
    };
    let pinned = certificates(path)?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(pinned.iter().cloned());
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    let pinned = if options.root_file().is_some() { pinned } else { Vec::new() };
    Ok(Verifier { chain: Some(chain), pinned, check_name: options.mode == TlsMode::VerifyFull, provider })
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        if self.pinned.iter().any(|pinned| pinned == end_entity) {
            if self.check_name {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            // The name is looked at last, so the chain is good when the name is what is wrong.
            Err(TlsError::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.check_name => Ok(ServerCertVerified::assertion()),
            outcome => outcome,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type TlsConnect = Connector;
    type Error = TlsError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Connector, TlsError> {
        // A unix socket has no host name, and no TLS: the connector made for it is never used.
        let host = if host.is_empty() { "localhost" } else { host };
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| TlsError::Other(OtherError(Arc::new(error))))?;
        Ok(Connector { connector: TlsConnector::from(self.config.clone()), name })
    }
}

/// Turns one connection into a TLS connection.
pub(crate) struct Connector {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Encrypted(Box::new(self.connector.connect(self.name, stream).await?))) })
    }
}

/// A connection under TLS.
pub(crate) struct Encrypted<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(|chain| chain.first());
        match certificate.and_then(|c| crate::postgres::binding::server_end_point(c)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
