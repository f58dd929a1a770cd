//! The same on links of several round trips and losses: this program makes each of them, runs itself there for the groups
//! that tell something on it, and puts the cases together.

use std::path::Path;
use std::process::Stdio;

use array::{Error, Result};
use tokio::process::Command;

use super::super::options::Options;
use super::super::report::{Case, Link, Report};

/// Round trips, seconds, and losses, shares.
const RTTS: [f64; 3] = [7.6e-3, 19e-3, 150e-3];
const LOSSES: [f64; 5] = [0.0, 1e-5, 1e-4, 1e-3, 1e-2];
/// The same where it only has to work.
const QUICK: [(f64, f64); 2] = [(19e-3, 0.0), (150e-3, 1e-3)];
/// Where nothing else is said: 1 Gb/s.
const RATE: f64 = 125e6;
const MTU: u32 = 1500;
/// What `lab` stands for, after this program's name, and where the server's side is then.
const LAB: (&str, &str) = ("lab up {name} --rate {rate} --rtt {rtt} --loss {loss} --", "10.77.0.1");

/// A link to be made.
struct Place {
    rtt_secs: f64,
    loss: f64,
}

impl Place {
    /// What tells something on it. `bulk` does everywhere.
    fn groups(&self) -> Vec<&'static str> {
        let is_clean = self.loss == 0.0;
        let of = [
            ("bulk", true),
            ("streams", self.rtt_secs == RTTS[2]),
            ("messages", is_clean && self.rtt_secs == RTTS[1]),
            ("small", is_clean && self.rtt_secs == RTTS[2]),
            ("senders", is_clean && self.rtt_secs == RTTS[1]),
            ("clients", self.loss == LOSSES[3] && self.rtt_secs == RTTS[2]),
            ("fairness", is_clean && self.rtt_secs == RTTS[1]),
            ("evenness", is_clean && self.rtt_secs == RTTS[2]),
            ("lossy", self.loss == LOSSES[4] && self.rtt_secs != RTTS[0]),
        ];
        of.iter().filter(|(_, is_here)| *is_here).map(|(group, _)| *group).collect()
    }
}

/// All cases of all links, as they stand in the reports, each with the link that it is of; and what failed.
pub(super) async fn run(program: &Path, options: &Options, maker: &str) -> Result<(Vec<Case>, Vec<String>)> {
    let places: Vec<Place> = if options.is_quick {
        QUICK.iter().map(|&(rtt_secs, loss)| Place { rtt_secs, loss }).collect()
    } else {
        let all = RTTS.iter().flat_map(|&rtt_secs| LOSSES.iter().map(move |&loss| Place { rtt_secs, loss }));
        all.collect()
    };
    let (mut cases, mut failures) = (Vec::new(), Vec::new());
    for place in places {
        let is_chosen = |group: &&str| options.has(group) || (*group == "bulk" && options.has("all"));
        let mut groups: Vec<&str> = place.groups().into_iter().filter(is_chosen).collect();
        if groups.is_empty() {
            continue;
        }
        groups.extend(options.only.iter().any(|name| name == "all").then_some("all"));
        let label = format!("{} ms, loss {} %", place.rtt_secs * 1e3, place.loss * 100.0);
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
    place: &Place,
    groups: &[&str],
) -> Result<Report> {
    let rate = options.link.rate.unwrap_or(RATE);
    let name = format!("bench{}", std::process::id());
    let (maker, address) = match maker {
        "lab" => (format!("{} {}", program.display(), LAB.0), LAB.1.to_owned()),
        other => (other.to_owned(), options.server_address.to_string()),
    };
    let maker = maker
        .replace("{name}", &name)
        .replace("{rate}", &format!("{:.0}bit", rate * 8.0))
        .replace("{rtt}", &format!("{}ms", place.rtt_secs * 1e3))
        .replace("{loss}", &format!("{}%", place.loss * 100.0));
    let mut words = maker.split_whitespace();
    let first =
        words.next().ok_or_else(|| Error::invalid("expected a command that makes a link, found none"))?;
    let link = Link { rate: Some(rate), rtt: Some(place.rtt_secs), loss: Some(place.loss), mtu: Some(MTU) };
    let mut command = Command::new(first);
    command.args(words).args(["ip", "netns", "exec", &format!("{name}-b")]).arg(program);
    command.args(["bench", "transport", "--json", "--only", &groups.join(",")]);
    command.args(["--server-command", &format!("ip netns exec {name}-a"), "--server-address"]);
    command.args([&address, "--link", &told(&link)]);
    if options.is_quick {
        command.arg("--quick");
    }
    if let Some(runs) = options.runs {
        command.args(["--runs", &runs.to_string()]);
    }
    if let Some(peers) = &options.peers {
        command.args(["--peers", &peers.join(",")]);
    }
    let out = command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output().await?;
    // What makes the link may say something of its own.
    let text = String::from_utf8_lossy(&out.stdout);
    let report = text.lines().find_map(|line| serde_json::from_str::<Report>(line).ok());
    report.ok_or_else(|| {
        Error::internal(format!("expected a report from within `{first}`, found none ({})", out.status))
    })
}

fn told(link: &Link) -> String {
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
        let read: Link = told(&link).parse().unwrap();
        assert_eq!((read.rate, read.rtt, read.loss, read.mtu), (link.rate, link.rtt, link.loss, link.mtu));
    }

    #[test]
    fn every_group_has_a_link() {
        for group in super::super::GROUPS {
            let places = RTTS.iter().flat_map(|&rtt_secs| LOSSES.map(|loss| Place { rtt_secs, loss }));
            assert!(places.into_iter().any(|place| place.groups().contains(group)), "{group}");
        }
    }
}
