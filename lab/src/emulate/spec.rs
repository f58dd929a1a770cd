//! Properties of a link, and their notation on the command line: `1gbit`, `150ms`, `0.1%`, `0.5bdp`. No I/O.

use std::time::Duration;

use array::{Error, Result};
use serde::{Deserialize, Serialize};

/// Length of the shortest queue, packets.
const LEAST_QUEUE_PACKETS: f64 = 64.0;
/// Queue of a link without delay, seconds at its rate: a few packets of buffer, as switches have.
const QUEUE_WITHOUT_DELAY_SECS: f64 = 0.005;
/// Most bytes in transit and in the queue per direction; a link that would need more is refused.
pub(super) const MAX_LANE_BYTES: f64 = 2e9;
const SMALLEST_MTU: u32 = 576;
const LARGEST_MTU: u32 = 65_000;
/// Most hosts on side b.
pub(super) const MAX_HOSTS: u8 = 16;

/// A link, both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// From a to b.
    pub forward: LaneSpec,
    /// From b to a.
    pub backward: LaneSpec,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Hosts on side b, which share the link.
    pub hosts: u8,
    /// Seed of the random numbers: equal seeds give equal losses.
    pub seed: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneSpec {
    /// Bytes of IP per second; `None` for no limit.
    pub rate_bytes_per_sec: Option<f64>,
    /// One-way delay without queue and jitter.
    pub delay: Duration,
    /// Largest deviation of the delay, which varies without reordering.
    pub jitter: Duration,
    /// Size of the queue before the bottleneck, bytes; packets that do not fit are dropped.
    pub queue_bytes: f64,
    /// Random loss after the bottleneck.
    pub loss: LossModel,
    /// Share of packets that are delayed and overtaken by later ones, 0 to 1.
    pub late: f64,
    /// Additional delay of those packets.
    pub late_by: Duration,
    /// Share of the rate that cross traffic takes, 0 to 1.
    pub cross: f64,
}

/// Model of random losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Independent losses with this probability.
    Each(f64),
    /// Losses in bursts (Gilbert 1960): a burst begins with probability `begins` per packet that arrives and ends with
    /// probability `ends` per packet that is lost. Mean length 1/`ends`, share `begins`/(`begins` + `ends`).
    Bursts {
        /// Probability that a burst begins.
        begins: f64,
        /// Probability that it ends.
        ends: f64,
    },
}

impl LossModel {
    /// Returns the share of packets that are lost, 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        match self {
            Self::Each(share) => share,
            Self::Bursts { begins, ends } => begins / (begins + ends),
        }
    }
}

/// Options of a link, as on the command line. Where directions may differ, `X/Y` means X from a to b and Y from b to a.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Rate, such as `1gbit`, `100mbit/10mbit`, `none`.
    pub rate: String,
    /// Round trip without queue, such as `150ms`; half of it each way.
    pub rtt: String,
    /// Largest deviation of the delay, such as `2ms`.
    pub jitter: String,
    /// Size of the queue, such as `1bdp`, `200ms`, `2MB`: in bandwidth-delay products, time at the rate, or bytes.
    pub queue: String,
    /// Loss, such as `0.1%`, or `0.1%:10%` for bursts that begin and end with these probabilities.
    pub loss: String,
    /// Share of late packets and their additional delay, such as `1%:5ms`.
    pub late: String,
    /// Share of the rate that cross traffic takes, such as `30%`.
    pub cross: String,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// Number of hosts on side b.
    pub hosts: u8,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rate: "1gbit".into(),
            rtt: "20ms".into(),
            jitter: "0ms".into(),
            queue: "1bdp".into(),
            loss: "0%".into(),
            late: "0%:0ms".into(),
            cross: "0%".into(),
            mtu: 1500,
            hosts: 1,
            seed: 1,
        }
    }
}

/// Changes of a link while it is up, written as in [`Options`]; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// New [`Options::rate`].
    pub rate: Option<String>,
    /// New [`Options::rtt`].
    pub rtt: Option<String>,
    /// New [`Options::jitter`].
    pub jitter: Option<String>,
    /// New [`Options::queue`].
    pub queue: Option<String>,
    /// New [`Options::loss`].
    pub loss: Option<String>,
    /// New [`Options::late`].
    pub late: Option<String>,
    /// New [`Options::cross`].
    pub cross: Option<String>,
}

impl Options {
    /// Returns the options of the link after a change.
    #[must_use]
    pub fn changed(&self, change: &Change) -> Self {
        let of = |new: &Option<String>, old: &String| new.as_ref().unwrap_or(old).clone();
        Self {
            rate: of(&change.rate, &self.rate),
            rtt: of(&change.rtt, &self.rtt),
            jitter: of(&change.jitter, &self.jitter),
            queue: of(&change.queue, &self.queue),
            loss: of(&change.loss, &self.loss),
            late: of(&change.late, &self.late),
            cross: of(&change.cross, &self.cross),
            ..*self
        }
    }

    /// Parses the properties of the link.
    ///
    /// # Errors
    /// `Invalid`, with the name of the option, for values that are not understood, contradictory or would need too much memory.
    pub fn parse(&self) -> Result<LinkSpec> {
        if !(SMALLEST_MTU..=LARGEST_MTU).contains(&self.mtu) || !(1..=MAX_HOSTS).contains(&self.hosts) {
            return Err(Error::invalid(format!(
                "expected an MTU of {SMALLEST_MTU} to {LARGEST_MTU} bytes and 1 to {MAX_HOSTS} hosts, found {} and {}",
                self.mtu, self.hosts
            )));
        }
        let lane = |side| self.lane(side);
        Ok(LinkSpec {
            forward: lane(0)?,
            backward: lane(1)?,
            mtu: self.mtu,
            hosts: self.hosts,
            seed: self.seed,
        })
    }

    fn lane(&self, side: usize) -> Result<LaneSpec> {
        let rate_bytes_per_sec = named("--rate", side_of(&self.rate, side), rate)?;
        let rtt = named("--rtt", &self.rtt, duration)?;
        let (late, late_by) = named("--late", side_of(&self.late, side), late)?;
        let mut lane = LaneSpec {
            rate_bytes_per_sec,
            delay: rtt / 2,
            jitter: named("--jitter", side_of(&self.jitter, side), duration)?,
            queue_bytes: 0.0,
            loss: named("--loss", side_of(&self.loss, side), loss)?,
            late,
            late_by,
            cross: named("--cross", side_of(&self.cross, side), share)?,
        };
        if let Some(rate) = rate_bytes_per_sec {
            let bytes = named("--queue", side_of(&self.queue, side), |text| queue(text, rate, rtt))?;
            lane.queue_bytes = bytes.max(LEAST_QUEUE_PACKETS * f64::from(self.mtu));
        }
        lane.check()?;
        Ok(lane)
    }
}

impl LaneSpec {
    fn check(&self) -> Result<()> {
        if self.jitter > self.delay {
            return Err(Error::invalid(format!(
                "expected a jitter of at most half the round trip ({:?}), found {:?}",
                self.delay, self.jitter
            )));
        }
        if self.cross >= 1.0 || (self.cross > 0.0 && self.rate_bytes_per_sec.is_none()) {
            return Err(Error::invalid("--cross must be below 100 % and needs a --rate"));
        }
        let holds = self.rate_bytes_per_sec.map_or(0.0, |rate| {
            let longest = self.delay + self.jitter + self.late_by;
            rate * longest.as_secs_f64() + self.queue_bytes
        });
        if holds > MAX_LANE_BYTES {
            return Err(Error::too_large(format!(
                "expected a link that holds at most {MAX_LANE_BYTES} bytes per direction, found {holds:.0}: choose a \
                 lower rate, delay or queue"
            )));
        }
        Ok(())
    }
}

/// Returns the part of `X/Y` for a side.
fn side_of(text: &str, side: usize) -> &str {
    // The slash of `100Mb/s` is part of the unit.
    let ends = |at: &usize| !text[at + 1..].starts_with('s');
    match text.match_indices('/').map(|(at, _)| at).find(ends) {
        Some(at) => {
            if side == 0 {
                &text[..at]
            } else {
                &text[at + 1..]
            }
        }
        None => text,
    }
}

fn named<T>(option: &str, text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    let such = match option {
        "--rate" => "1gbit, 100Mb/s or none",
        "--rtt" | "--jitter" => "150ms, at most 60s",
        "--queue" => "1bdp, 200ms or 2MB",
        "--late" => "1%:5ms",
        "--loss" => "0.1%, or 0.1%:20% in bursts, at most 100%",
        _ => "0.1%, at most 100%",
    };
    parse(text.trim()).ok_or_else(|| {
        Error::invalid(format!(
            "expected a value such as {such} for {option}, found `{text}`; see corridor lab up --help"
        ))
    })
}

/// Splits a text into a finite, non-negative number and its unit.
fn quantity(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number, unit))
}

fn rate(text: &str) -> Option<Option<f64>> {
    if text == "none" {
        return Some(None);
    }
    let (number, unit) = quantity(text)?;
    let bits = match unit {
        "bit" | "b/s" => 1.0,
        "kbit" | "kb/s" => 1e3,
        "mbit" | "Mbit" | "Mb/s" => 1e6,
        "gbit" | "Gbit" | "Gb/s" => 1e9,
        _ => return None,
    };
    (number > 0.0).then_some(Some(number * bits / 8.0))
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = quantity(text)?;
    let secs = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "" if number == 0.0 => 1.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * secs).ok().filter(|d| *d <= Duration::from_secs(60))
}

fn share(text: &str) -> Option<f64> {
    let (number, unit) = quantity(text)?;
    let share = match unit {
        "%" => number / 100.0,
        "" => number,
        _ => return None,
    };
    (share <= 1.0).then_some(share)
}

fn loss(text: &str) -> Option<LossModel> {
    match text.split_once(':') {
        None => share(text).map(LossModel::Each),
        Some((begins, ends)) => {
            let (begins, ends) = (share(begins)?, share(ends)?);
            (ends > 0.0).then_some(LossModel::Bursts { begins, ends })
        }
    }
}

fn late(text: &str) -> Option<(f64, Duration)> {
    let (part, by) = text.split_once(':')?;
    Some((share(part)?, duration(by)?))
}

/// Returns the size of a queue before a bottleneck of `rate` bytes per second.
fn queue(text: &str, rate: f64, rtt: Duration) -> Option<f64> {
    let (number, unit) = quantity(text)?;
    match unit {
        "bdp" if rtt.is_zero() => Some(number * rate * QUEUE_WITHOUT_DELAY_SECS),
        "bdp" => Some(number * rate * rtt.as_secs_f64()),
        "ms" => Some(number * 1e-3 * rate),
        "kB" => Some(number * 1e3),
        "MB" => Some(number * 1e6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let link = Options {
            rate: "1Gb/s/100mbit".into(),
            rtt: "150ms".into(),
            queue: "0.5bdp".into(),
            loss: "0.1%:10%/0".into(),
            late: "1%:5ms".into(),
            cross: "30%/0%".into(),
            jitter: "2ms".into(),
            ..Options::default()
        };
        let LinkSpec { forward, backward, .. } = link.parse().unwrap();
        assert_eq!((forward.rate_bytes_per_sec, backward.rate_bytes_per_sec), (Some(125e6), Some(12.5e6)));
        assert_eq!(forward.delay, Duration::from_millis(75));
        assert!((forward.queue_bytes - 0.5 * 125e6 * 0.15).abs() < 1.0);
        assert_eq!(forward.loss, LossModel::Bursts { begins: 0.001, ends: 0.1 });
        assert_eq!(backward.loss, LossModel::Each(0.0));
        assert_eq!((forward.late, forward.late_by), (0.01, Duration::from_millis(5)));
        assert_eq!((forward.cross, backward.cross), (0.3, 0.0));
        assert_eq!(forward.jitter, Duration::from_millis(2));
    }

    #[test]
    fn a_link_that_only_delays_has_no_queue() {
        let link = Options { rate: "none".into(), rtt: "150ms".into(), ..Options::default() };
        let lane = link.parse().unwrap().forward;
        assert_eq!((lane.rate_bytes_per_sec, lane.queue_bytes), (None, 0.0));
    }

    #[test]
    fn errors_name_the_option() {
        let with = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            options.parse().unwrap_err().to_string()
        };
        assert!(with(|o| o.rate = "1 gigabit".into()).contains("--rate"));
        assert!(with(|o| o.rate = "0mbit".into()).contains("--rate"));
        assert!(with(|o| o.rtt = "NaNms".into()).contains("--rtt"));
        assert!(with(|o| o.rtt = "-3ms".into()).contains("--rtt"));
        assert!(with(|o| o.loss = "120%".into()).contains("--loss"));
        assert!(with(|o| o.queue = "3 packets".into()).contains("--queue"));
        assert!(with(|o| o.jitter = "30ms".into()).contains("jitter"));
        assert!(with(|o| o.cross = "100%".into()).contains("--cross"));
        assert!(with(|o| (o.rate, o.rtt) = ("100gbit".into(), "2s".into())).contains("bytes per direction"));
        assert!(with(|o| o.mtu = 100).contains("MTU"));
        assert!(with(|o| o.hosts = 0).contains("hosts"));
    }
}
