//! Rails: additional routes to a server, by other addresses of its host or of this one.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use tokio::net::{TcpSocket, TcpStream};
use wire::{Error, Result};

use crate::carrier::tcp::unreachable;

/// Most rails of one link.
pub const MAX_RAILS: usize = 8;

/// Route: source address, destination address, or both; the rest is as on the first stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rail {
    from: Option<IpAddr>,
    to: Option<(IpAddr, Option<u16>)>,
}

impl Rail {
    /// Connects to the server whose first stream goes to `first`.
    ///
    /// # Errors
    /// `Unreachable` when the addresses are of different families, the source is not an address of this host,
    /// or no server answers.
    pub(super) async fn connect(self, first: SocketAddr) -> Result<TcpStream> {
        let to = self.to.map_or(first, |(ip, port)| SocketAddr::new(ip, port.unwrap_or(first.port())));
        let socket =
            if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(unreachable)?;
        if let Some(from) = self.from {
            socket.bind(SocketAddr::new(from, 0)).map_err(unreachable)?;
        }
        socket.connect(to).await.map_err(unreachable)
    }
}

impl FromStr for Rail {
    type Err = Error;

    /// Parses `TO`, `FROM@TO` or `FROM@`: addresses, the server's optionally with a port.
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::invalid(format!(
                "expected a rail such as `10.1.0.2`, `10.1.0.1@10.1.0.2:26774` or `10.1.0.1@`, found `{text}`"
            ))
        };
        let (from, to) = text.split_once('@').map_or((None, text), |(from, to)| (Some(from), to));
        let from = from.map(str::parse).transpose().map_err(|_| bad())?;
        let with_port = |text: &str| text.parse::<SocketAddr>().map(|at| (at.ip(), Some(at.port())));
        let alone = |text: &str| text.parse().map(|ip| (ip, None));
        let to = match to {
            "" if from.is_some() => None,
            to => Some(with_port(to).or_else(|_| alone(to)).map_err(|_| bad())?),
        };
        Ok(Self { from, to })
    }
}

/// Rails of a link; empty for the route of the first stream only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rails([Option<Rail>; MAX_RAILS]);

impl Rails {
    /// Number of rails.
    #[must_use]
    pub fn count(&self) -> u32 {
        u32::try_from(self.0.iter().flatten().count()).unwrap_or(u32::MAX)
    }

    /// Routes of the further streams: one rail after another, then the first stream's route (`None`),
    /// repeatedly.
    pub(super) fn in_turn(self) -> impl Iterator<Item = Option<Rail>> {
        let rails: Vec<Rail> = self.0.into_iter().flatten().collect();
        let turn: Vec<Option<Rail>> = rails.into_iter().map(Some).chain([None]).collect();
        turn.into_iter().cycle()
    }
}

impl FromStr for Rails {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut rails = [None; MAX_RAILS];
        for (number, rail) in text.split(',').enumerate() {
            let place = rails.get_mut(number).ok_or_else(|| {
                Error::invalid(format!("expected at most {MAX_RAILS} rails, found more in `{text}`"))
            })?;
            *place = Some(rail.trim().parse()?);
        }
        Ok(Self(rails))
    }
}

impl fmt::Display for Rail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(from) = self.from {
            write!(f, "{from}@")?;
        }
        match self.to {
            Some((ip, Some(port))) => write!(f, "{}", SocketAddr::new(ip, port)),
            Some((ip, None)) => write!(f, "{ip}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rails_are_written_as_they_are_read() {
        for text in
            ["10.1.0.2", "10.1.0.2:9", "10.1.0.1@10.1.0.2", "10.1.0.1@", "fd00::1@[fd00::2]:9", "fd00::2"]
        {
            assert_eq!(text.parse::<Rail>().unwrap().to_string(), text);
        }
        for text in ["", "@", "host", "10.1.0.1@host", "x@10.1.0.2", "10.1.0.2:", "10.1.0.2:70000"] {
            assert!(text.parse::<Rail>().unwrap_err().to_string().contains("rail"), "{text}");
        }
        assert!(["10.1.0.2"; MAX_RAILS + 1].join(",").parse::<Rails>().is_err());
    }

    #[test]
    fn further_streams_take_rails_in_turn_and_then_the_first_way() {
        let rails: Rails = "10.1.0.2, 10.2.0.2".parse().unwrap();
        let turn: Vec<String> = rails
            .in_turn()
            .take(4)
            .map(|rail| rail.map_or("first".into(), |rail| rail.to_string()))
            .collect();
        assert_eq!(turn, ["10.1.0.2", "10.2.0.2", "first", "10.1.0.2"]);
        assert_eq!(Rails::default().in_turn().take(2).collect::<Vec<_>>(), [None, None]);
    }
}
