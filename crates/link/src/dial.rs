//! Connecting by the protocol that suits the path: TCP for short paths, QUIC for long ones.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use tokio::time::timeout;
use wire::{Error, Result};

use crate::multistream::{self, Rails};
use crate::{Link, Trust, quic};

/// Shortest round trip for which QUIC is chosen automatically. Below it TCP needs a quarter of the processor time, fills 1 Gb/s without
/// losses (115 MB/s at 20 ms, where QUIC reached 86 on two cores), and its windows grow soon enough.
pub const LONG_RTT: Duration = Duration::from_millis(50);

/// Longest time that TCP has to connect once QUIC is ready, where TCP is preferred: many round trips of a path that is not long, and
/// the handshake of a busy machine. A firewall that drops packets of TCP delays the link no longer than this.
const TCP_WITHIN: Duration = Duration::from_millis(500);

/// Protocol of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// QUIC where the round trip is [`LONG_RTT`] or more and UDP gets through, else TCP.
    #[default]
    Auto,
    /// TLS over TCP.
    Tcp,
    /// QUIC, or not at all.
    Quic,
    /// QUIC with the bulk of large items in datagrams, delivered out of order and retransmitted if lost.
    Lossy,
    /// `Lossy` with parity (a tenth more bytes), from which most lost datagrams are restored.
    LossyRedundant,
}

impl Protocol {
    /// Protocols by name.
    const NAMES: [(&str, Self); 5] = [
        ("auto", Self::Auto),
        ("tcp", Self::Tcp),
        ("quic", Self::Quic),
        ("lossy", Self::Lossy),
        ("lossy+fec", Self::LossyRedundant),
    ];
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let unknown = || {
            let names = Self::NAMES.map(|(name, _)| format!("`{name}`")).join(", ");
            Error::invalid(format!("expected the link to be one of {names}, found `{text}`"))
        };
        found.map(|(_, protocol)| *protocol).ok_or_else(unknown)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, protocol)| protocol == self);
        f.write_str(found.map_or("auto", |(name, _)| name))
    }
}

/// Number of TCP connections of a link, and the routes that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOptions {
    /// Connections, 1 to [`MAX_STREAMS`](multistream::MAX_STREAMS); at least one for each rail.
    pub streams: u32,
    /// Routes of the connections after the first.
    pub rails: Rails,
}

impl Default for TcpOptions {
    /// One connection, to the address that the server's name resolves to.
    fn default() -> Self {
        Self { streams: 1, rails: Rails::default() }
    }
}

/// Connects to a data server. `tcp` applies to links by TCP.
///
/// # Errors
/// `Unreachable` or `TimedOut` when no server answers, `Denied` when the server's identity is not the trusted
/// one; with `Auto`, the error of TCP.
///
/// # Cancel safety
/// Dropping the future closes the sockets.
pub async fn connect(
    host: &str,
    port: u16,
    trust: &Trust,
    protocol: Protocol,
    tcp: TcpOptions,
    options: &quic::EndpointOptions,
) -> Result<Link> {
    let TcpOptions { streams, rails } = tcp;
    match protocol {
        Protocol::Tcp => multistream::connect(host, port, trust, streams, rails).await,
        Protocol::Quic => quic::connect(host, port, trust, options).await,
        Protocol::Lossy | Protocol::LossyRedundant => {
            let bulk = quic::BulkTransport::Lossy { redundancy: protocol == Protocol::LossyRedundant };
            quic::connect(host, port, trust, &quic::EndpointOptions { bulk, ..*options }).await
        }
        Protocol::Auto => race(host, port, trust, tcp, options, LONG_RTT).await.map(|raced| raced.link),
    }
}

/// True for this machine, to which no path is long.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Result of [`race`]: a link, and possibly a second one that is still connecting.
pub struct RaceOutcome {
    /// Link by the protocol that was chosen so far.
    pub link: Link,
    /// QUIC link that is still connecting, on a path where QUIC is preferred.
    pub later: Option<BoxFuture<'static, Result<Link>>>,
}

/// Connects by TCP and QUIC at once. QUIC needs a round trip less, so it usually connects first; its round
/// trip then decides: from `quic_from` on QUIC is used, else TCP if it connects within half a second. Where
/// TCP connects first it is used at once, because UDP may be blocked on the way, and requests should not wait
/// until that is known. Plain connections use TCP, and so do connections to this machine unless `quic_from`
/// is zero.
///
/// # Errors
/// The error of TCP, where neither connects.
///
/// # Cancel safety
/// Dropping the future closes the sockets.
pub async fn race(
    host: &str,
    port: u16,
    trust: &Trust,
    tcp: TcpOptions,
    options: &quic::EndpointOptions,
    quic_from: Duration,
) -> Result<RaceOutcome> {
    let only = |link| RaceOutcome { link, later: None };
    let TcpOptions { streams, rails } = tcp;
    if matches!(trust, Trust::Plain) || (is_here(host) && !quic_from.is_zero()) {
        return multistream::connect(host, port, trust, streams, rails).await.map(only);
    }
    // The race waits for the handshake.
    let options = quic::EndpointOptions { start: quic::Start::Proven, ..*options };
    let (to, trusted) = (host.to_owned(), trust.clone());
    let by_quic: BoxFuture<'static, Result<Link>> =
        Box::pin(async move { quic::connect(&to, port, &trusted, &options).await });
    let by_tcp = Box::pin(multistream::connect(host, port, trust, streams, rails));
    chosen(by_quic, by_tcp, quic_from).await
}

/// Chooses between two links that are connecting; see [`race`].
async fn chosen(
    by_quic: BoxFuture<'static, Result<Link>>,
    by_tcp: impl Future<Output = Result<Link>> + Unpin,
    quic_from: Duration,
) -> Result<RaceOutcome> {
    let only = |link| RaceOutcome { link, later: None };
    let is_long = |link: &Link| round_trip(link).is_some_and(|rtt| rtt >= quic_from);
    match select(by_quic, by_tcp).await {
        Either::Left((Ok(by_quic), _)) if is_long(&by_quic) => Ok(only(by_quic)),
        // TCP costs less on a short path, if it connects.
        Either::Left((Ok(by_quic), by_tcp)) => match timeout(TCP_WITHIN, by_tcp).await {
            Ok(Ok(by_tcp)) => Ok(only(by_tcp)),
            _ => Ok(only(by_quic)),
        },
        Either::Left((Err(_), by_tcp)) => by_tcp.await.map(only),
        Either::Right((Err(error), by_quic)) => by_quic.await.map(only).map_err(|_| error),
        Either::Right((Ok(by_tcp), by_quic)) => {
            let later = is_long(&by_tcp).then_some(by_quic);
            Ok(RaceOutcome { link: by_tcp, later })
        }
    }
}

fn round_trip(link: &Link) -> Option<Duration> {
    link.flow().and_then(|flow| flow.statistics().rtt)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// Creates a link that is identified by its peer.
    fn named(peer: &str) -> Link {
        let (mut link, _) = crate::carrier::local::pair();
        link.peer = peer.to_owned();
        link
    }

    #[tokio::test(start_paused = true)]
    async fn quic_is_chosen_after_a_short_time_if_tcp_is_dropped() {
        let begun = Instant::now();
        let by_quic = Box::pin(ready(Ok::<_, Error>(named("quic"))));
        let raced = chosen(by_quic, pending(), LONG_RTT).await.expect("a link");
        assert!(raced.link.peer == "quic" && raced.later.is_none());
        assert!(begun.elapsed() < 2 * TCP_WITHIN, "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn tcp_is_preferred_where_it_connects_soon_after_quic() {
        let by_quic = Box::pin(ready(Ok::<_, Error>(named("quic"))));
        let by_tcp = Box::pin(async {
            sleep(TCP_WITHIN / 2).await;
            Ok(named("tcp"))
        });
        let raced = chosen(by_quic, by_tcp, LONG_RTT).await.expect("a link");
        assert_eq!(raced.link.peer, "tcp");
    }

    #[test]
    fn protocols_have_names() {
        for (name, protocol) in Protocol::NAMES {
            assert_eq!(name.parse::<Protocol>().unwrap(), protocol);
            assert_eq!(protocol.to_string(), name);
        }
        assert!("udp".parse::<Protocol>().unwrap_err().to_string().contains("`udp`"));
    }
}
