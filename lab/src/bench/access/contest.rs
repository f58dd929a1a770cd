//! Contest: several contestants do the same work in the same run; and its cases.

use std::collections::BTreeMap;

use array::Result;

use super::super::process::{RunningProcess, own_cpu_secs};
use super::super::report::{Better, Case, Link, median};
use super::super::wall_clock;

/// Bytes of IPv4 and TCP headers with time stamps in each packet.
const HEADER_BYTES: f64 = 52.0;
const DEFAULT_MTU: u32 = 1500;

/// Costs of the work for one contestant, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) secs: f64,
    /// Processor time of the client's process.
    pub(super) client_cpu_secs: f64,
    /// Processor time of the server's processes.
    pub(super) server_cpu_secs: f64,
    /// Bytes received by this side's interfaces, with headers; on loopback in both directions.
    pub(super) received_bytes: f64,
}

/// Measures `work`, done in this process against `server`.
pub(super) async fn measure(
    server: &RunningProcess,
    work: impl Future<Output = Result<()>>,
) -> Result<Measured> {
    let before = (own_cpu_secs(), server.cpu_secs(), received_bytes());
    let start = wall_clock::now();
    work.await?;
    let secs = start.elapsed().as_secs_f64();
    Ok(Measured {
        secs,
        client_cpu_secs: own_cpu_secs() - before.0,
        server_cpu_secs: server.cpu_secs() - before.1,
        received_bytes: received_bytes() - before.2,
    })
}

/// Bytes that all interfaces of this network namespace have received so far.
pub(super) fn received_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let of_line = |line: &str| line.split_once(':')?.1.split_whitespace().next()?.parse::<f64>().ok();
    text.lines().filter_map(of_line).sum()
}

/// Least seconds for `bytes` on a full `link`; `None` if its rate is unknown.
pub(super) fn least_secs(link: &Link, bytes: f64) -> Option<f64> {
    let mtu = f64::from(link.mtu.unwrap_or(DEFAULT_MTU));
    link.rate.map(|rate| bytes / (rate * (mtu - HEADER_BYTES) / mtu))
}

/// Share of the link's limit to reach.
pub(super) const SHARE_SOUGHT: f64 = 0.95;

/// Explanation of [`least_secs`].
pub(super) const LEAST_WHY: &str = "bytes / (rate x (MTU - 52) / MTU): headers of IPv4 and TCP";

/// Measurements of all contestants for the same work.
pub(super) struct Contest {
    pub(super) name: String,
    /// Payload of the work, bytes.
    pub(super) bytes: u64,
    pub(super) parameters: BTreeMap<String, serde_json::Value>,
    pub(super) ours: Vec<Measured>,
    /// Other contestants; for those that could not run, the reason.
    pub(super) peers: BTreeMap<String, std::result::Result<Vec<Measured>, String>>,
}

impl Contest {
    pub(super) fn new(name: &str, bytes: u64) -> Self {
        let parameters = [("bytes".to_owned(), bytes.into())].into();
        Self { name: name.to_owned(), bytes, parameters, ours: Vec::new(), peers: BTreeMap::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }

    /// One more result of a peer.
    pub(super) fn add(&mut self, peer: &str, result: std::result::Result<Measured, String>) {
        let entry = self.peers.entry(peer.to_owned()).or_insert_with(|| Ok(Vec::new()));
        match (entry, result) {
            (Ok(all), Ok(one)) => all.push(one),
            (entry, Err(why)) => *entry = Err(why),
            (Err(_), Ok(_)) => {}
        }
    }

    /// The peer's median time, seconds.
    pub(super) fn peer_secs(&self, peer: &str) -> Option<f64> {
        self.peer(peer, |m| m.secs)
    }

    fn peer(&self, peer: &str, figure: impl Fn(&Measured) -> f64) -> Option<f64> {
        let all = self.peers.get(peer)?.as_ref().ok()?;
        median(&mut all.iter().map(figure).collect::<Vec<_>>())
    }

    /// A case of one figure of all contestants.
    fn case(&self, name: &str, unit: &'static str, figure: impl Fn(&Measured) -> f64) -> Case {
        let ours = self.ours.iter().map(&figure).collect();
        let mut case = Case::measured(name, unit, Better::Lower, ours);
        case.parameters = self.parameters.clone();
        case.peers = self.peers.keys().map(|name| (name.clone(), self.peer(name, &figure))).collect();
        let absent =
            self.peers.iter().filter_map(|(name, all)| Some(format!("{name}: {}", all.as_ref().err()?)));
        case.why = absent.collect::<Vec<_>>().join("; ");
        case
    }

    /// Time of the work.
    pub(super) fn time(&self, link: &Link) -> Case {
        let case = self.case(&self.name, "s", |m| m.secs);
        match least_secs(link, self.bytes as f64) {
            Some(least) => case.limited(least, LEAST_WHY),
            None => case,
        }
    }

    /// Costs besides time: processor time of both sides, and the bytes received over the network.
    pub(super) fn costs(&self) -> Vec<Case> {
        let gigabytes = self.bytes as f64 / 1e9;
        let name = |what: &str| format!("{}: {what}", self.name);
        vec![
            self.case(&name("client's processor time"), "s/GB", |m| m.client_cpu_secs / gigabytes),
            self.case(&name("server's processor time"), "s/GB", |m| m.server_cpu_secs / gigabytes),
            self.case(&name("received for each byte read"), "1", |m| m.received_bytes / self.bytes as f64),
        ]
    }
}

/// Sets a goal that needs figures of others; without one of them it is unknown, with the reason.
pub(super) fn aim(case: Case, goal: Option<f64>) -> Case {
    match goal {
        Some(goal) => case.aiming(goal),
        None if case.why.is_empty() => {
            Case { why: "a figure that the goal needs is not there".into(), ..case }
        }
        None => case,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_could_not_run_is_named_with_why() {
        let one = Measured { secs: 2.0, client_cpu_secs: 1.0, server_cpu_secs: 0.5, received_bytes: 3e9 };
        let mut contest = Contest::new("reads", 2_000_000_000);
        contest.ours.push(one);
        contest.add("there", Ok(Measured { secs: 3.0, ..one }));
        contest.add("absent", Err("no such program".into()));
        let link = Link { rate: Some(1e9), ..Link::default() };
        let case = aim(contest.time(&link), contest.peer_secs("absent"));
        assert_eq!((case.ours, case.peers["there"], case.peers["absent"]), (Some(2.0), Some(3.0), None));
        assert_eq!((case.why.as_str(), case.meets_goal), ("absent: no such program", None));
        assert!(case.limit.is_some_and(|least| least > 2.0 && least < 2.1));
        assert_eq!(contest.costs()[0].ours, Some(0.5));
    }
}
