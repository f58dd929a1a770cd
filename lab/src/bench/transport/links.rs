//! Benchmarks on links of several round trips and losses: this program makes each of the links, runs itself there for the
//! groups that make sense on it, and puts the cases together.

use std::path::Path;
use std::process::Stdio;

use array::{Error, Result};
use tokio::process::Command;

use super::super::options::Options;
use super::super::report::{BenchReport, Case, Link};
use super::groups::is_chosen;

/// Round trips, seconds, and losses, shares.
const RTTS: [f64; 3] = [7.6e-3, 19e-3, 150e-3];
const LOSSES: [f64; 5] = [0.0, 1e-5, 1e-4, 1e-3, 1e-2];
/// Round trips and losses of a quick run.
const QUICK: [(f64, f64); 2] = [(19e-3, 0.0), (150e-3, 1e-3)];
/// Rate where nothing else is said: 1 Gb/s.
const RATE: f64 = 125e6;
const MTU: u32 = 1500;
/// Paths for the advice: bytes per second, round trips in seconds, losses.
const ADVISED: [(f64, f64, f64); 6] = [
    (1.25e6, 0.1, 0.0),
    (6.25e6, 0.06, 1e-2),
    (12.5e6, 0.02, 1e-3),
    (25e6, 0.15, 1e-4),
    (62.5e6, 0.02, 0.0),
    (125e6, 0.15, 1e-3),
];
/// Losses and an additional rate for the group `get`: on each of the round trips above, at the usual rate and at one that
/// processors do not limit.
const GOT: [f64; 3] = [0.0, 1e-3, 1e-2];
const GOT_RATE: f64 = 25e6;
/// Packets of links that limit nothing, bytes.
const MTUS: [u32; 2] = [1500, 9000];
/// The path that changes.
const SOAKED: (f64, f64, f64) = (12.5e6, 0.04, 0.0);
/// Arguments after this program's name that `lab` stands for, and the address of the server's side then; and the
/// arguments for a link that limits nothing.
const LAB: (&str, &str) =
    ("lab up {name} --engine tun --rate {rate} --rtt {rtt} --loss {loss} --", "10.77.0.1");
const LAB_PLAIN: &str = "lab up {name} --engine veth --rate none --rtt 0ms --mtu {mtu} --";

/// A link to make.
struct PlannedLink {
    /// Bytes per second; nothing limits it otherwise.
    rate: Option<f64>,
    rtt_secs: f64,
    loss: f64,
    mtu: u32,
    groups: Vec<&'static str>,
}

impl PlannedLink {
    fn new((rate, rtt_secs, loss): (f64, f64, f64), groups: Vec<&'static str>) -> Self {
        Self { rate: Some(rate), rtt_secs, loss, mtu: MTU, groups }
    }

    fn label(&self) -> String {
        let Some(rate) = self.rate else { return format!("no limit, packets of {} bytes", self.mtu) };
        let rate = if rate == RATE { String::new() } else { format!("{} Mb/s, ", rate * 8e-6) };
        format!("{rate}{} ms, loss {} %", self.rtt_secs * 1e3, self.loss * 100.0)
    }
}

/// All links, each with the groups that make sense on it.
fn places(options: &Options) -> Vec<PlannedLink> {
    let rate = options.link.rate.unwrap_or(RATE);
    let all = || RTTS.iter().flat_map(|&rtt_secs| LOSSES.iter().map(move |&loss| (rtt_secs, loss)));
    let grid: Vec<(f64, f64)> = if options.is_quick { QUICK.to_vec() } else { all().collect() };
    let mut places: Vec<PlannedLink> =
        grid.into_iter().map(|(rtt, loss)| PlannedLink::new((rate, rtt, loss), groups(rtt, loss))).collect();
    let few = |count: usize| if options.is_quick { 1 } else { count };
    let slower = RTTS.iter().rev().flat_map(|&rtt_secs| GOT.map(|loss| (GOT_RATE, rtt_secs, loss)));
    places.extend(slower.take(few(usize::MAX)).map(|path| PlannedLink::new(path, vec!["get"])));
    places.extend(
        ADVISED.into_iter().take(few(ADVISED.len())).map(|path| PlannedLink::new(path, vec!["advice"])),
    );
    places.extend(MTUS.into_iter().take(few(MTUS.len())).map(|mtu| PlannedLink {
        rate: None,
        rtt_secs: 0.0,
        loss: 0.0,
        mtu,
        groups: vec!["most"],
    }));
    places.push(PlannedLink::new(SOAKED, vec!["soak"]));
    places
}

/// Groups that make sense on a link of the grid. `bulk` does everywhere.
fn groups(rtt_secs: f64, loss: f64) -> Vec<&'static str> {
    let is_clean = loss == 0.0;
    let of = [
        ("bulk", true),
        ("get", GOT.contains(&loss)),
        ("streams", rtt_secs == RTTS[2]),
        ("messages", is_clean && rtt_secs == RTTS[1]),
        ("small", is_clean && rtt_secs == RTTS[2]),
        ("fresh", is_clean && rtt_secs == RTTS[2]),
        ("senders", is_clean && rtt_secs == RTTS[1]),
        ("clients", loss == LOSSES[3] && rtt_secs == RTTS[2]),
        ("fairness", is_clean && rtt_secs == RTTS[1]),
        ("evenness", is_clean && rtt_secs == RTTS[2]),
        ("lossy", loss == LOSSES[4] && rtt_secs != RTTS[0]),
    ];
    of.iter().filter(|(_, is_here)| *is_here).map(|(group, _)| *group).collect()
}

/// All cases of all links, as they stand in the reports, each with the link that it is of; and what failed.
pub(super) async fn run(program: &Path, options: &Options, maker: &str) -> Result<(Vec<Case>, Vec<String>)> {
    let (mut cases, mut failures) = (Vec::new(), Vec::new());
    for place in places(options) {
        let is_wanted = |group: &&str| is_chosen(options, group) || (*group == "bulk" && options.has("all"));
        let mut groups: Vec<&str> = place.groups.iter().copied().filter(is_wanted).collect();
        if groups.is_empty() {
            continue;
        }
        groups.extend(options.only.iter().any(|name| name == "all").then_some("all"));
        let label = place.label();
        match on(program, options, maker, &place, &groups).await {
            Ok(report) => {
                let link = serde_json::to_value(&report.link).unwrap_or_default();
                cases.extend(report.cases.into_iter().map(|case| {
                    let name = format!("{label}: {}", case.name);
                    Case { name, ..case }.with("link", link.clone())
                }));
                failures.extend(report.error.map(|error| format!("{label}: {error}")));
            }
            Err(error) => failures.push(format!("{label}: {error}")),
        }
    }
    Ok((cases, failures))
}

async fn on(
    program: &Path,
    options: &Options,
    maker: &str,
    place: &PlannedLink,
    groups: &[&str],
) -> Result<BenchReport> {
    let name = format!("bench{}", std::process::id());
    let (maker, address) = match maker {
        "lab" => {
            let words = if place.rate.is_some() { LAB.0 } else { LAB_PLAIN };
            (format!("{} {words}", program.display()), LAB.1.to_owned())
        }
        _ if place.rate.is_none() => {
            return Err(Error::unsupported("a link that limits nothing is made by `--make-link lab` only"));
        }
        other => (other.to_owned(), options.server_address.to_string()),
    };
    let maker = maker
        .replace("{name}", &name)
        .replace("{rate}", &place.rate.map_or("none".to_owned(), |rate| format!("{:.0}bit", rate * 8.0)))
        .replace("{mtu}", &place.mtu.to_string())
        .replace("{rtt}", &format!("{}ms", place.rtt_secs * 1e3))
        .replace("{loss}", &format!("{}%", place.loss * 100.0));
    let mut words = maker.split_whitespace();
    let first =
        words.next().ok_or_else(|| Error::invalid("expected a command that makes a link, found none"))?;
    let link =
        Link { rate: place.rate, rtt: Some(place.rtt_secs), loss: Some(place.loss), mtu: Some(place.mtu) };
    let mut command = Command::new(first);
    command.args(words).args(["ip", "netns", "exec", &format!("{name}-b")]).arg(program);
    command.args(["bench", "transport", "--json", "--only", &groups.join(",")]);
    command.args(["--server-command", &format!("ip netns exec {name}-a"), "--server-address"]);
    command.args([&address, "--link", &link_argument(&link)]);
    if options.is_quick {
        command.arg("--quick");
    }
    if let Some(runs) = options.runs {
        command.args(["--runs", &runs.to_string()]);
    }
    if let Some(peers) = &options.peers {
        command.args(["--peers", &peers.join(",")]);
    }
    // `output` would keep to itself what is said on standard error.
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let out = running.wait_with_output().await?;
    // What makes the link may say something of its own.
    let text = String::from_utf8_lossy(&out.stdout);
    let report = text.lines().find_map(|line| serde_json::from_str::<BenchReport>(line).ok());
    report.ok_or_else(|| {
        Error::internal(format!("expected a report from within `{first}`, found none ({})", out.status))
    })
}

fn link_argument(link: &Link) -> String {
    let parts =
        [("rate", link.rate), ("rtt", link.rtt), ("loss", link.loss), ("mtu", link.mtu.map(f64::from))];
    let parts = parts.iter().filter_map(|(name, value)| Some(format!("{name}={}", (*value)?)));
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_told_as_it_is_read() {
        let link = Link { rate: Some(125e6), rtt: Some(7.6e-3), loss: Some(1e-5), mtu: Some(1500) };
        let read: Link = link_argument(&link).parse().unwrap();
        assert_eq!((read.rate, read.rtt, read.loss, read.mtu), (link.rate, link.rtt, link.loss, link.mtu));
    }

    #[test]
    fn every_group_has_a_link() {
        let places = places(&Options::default());
        for group in super::super::GROUPS {
            assert!(places.iter().any(|place| place.groups.contains(group)), "{group}");
        }
    }
}
