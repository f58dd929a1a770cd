//! Options of a benchmark. Benchmarks ignore those that they do not need.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use array::{Error, Result};
use compose::Communicator;

use super::report::Link;

/// Options of a run. By default everything is measured in full, with both sides on this machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Small data and few runs: shows that it works, measures little.
    pub is_quick: bool,
    /// Runs of each case; `None`: chosen by the benchmark.
    pub runs: Option<usize>,
    /// Words before a command that start it on the server's side, such as `ip netns exec far`; empty: on this side.
    pub server_command: Vec<String>,
    /// The address of the server's side.
    pub server_address: IpAddr,
    /// Properties of the link between the sides: written into the report, and used to compute limits.
    pub link: Link,
    /// Command that makes a link and runs another command on it, with `{name}`, `{rate}`, `{rtt}` and `{loss}` to be
    /// filled in: for benchmarks over several links. It joins namespaces `NAME-a`, the server's, and `NAME-b`.
    pub make_link: Option<String>,
    /// Groups of cases to run; empty: all that need no further choice.
    pub only: Vec<String>,
    /// Other projects' programs to compare with; `None`: all of them.
    pub peers: Option<Vec<String>>,
    /// A Python that has peers' packages; the system's is tried as well.
    pub python: Option<PathBuf>,
    /// Real files, each a data set by itself: `access` fetches them and does nothing else, `render` cuts them into slabs.
    pub files: Vec<PathBuf>,
    /// The other processes of an MPI program, where this is one of several.
    pub company: Option<Company>,
}

/// Processes that measure together.
#[derive(Clone)]
pub struct Company(pub Arc<dyn Communicator>);

impl fmt::Debug for Company {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.0.rank(), self.0.size())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            is_quick: false,
            runs: None,
            server_command: Vec::new(),
            server_address: Ipv4Addr::LOCALHOST.into(),
            link: Link::default(),
            make_link: None,
            only: Vec::new(),
            peers: None,
            python: None,
            files: Vec::new(),
            company: None,
        }
    }
}

impl Options {
    /// Runs of each case, at least one: as requested, else `usual`, or `quick` for a quick run.
    pub(super) fn runs_or(&self, usual: usize, quick: usize) -> usize {
        self.runs.unwrap_or(if self.is_quick { quick } else { usual }).max(1)
    }

    /// Checks that only groups that exist are asked for; `all` stands for them all.
    ///
    /// # Errors
    /// `Invalid`, listing them.
    pub(super) fn check_only(&self, groups: &[&str]) -> Result<()> {
        match self.only.iter().find(|name| *name != "all" && !groups.contains(&name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(Error::invalid(format!(
                "expected one of {} or all for --only, found `{unknown}`",
                groups.join(", ")
            ))),
        }
    }

    /// Whether the cases of `group` are to run; all are if none is chosen.
    pub(super) fn has(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == group || name == "all")
    }

    /// Whether `peer` is to take part.
    pub(super) fn wants_peer(&self, peer: &str) -> bool {
        self.peers.as_ref().is_none_or(|names| names.iter().any(|name| name == peer))
    }
}

impl FromStr for Link {
    type Err = Error;

    /// `rate=125e6,rtt=0.15,loss=0.001,mtu=1500`: bytes per second, seconds, share, bytes; each may be left out.
    fn from_str(text: &str) -> Result<Self> {
        let mut link = Self::default();
        for pair in text.split(',').filter(|pair| !pair.is_empty()) {
            let bad = || {
                Error::invalid(format!(
                    "expected `rate=`, `rtt=`, `loss=` or `mtu=` and a number, found `{pair}`"
                ))
            };
            let (name, value) = pair.split_once('=').ok_or_else(bad)?;
            let number = value.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(bad)?;
            match name {
                "rate" => link.rate = Some(number),
                "rtt" => link.rtt = Some(number),
                "loss" => link.loss = Some(number),
                "mtu" => link.mtu = Some(value.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_link() {
        let link: Link = "rate=125e6,rtt=0.15,mtu=1500".parse().unwrap();
        assert_eq!((link.rate, link.rtt, link.loss, link.mtu), (Some(125e6), Some(0.15), None, Some(1500)));
        for text in ["rate", "rate=fast", "speed=1", "rtt=-1", "mtu=1.5", "rate=inf"] {
            assert!(text.parse::<Link>().is_err(), "{text}");
        }
    }
}
