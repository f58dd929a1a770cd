//! Connecting by the protocol that suits the path: TCP where it is short, QUIC where it is long.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures::future::{Either, select};
use tokio::time::timeout;
use wire::{Error, Result};

use crate::streams::{self, Rails};
use crate::{Link, Trust, quic};

/// From this round trip on QUIC is chosen by itself: below, TCP costs a quarter of the processor time, and its windows
/// grow soon enough.
pub const LONG_RTT: Duration = Duration::from_millis(5);
/// How much longer than TCP's handshake QUIC's may take, at least.
const LEAST_GRACE: Duration = Duration::from_millis(20);

/// Which protocol to connect by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// QUIC where the round trip is [`LONG_RTT`] or more and UDP gets through, else TCP.
    Auto,
    /// TLS over TCP.
    #[default]
    Tcp,
    /// QUIC, or not at all.
    Quic,
    /// QUIC, the bulk of large items by datagrams: each is of use when it comes, and lost ones come again.
    Lossy,
    /// The same with parity, from which most of those that are lost are made again: a tenth more bytes.
    LossyRedundant,
}

impl Protocol {
    /// All, by name.
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

/// How many TCP connections one link takes, and by which ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ways {
    /// Connections, 1 to [`MAX_STREAMS`](streams::MAX_STREAMS); one for each rail at the least.
    pub streams: u32,
    /// Ways of those after the first.
    pub rails: Rails,
}

impl Default for Ways {
    /// One, by the way that the server's name leads to.
    fn default() -> Self {
        Self { streams: 1, rails: Rails::default() }
    }
}

/// Connects to a data server; by TCP in these ways.
///
/// # Errors
/// `Unreachable` or `TimedOut` when nobody answers, `Denied` when the other side is not who it should be; with `Auto`,
/// TCP's.
///
/// # Cancel safety
/// Dropping it closes the sockets.
pub async fn connect(
    host: &str,
    port: u16,
    trust: &Trust,
    protocol: Protocol,
    ways: Ways,
    options: &quic::Options,
) -> Result<Link> {
    let Ways { streams, rails } = ways;
    match protocol {
        Protocol::Tcp => streams::connect(host, port, trust, streams, rails).await,
        Protocol::Quic => quic::connect(host, port, trust, options).await,
        Protocol::Lossy | Protocol::LossyRedundant => {
            let bulk = quic::Bulk::Lossy { redundancy: protocol == Protocol::LossyRedundant };
            quic::connect(host, port, trust, &quic::Options { bulk, ..*options }).await
        }
        Protocol::Auto if matches!(trust, Trust::Plain) || is_here(host) => {
            streams::connect(host, port, trust, streams, rails).await
        }
        Protocol::Auto => faster(host, port, trust, ways, options).await,
    }
}

/// This machine needs no long path.
fn is_here(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Tries both at once. QUIC needs a round trip less, so it is mostly first and then says how long the path is.
async fn faster(host: &str, port: u16, trust: &Trust, ways: Ways, options: &quic::Options) -> Result<Link> {
    let Ways { streams, rails } = ways;
    // Its handshake is what is waited for here.
    let options = quic::Options { start: quic::Start::Proven, ..*options };
    let by_tcp = Box::pin(streams::connect(host, port, trust, streams, rails));
    let by_quic = Box::pin(quic::connect(host, port, trust, &options));
    let start = tokio::time::Instant::now();
    match select(by_quic, by_tcp).await {
        Either::Left((Ok(by_quic), by_tcp)) => {
            if is_long(&by_quic) {
                return Ok(by_quic);
            }
            // It costs less there, if it gets through.
            by_tcp.await.or(Ok(by_quic))
        }
        Either::Left((Err(_), by_tcp)) => by_tcp.await,
        Either::Right((Err(error), by_quic)) => by_quic.await.map_err(|_| error),
        Either::Right((Ok(by_tcp), by_quic)) => {
            // Two handshakes' round trips so soon: a path that is short needs no waiting for QUIC.
            if start.elapsed() < 2 * LONG_RTT {
                return Ok(by_tcp);
            }
            let by_quic = timeout(start.elapsed().max(LEAST_GRACE), by_quic).await;
            Ok(by_quic.ok().and_then(Result::ok).filter(is_long).unwrap_or(by_tcp))
        }
    }
}

/// Whether it goes over a long path.
fn is_long(link: &Link) -> bool {
    link.flow().and_then(|flow| flow.statistics().rtt).is_some_and(|rtt| rtt >= LONG_RTT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_have_names() {
        for (name, protocol) in Protocol::NAMES {
            assert_eq!(name.parse::<Protocol>().unwrap(), protocol);
            assert_eq!(protocol.to_string(), name);
        }
        assert!("udp".parse::<Protocol>().unwrap_err().to_string().contains("`udp`"));
    }
}
