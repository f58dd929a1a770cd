//! Chooses the protocol of a link if the user chose none: by the remembered values of the path, or by the round-trip
//! time where too little is known. A link by QUIC is not waited for if TCP connects; a path that blocks QUIC is
//! remembered.

use std::net::IpAddr;
use std::time::Duration;

use array::{ErrorKind, Result};
use futures::future::BoxFuture;
use link::multistream::MAX_STREAMS;
use link::quic::{EndpointOptions, Start};
use link::{LONG_RTT, Link, Protocol, RaceOutcome, TcpOptions, Trust, race};
use plan::{Advised, Measurement, link_protocol, link_streams};
use tokio::time::timeout;

use super::Endpoint;
use crate::paths::{Paths, now};

/// Timeout for QUIC while TCP transfers data. Lost first packets are sent again after one second.
pub(super) const QUIC_TIMEOUT: Duration = Duration::from_secs(3);

/// A link, and the link by QUIC that may follow.
pub(super) struct OpenedLink {
    pub(super) link: Link,
    pub(super) later: Option<PendingLink>,
}

/// A link by QUIC, if it connects within its timeout.
pub(super) type PendingLink = BoxFuture<'static, Option<Link>>;

/// Connects by the best protocol for the path.
///
/// # Errors
/// The errors of [`link::dial`]; if both protocols fail, the error of the recommended one.
///
/// # Cancel safety
/// Dropping the future closes the sockets.
pub(super) async fn connect(
    server: &Endpoint,
    tcp: TcpOptions,
    options: &EndpointOptions,
) -> Result<OpenedLink> {
    if let Some(paths) = &server.paths
        && !matches!(server.trust, Trust::Plain)
        && let Some(host) = address_of(server).await.filter(|host| !host.is_loopback())
        && let Some(known) = paths.recall(host, None).await
    {
        return connect_by(&link_protocol(&known.path, now()), server, (tcp, options), paths, host).await;
    }
    let raced = race(&server.host, server.port, &server.trust, tcp, options, LONG_RTT).await?;
    let later =
        raced.later.map(|later| -> PendingLink { Box::pin(async move { in_time(later).await.ok() }) });
    Ok(OpenedLink { link: raced.link, later })
}

/// Returns the recommended number of TCP streams, as far as the path is known; one for this machine.
pub(super) async fn streams(server: &Endpoint) -> u32 {
    let Some(paths) = &server.paths else { return 1 };
    let Some(host) = address_of(server).await.filter(|host| !host.is_loopback()) else { return 1 };
    let Some(known) = paths.recall_soon(host, None).await else { return 1 };
    let advised = link_streams(&known.path, now());
    tracing::debug!(%host, streams = advised.value, why = advised.basis);
    advised.value.map_or(1, |streams| streams.clamp(1, MAX_STREAMS))
}

async fn address_of(server: &Endpoint) -> Option<IpAddr> {
    let found = tokio::net::lookup_host((server.host.as_str(), server.port)).await;
    Some(found.ok()?.next()?.ip().to_canonical())
}

async fn connect_by(
    advised: &Advised<&'static str>,
    server: &Endpoint,
    (tcp, options): (TcpOptions, &EndpointOptions),
    paths: &Paths,
    host: IpAddr,
) -> Result<OpenedLink> {
    tracing::debug!(%host, link = advised.value, why = advised.basis);
    let quic_from = match advised.value {
        Some("tcp") => return by_tcp(server, tcp, options).await,
        Some("quic") => Duration::ZERO,
        _ => LONG_RTT,
    };
    let RaceOutcome { link, later } =
        race(&server.host, server.port, &server.trust, tcp, options, quic_from).await?;
    let paths = paths.clone();
    let later = later.map(|later| -> PendingLink {
        Box::pin(async move {
            match in_time(later).await {
                Ok(link) => Some(link),
                Err(no_response) => {
                    if no_response {
                        tracing::info!(%host, "QUIC does not connect: using TCP");
                        paths.record(host, vec![Measurement::Udp(false)]);
                    }
                    None
                }
            }
        })
    });
    Ok(OpenedLink { link, later })
}

/// Connects by TCP; by QUIC where TCP cannot connect.
async fn by_tcp(server: &Endpoint, tcp: TcpOptions, options: &EndpointOptions) -> Result<OpenedLink> {
    let Endpoint { host, port, trust, .. } = server;
    let error = match link::dial(host, *port, trust, Protocol::Tcp, tcp, options).await {
        Err(error) if is_unreached(&error) => error,
        done => return done.map(|link| OpenedLink { link, later: None }),
    };
    let link = timeout(QUIC_TIMEOUT, by_quic(server, options)).await.unwrap_or_else(|_| Err(error.clone()));
    let link = link.map_err(|also| error.context(format!("QUIC did not connect either ({also})")))?;
    tracing::warn!(host, "TCP did not connect: using QUIC");
    Ok(OpenedLink { link, later: None })
}

/// Connects by QUIC and waits for a response, because a session ticket of an earlier connection shows nothing about the
/// path now.
pub(super) async fn by_quic(server: &Endpoint, options: &EndpointOptions) -> Result<Link> {
    let options = EndpointOptions { start: Start::Proven, ..*options };
    let Endpoint { host, port, trust, .. } = server;
    link::dial(host, *port, trust, Protocol::Quic, TcpOptions::default(), &options).await
}

/// Returns the link; the error is true if there was no response. A missing response usually means that UDP is dropped
/// on the path, so the timeout is shorter than that of TCP.
async fn in_time(later: BoxFuture<'static, Result<Link>>) -> std::result::Result<Link, bool> {
    match timeout(QUIC_TIMEOUT, later).await {
        Ok(Ok(link)) => Ok(link),
        Ok(Err(error)) => Err(is_unreached(&error)),
        Err(_) => Err(true),
    }
}

/// Returns whether there was no response, so that another protocol may connect.
fn is_unreached(error: &array::Error) -> bool {
    matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use super::*;
    use crate::dial::ConnectOptions;
    use link::{Identity, quic};
    use plan::Path;
    use tokio::net::{TcpListener, UdpSocket};
    use tokio::task::JoinSet;
    use wire::{ClientConfig, ServerConfig};

    fn advised(value: &'static str) -> Advised<&'static str> {
        Advised {
            value: Some(value),
            basis: "chosen by the test".into(),
            ..link_protocol(&Path::default(), now())
        }
    }

    /// Starts a server of TLS over TCP, without a listener for UDP; returns its address and tasks.
    async fn by_tcp(identity: &Identity) -> (Endpoint, SocketAddr, JoinSet<()>) {
        let config = identity.server_config(&[link::carrier::tls::ALPN_WIRE]).expect("an identity");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut sessions = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                sessions.push(link::carrier::tls::accept(stream, Arc::clone(&config)).await);
            }
        });
        let server = Endpoint {
            host: "127.0.0.1".into(),
            port: address.port(),
            trust: Trust::Fingerprint(identity.fingerprint()),
            token: String::new(),
            window_bytes: 1 << 20,
            reach: ConnectOptions::default(),
            paths: None,
        };
        (server, address, tasks)
    }

    fn identity() -> Identity {
        Identity::self_signed(&["localhost".into()]).expect("an identity")
    }

    fn at_once() -> EndpointOptions {
        EndpointOptions { start: Start::AtOnce, ..EndpointOptions::default() }
    }

    /// Connects once by QUIC to a temporary listener of the server, so that this process stores a session ticket.
    async fn store_ticket(server: &Endpoint, address: SocketAddr, identity: &Identity) {
        let listener = quic::Listener::bind(address, identity, at_once()).expect("the same port of UDP");
        let serving = async {
            let link = listener.accept().await.expect("a client").establish().await.expect("a handshake");
            let (connection, driver) = link::serve(link, ServerConfig::default()).expect("a link");
            let welcoming = async {
                connection.hello().await.expect("a hello");
                connection.accept();
                while connection.next().await.is_some() {}
            };
            tokio::join!(driver, welcoming);
        };
        let asking = async {
            let link = quic::connect(&server.host, server.port, &server.trust, &at_once()).await;
            let (client, driver) =
                link::connect(link.expect("a link"), ClientConfig::default()).expect("a client");
            tokio::select! {
                () = driver => {}
                welcome = client.welcomed() => drop(welcome.expect("a welcome")),
            }
        };
        tokio::select! {
            () = serving => {}
            () = asking => {}
        }
    }

    /// Binds a UDP port that does not answer, as soon as the port is free.
    async fn unanswering_port(address: SocketAddr) -> UdpSocket {
        loop {
            match UdpSocket::bind(address).await {
                Ok(socket) => return socket,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    #[tokio::test]
    async fn tcp_is_used_if_udp_is_blocked_which_is_remembered() {
        let identity = identity();
        let (server, address, _tasks) = by_tcp(&identity).await;
        let _udp = unanswering_port(address).await;
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::in_folder(folder.path());
        let host: IpAddr = "192.0.2.7".parse().unwrap();
        let OpenedLink { link, later } = connect_by(
            &advised("quic"),
            &server,
            (TcpOptions::default(), &EndpointOptions::default()),
            &paths,
            host,
        )
        .await
        .unwrap();
        assert_eq!(link.flow().unwrap().statistics().protocol, "tcp");
        assert!(later.unwrap().await.is_none(), "QUIC is tried while TCP transfers data");
        let known = paths.recall(host, None).await.unwrap().path;
        let next = link_protocol(&known, now());
        assert_eq!(next.value, Some("tcp"));
        assert!(next.basis.contains("did not get through"), "{}", next.basis);
    }

    #[tokio::test]
    async fn a_session_ticket_does_not_count_as_a_response() {
        let identity = identity();
        let (server, address, _tasks) = by_tcp(&identity).await;
        store_ticket(&server, address, &identity).await;
        let _udp = unanswering_port(address).await;
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::in_folder(folder.path());
        let host: IpAddr = "192.0.2.8".parse().unwrap();
        let OpenedLink { link, .. } =
            connect_by(&advised("quic"), &server, (TcpOptions::default(), &at_once()), &paths, host)
                .await
                .unwrap();
        assert_eq!(link.flow().unwrap().statistics().protocol, "tcp");
    }
}
