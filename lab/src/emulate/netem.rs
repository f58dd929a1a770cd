//! Alternative engine: a veth pair with the emulator of the kernel (netem) at both ends, where the kernel has it.
//!
//! It supports rate, queue, delay and loss. Its jitter reorders packets, its late packets arrive early, and it has no
//! cross traffic: links with these properties need TUN devices.

use array::{Error, Result};

use super::namespace::{DEVICE, Namespace, command};
use super::spec::{LaneSpec, LinkSpec, LossModel};

/// Returns whether the kernel has netem; tries it on an unused device of `namespace`.
pub(super) fn is_there(namespace: &Namespace) -> bool {
    let tc = |verb| {
        command("tc", &["-n", namespace.name(), "qdisc", verb, "dev", "lo", "root", "netem", "delay", "1ms"])
    };
    tc("add").and_then(|()| tc("delete")).is_ok()
}

/// Returns the reason why netem cannot emulate a link, if it cannot.
pub(super) fn refusal(spec: &LinkSpec) -> Option<&'static str> {
    let any = |asks: fn(&LaneSpec) -> bool| asks(&spec.forward) || asks(&spec.backward);
    if any(|lane| !lane.jitter.is_zero()) {
        Some("netem reorders packets where it jitters")
    } else if any(|lane| lane.late > 0.0) {
        Some("netem has no late packets, only early ones")
    } else if any(|lane| lane.cross > 0.0) {
        Some("netem has no cross traffic")
    } else if spec.hosts > 1 {
        Some("a veth pair has two ends")
    } else {
        None
    }
}

/// Connects the two namespaces.
///
/// # Errors
/// Those of `ip` and `tc`.
pub(super) fn join(a: &Namespace, b: &Namespace, spec: &LinkSpec) -> Result<()> {
    if let Some(why) = refusal(spec) {
        return Err(Error::unsupported(format!("netem cannot emulate this link: {why}; use `--engine tun`")));
    }
    pair(a, b)?;
    for (namespace, lane, seed) in [(a, &spec.forward, spec.seed), (b, &spec.backward, spec.seed + 1)] {
        // Super-packets would count as one.
        command("ip", &["-n", namespace.name(), "link", "set", DEVICE, "gso_max_segs", "1"])?;
        let netem = arguments(lane, spec.mtu, seed);
        let netem: Vec<&str> = netem.iter().map(String::as_str).collect();
        let tc = ["-n", namespace.name(), "qdisc", "add", "dev", DEVICE, "root", "netem"];
        command("tc", &[&tc[..], &netem].concat())?;
    }
    Ok(())
}

/// Connects the two namespaces by a veth pair without delay and limits.
///
/// # Errors
/// `Unsupported` for a link with other properties; those of `ip` and `ethtool`.
pub(super) fn join_plainly(a: &Namespace, b: &Namespace, spec: &LinkSpec) -> Result<()> {
    let is_plain = |lane: &LaneSpec| {
        lane.rate_bytes_per_sec.is_none()
            && lane.delay.is_zero()
            && lane.loss.share() == 0.0
            && lane.late == 0.0
    };
    if !is_plain(&spec.forward) || !is_plain(&spec.backward) || spec.hosts > 1 {
        return Err(Error::unsupported(
            "expected `--rate none --rtt 0ms` and nothing else of a link by `--engine veth`: it emulates nothing",
        ));
    }
    pair(a, b)?;
    for namespace in [a, b] {
        // A network card splits super-packets; a veth pair would deliver them whole.
        let features = ["tso", "off", "tx-udp-segmentation", "off"];
        let own = ["netns", "exec", namespace.name(), "ethtool", "-K", DEVICE];
        command("ip", &[&own[..], &features].concat())
            .map_err(|error| error.context("a plain veth pair needs the program `ethtool`"))?;
    }
    Ok(())
}

/// Creates a veth pair.
fn pair(a: &Namespace, b: &Namespace) -> Result<()> {
    let ends = ["netns", a.name(), "type", "veth", "peer", "name", DEVICE, "netns", b.name()];
    command("ip", &[&["link", "add", DEVICE][..], &ends].concat())
}

/// Returns the arguments of netem for one direction.
fn arguments(lane: &LaneSpec, mtu: u32, seed: u64) -> Vec<String> {
    let rate = lane.rate_bytes_per_sec.unwrap_or(0.0);
    // Its limit counts packets, including those in transit.
    let held = rate.mul_add(lane.delay.as_secs_f64(), lane.queue_bytes) / f64::from(mtu);
    let limit = if rate > 0.0 { held.ceil().max(1.0) } else { 1e6 };
    let mut said = vec!["limit".to_owned(), format!("{limit:.0}")];
    said.extend(["delay".to_owned(), format!("{}us", lane.delay.as_micros())]);
    match lane.loss {
        LossModel::Each(0.0) => {}
        LossModel::Each(share) => said.extend(["loss".into(), "random".into(), percent(share)]),
        LossModel::Bursts { begins, ends } => {
            said.extend(["loss".into(), "gemodel".into(), percent(begins), percent(ends)]);
        }
    }
    if rate > 0.0 {
        said.extend(["rate".to_owned(), format!("{:.0}bit", rate * 8.0)]);
    }
    said.extend(["seed".to_owned(), seed.to_string()]);
    said
}

fn percent(share: f64) -> String {
    format!("{}%", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::spec::Options;
    use super::*;

    #[test]
    fn netem_gets_rate_queue_delay_and_loss() {
        let link = Options {
            rate: "100mbit".into(),
            rtt: "30ms".into(),
            queue: "1bdp".into(),
            loss: "0.5%".into(),
            ..Options::default()
        };
        let said = arguments(&link.parse().unwrap().forward, 1500, 7).join(" ");
        // 375,000 bytes in the queue and 187,500 in transit.
        assert_eq!(said, "limit 375 delay 15000us loss random 0.5% rate 100000000bit seed 7");
    }

    #[test]
    fn bursts_use_the_gilbert_model_and_links_without_rate_have_no_limit() {
        let link = Options { rate: "none".into(), loss: "0.25%:50%".into(), ..Options::default() };
        let said = arguments(&link.parse().unwrap().forward, 1500, 7).join(" ");
        assert_eq!(said, "limit 1000000 delay 10000us loss gemodel 0.25% 50% seed 7");
    }

    #[test]
    fn unsupported_properties_are_refused_with_the_reason() {
        let refused = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            refusal(&options.parse().unwrap())
        };
        assert_eq!(refused(|_| ()), None);
        assert!(refused(|o| o.jitter = "1ms".into()).is_some_and(|why| why.contains("jitters")));
        assert!(refused(|o| o.late = "1%:1ms/0%:0ms".into()).is_some_and(|why| why.contains("late")));
        assert!(refused(|o| o.cross = "0%/10%".into()).is_some_and(|why| why.contains("cross")));
        assert!(refused(|o| o.hosts = 2).is_some_and(|why| why.contains("ends")));
    }
}
