//! TLS: certificates, their fingerprints, and the servers that a client trusts.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use aws_lc_rs::{aead, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs as provider, verify_tls12_signature,
    verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, ServerConfig,
};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};
use wire::{Error, ErrorKind, Result, Retry};

use crate::carrier::broken;
use crate::carrier::tcp::{CONNECT_TIMEOUT, READ_BYTES, too_slow};

/// Measures how much one core of this host encrypts with AES-256-GCM, bytes per second; takes about as long
/// as requested.
#[must_use]
pub fn cipher_bytes_per_sec(within: std::time::Duration) -> f64 {
    /// Size of a TLS record, bytes.
    const RECORD_BYTES: usize = 16 << 10;
    let Ok(key) = aead::UnboundKey::new(&aead::AES_256_GCM, &[7; 32]).map(aead::LessSafeKey::new) else {
        return f64::NAN;
    };
    let mut record = vec![0; RECORD_BYTES];
    let begun = tokio::time::Instant::now();
    let mut records = 0_u32;
    while begun.elapsed() < within || records == 0 {
        // The encrypted data is discarded, so the nonce may repeat.
        let nonce = aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN]);
        if key.seal_in_place_separate_tag(nonce, aead::Aad::empty(), &mut record).is_err() {
            return f64::NAN;
        }
        records += 1;
    }
    f64::from(records) * RECORD_BYTES as f64 / begun.elapsed().as_secs_f64()
}

/// ALPN protocol name of the protocol.
pub const ALPN_WIRE: &[u8] = b"corridor/1";
/// ALPN protocol name of the protocol with the bulk of large items in datagrams; QUIC only.
pub const ALPN_LOSSY: &[u8] = b"corridor-lossy/1";
/// ALPN protocol name of the first stream of a link of several streams; TCP only.
pub const ALPN_STREAMS: &[u8] = b"corridor-streams/1";
/// ALPN protocol name of the further streams.
pub const ALPN_JOIN: &[u8] = b"corridor-join/1";
/// ALPN protocol name of HTTP, which carries WebSockets.
pub const ALPN_HTTP: &[u8] = b"http/1.1";

/// Size of a session's buffer of encrypted data, bytes: one system call's worth.
const WRITE_BYTES: usize = 256 << 10;

/// Servers that a client trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificate with this fingerprint only, whatever its name: for servers with a self-signed certificate.
    Fingerprint(Fingerprint),
    /// Certificates that this machine trusts. The machine's own list and not a built-in one, because
    /// computing centers add their authorities there.
    System,
    /// Any server, without encryption, on loopback only.
    Plain,
}

/// SHA-256 of a certificate; written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    const PREFIX: &str = "sha256:";

    fn of(certificate: &CertificateDer<'_>) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, certificate).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected a fingerprint like `sha256:` and 64 hexadecimal digits, found `{text}`"
            ))
        };
        let digits = text.strip_prefix(Self::PREFIX).filter(|d| d.len() == 64).ok_or_else(bad)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok().filter(|p| p.chars().all(|c| c.is_ascii_hexdigit()));
            *byte = pair.and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(bad)?;
        }
        Ok(Self(bytes))
    }
}

/// Certificate of a server with its private key.
pub struct Identity {
    certificate_pem: String,
    key_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    fingerprint: Fingerprint,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}

impl Identity {
    /// Host names of the certificate; `*.example.org` matches those of a domain.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let Some(certificate) = self.chain.first() else { return Vec::new() };
        let parsed = webpki::EndEntityCert::try_from(certificate);
        parsed.map(|own| own.valid_dns_names().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// Creates a self-signed certificate for these host names and addresses. Clients trust it by its
    /// fingerprint, so both texts should be stored and reused.
    ///
    /// # Errors
    /// `Invalid` for a name that cannot be part of a certificate.
    pub fn self_signed(hosts: &[String]) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(hosts).map_err(|e| {
            Error::invalid(format!("expected host names for a certificate, found {hosts:?}: {e}"))
        })?;
        Self::from_pem(&made.cert.pem(), &made.signing_key.serialize_pem())
    }

    /// Reads the PEM texts of a certificate (followed by its chain) and of its private key.
    ///
    /// # Errors
    /// `Corrupt` when a text contains none, or when they do not belong together.
    pub fn from_pem(certificate_pem: &str, key_pem: &str) -> Result<Self> {
        let bad =
            |what: &str, e: &dyn fmt::Display| Error::corrupt(format!("expected {what} in PEM, found: {e}"));
        let chain = CertificateDer::pem_slice_iter(certificate_pem.as_bytes())
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|e| bad("a certificate", &e))?;
        let first = chain.first().ok_or_else(|| bad("a certificate", &"nothing"))?;
        let fingerprint = Fingerprint::of(first);
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).map_err(|e| bad("a private key", &e))?;
        let (certificate_pem, key_pem) = (certificate_pem.to_owned(), key_pem.to_owned());
        let identity = Self { certificate_pem, key_pem, chain, key, fingerprint };
        identity.server_config(&[])?;
        Ok(identity)
    }

    /// PEM text of the certificate, to be stored.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// PEM text of the private key, to be stored where only its owner can read it.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Fingerprint of the certificate, which clients pin.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Creates the TLS configuration of a server with this identity, offering these protocols in order of
    /// preference.
    ///
    /// # Errors
    /// `Corrupt` when certificate and key do not belong together.
    pub fn server_config(&self, protocols: &[&[u8]]) -> Result<Arc<ServerConfig>> {
        let mut config = ServerConfig::builder_with_provider(crypto())
            .with_safe_default_protocol_versions()
            .and_then(|b| b.with_no_client_auth().with_single_cert(self.chain.clone(), self.key.clone_key()))
            .map_err(|e| Error::corrupt(format!("expected a certificate and its key, found: {e}")))?;
        config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

/// Performs the TLS handshake on an accepted socket; the session contains the negotiated protocol.
///
/// # Errors
/// `TimedOut` or `Unreachable` when the client does not finish.
///
/// # Cancel safety
/// Dropping the future closes the socket.
pub async fn accept<S>(stream: S, config: Arc<ServerConfig>) -> Result<server::TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let accepting = TlsAcceptor::from(config).accept(stream);
    let done = tokio::time::timeout(CONNECT_TIMEOUT, accepting).await;
    let mut session = done.map_err(|_| too_slow())?.map_err(broken)?;
    session.get_mut().1.set_buffer_limit(Some(WRITE_BYTES));
    Ok(session)
}

/// ALPN protocol names of a server over TCP, in order of preference.
pub const SERVED: [&[u8]; 4] = [ALPN_STREAMS, ALPN_WIRE, ALPN_JOIN, ALPN_HTTP];

pub(crate) async fn connect(
    stream: TcpStream,
    host: &str,
    protocols: &[&[u8]],
    trust: &Trust,
) -> Result<client::TlsStream<BufReader<TcpStream>>> {
    let mut config = client_config(trust)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Error::invalid(format!("expected a host name or address, found `{host}`")))?;
    let stream = BufReader::with_capacity(READ_BYTES, stream);
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(refused)
}

/// Creates the TLS configuration of a client with this trust, without protocol names.
///
/// # Errors
/// `Internal` when no TLS version is usable.
pub fn client_config(trust: &Trust) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(crypto())
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal(format!("expected usable TLS versions, found: {e}")))?;
    Ok(match trust {
        Trust::Fingerprint(expected) => {
            let pinned = Pinned { expected: *expected, provider: crypto() };
            builder.dangerous().with_custom_certificate_verifier(Arc::new(pinned)).with_no_client_auth()
        }
        Trust::System | Trust::Plain => builder.with_root_certificates(system_roots()).with_no_client_auth(),
    })
}

/// Certificates that this machine trusts: hundreds of files, read once for all connections.
fn system_roots() -> Arc<RootCertStore> {
    static FOUND: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    Arc::clone(FOUND.get_or_init(read))
}

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

/// Maps an error of the handshake: tells an untrusted server, or another program, from a server that cannot
/// be reached.
fn refused(error: std::io::Error) -> Error {
    let message = match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => {
            let message = "expected a Corridor server, found another program: it does not speak TLS";
            return Error::new(ErrorKind::Unreachable, message).with_retry(Retry::Never);
        }
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(ours)))) => {
            ours.to_string()
        }
        Some(rustls::Error::InvalidCertificate(other)) => {
            format!("expected a certificate that this machine trusts, found: {other:?}")
        }
        _ => return broken(error),
    };
    Error::new(ErrorKind::Denied, message)
}

/// Verifier that accepts one certificate. The signature of the handshake proves that the server holds its
/// key.
#[derive(Debug)]
struct Pinned {
    expected: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(end_entity);
        if found == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        let expected = self.expected;
        let error = Error::new(
            ErrorKind::Denied,
            format!("expected the server's certificate to have the fingerprint {expected}, found {found}"),
        );
        Err(CertificateError::Other(OtherError(Arc::new(error))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
