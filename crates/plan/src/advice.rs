//! Advice on sending over a path, each choice with its reason; choices without data are reported as unknown.

use std::time::Duration;

use serde::Serialize;

use crate::estimate::{Estimate, whole};
use crate::host::HostFacts;
use crate::laws::{bandwidth_delay_bytes, cubic_bytes_per_sec, cubic_recovery_secs, segment_bytes};
use crate::path::{Direction, Path};
use crate::text;

/// Most parallel connections that are advised.
pub const MAX_STREAMS: u32 = 16;
/// Size of buffers in bandwidth-delay products: one for data in flight, one for data whose acknowledgement is
/// in flight.
pub const BUFFER_HEADROOM: f64 = 2.0;
/// Smallest confidence of an estimate that a connection starts from.
pub const LEAST_CONFIDENCE: f64 = 0.2;
/// Largest buffer of a connection that Linux allows by default (the lower limit, of sending), bytes.
const USUAL_BUFFER_BYTES: f64 = 4_194_304.0;
/// Share of the capacity below which a rate does not fill the path.
const ENOUGH: f64 = 0.95;
/// Recovery time of TCP after one loss, seconds, above which TCP is advised only where at most `MANY_LOST`
/// losses may occur in that time.
const LONG_RECOVERY_SECS: f64 = 10.0;
const MANY_LOST: f64 = 40.0;
/// Factor between the predicted and the reached rate of TCP, below which loss may have limited TCP.
const SLOW_BY_LOSS: f64 = 2.0;
/// Factor from which one method counts as faster than another.
const FASTER: f64 = 1.1;
/// Time after which UDP is tried again where it did not get through.
const TRY_UDP_AFTER: Duration = Duration::from_secs(86_400);

/// Choice with its reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advised<T> {
    /// Chosen value; `None` where too little is known.
    pub value: Option<T>,
    /// Interval of a numeric choice.
    pub interval: Option<(f64, f64)>,
    /// Confidence from 0 to 1, as in [`Estimate`].
    pub confidence: f64,
    /// Number of measurements behind the choice.
    pub samples: u32,
    /// Age of the newest measurement, seconds; `None` without one.
    pub age_secs: Option<f64>,
    /// Reason, a sentence.
    pub basis: String,
}

impl<T> Advised<T> {
    fn unknown(missing: &str) -> Self {
        let basis = format!("unknown: {missing}");
        Self { value: None, interval: None, confidence: 0.0, samples: 0, age_secs: None, basis }
    }

    fn by(value: T, rests_on: &[&Estimate], basis: String) -> Self {
        let least = rests_on.iter().map(|e| e.confidence).min_by(f64::total_cmp);
        Self {
            value: Some(value),
            interval: None,
            confidence: least.unwrap_or(0.0),
            samples: rests_on.iter().map(|e| e.samples).min().unwrap_or(0),
            age_secs: rests_on.iter().map(|e| e.age_secs).max_by(f64::total_cmp),
            basis,
        }
    }

    fn between(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }
}

/// Advice on sending over a path in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Protocol: `tcp` or `quic`.
    pub protocol: Advised<&'static str>,
    /// Controller that should decide the rate: one of this project over QUIC, the kernel's over TCP.
    pub controller: Advised<String>,
    /// Rate, bytes per second.
    pub rate_bytes_per_sec: Advised<f64>,
    /// Parallel connections.
    pub streams: Advised<u32>,
    /// Value for the maximum of `tcp_rmem` and `tcp_wmem`, bytes; the kernel's own tuning stays on.
    pub buffer_bytes: Advised<u64>,
    /// Largest IP packet, bytes.
    pub mtu_bytes: Advised<u32>,
}

/// Facts that the advice is derived from.
struct AdviceFacts<'a> {
    path: &'a Path,
    direction: Direction,
    host: &'a HostFacts,
    now: Duration,
    rtt: Option<Estimate>,
    loss: Option<Estimate>,
    rate: Option<(Estimate, String)>,
    segment_bytes: f64,
}

/// Returns advice for sending in `direction` over `path`, between it and this `host`.
#[must_use]
pub fn advise(path: &Path, direction: Direction, host: &HostFacts, now: Duration) -> Advice {
    let facts = AdviceFacts::of(path, direction, host, now);
    let protocol = facts.protocol();
    Advice {
        controller: facts.controller(protocol.value),
        streams: facts.streams(protocol.value),
        protocol,
        rate_bytes_per_sec: facts.rate(),
        buffer_bytes: facts.buffers(),
        mtu_bytes: facts.mtu(),
    }
}

/// Returns the protocol for an automatic link, for data to this host: the advised one, where its confidence
/// is high enough.
#[must_use]
pub fn link_protocol(path: &Path, now: Duration) -> Advised<&'static str> {
    let advised = advise(path, Direction::Down, &HostFacts::default(), now).protocol;
    match advised.value {
        Some(value) if advised.confidence < LEAST_CONFIDENCE => {
            let basis =
                format!("unknown: too few measurements to choose `{value}`, though {}", advised.basis);
            Advised { value: None, basis, ..advised }
        }
        _ => advised,
    }
}

/// Returns the number of streams of an automatic link by TCP, for data to this host: as few as were seen to
/// fill the path, otherwise as many as the rate law of one requires, where the confidence is high enough.
/// Only packet trains measure a capacity beyond the rate of TCP.
#[must_use]
pub fn link_streams(path: &Path, now: Duration) -> Advised<u32> {
    let host = HostFacts::default();
    let facts = AdviceFacts::of(path, Direction::Down, &host, now);
    if path.one_way(Direction::Down).capacity(now).is_none() {
        return Advised::unknown("packet trains must have measured the path");
    }
    if let Some(seen) = facts.streams_seen() {
        return seen;
    }
    let advised = facts.streams(Some("tcp"));
    if advised.confidence < LEAST_CONFIDENCE {
        return Advised {
            value: None,
            basis: format!("unknown: too few measurements, though {}", advised.basis),
            ..advised
        };
    }
    advised
}

impl<'a> AdviceFacts<'a> {
    fn of(path: &'a Path, direction: Direction, host: &'a HostFacts, now: Duration) -> Self {
        let one_way = path.one_way(direction);
        Self {
            path,
            direction,
            host,
            now,
            rtt: path.rtt.least(now),
            loss: one_way.loss(now),
            rate: one_way.rate(now),
            segment_bytes: segment_bytes(one_way.mtu_bytes(now).map(|mtu| mtu.value)),
        }
    }
}

impl AdviceFacts<'_> {
    fn rate(&self) -> Advised<f64> {
        let Some((rate, how)) = &self.rate else {
            return Advised::unknown("no packet train and no transfer was measured on this path");
        };
        Advised::by(rate.value, &[rate], how.clone()).between(rate.low, rate.high)
    }

    /// Chooses the protocol: measurements take precedence over theory.
    fn protocol(&self) -> Advised<&'static str> {
        self.refused()
            .or_else(|| self.compared())
            .or_else(|| self.enough())
            .or_else(|| self.by_law())
            .unwrap_or_else(|| {
                Advised::unknown(
                    "to compare TCP with the path, its round trip, rate and loss must have been measured",
                )
            })
    }

    /// Advises TCP where UDP does not get through.
    fn refused(&self) -> Option<Advised<&'static str>> {
        let age_secs = self.path.udp_refused_for(self.now).filter(|age| *age < TRY_UDP_AFTER)?.as_secs_f64();
        let basis = format!(
            "UDP, which QUIC needs, did not get through {:.0} min ago; it is tried again after a day",
            age_secs / 60.0
        );
        Some(Advised {
            value: Some("tcp"),
            interval: None,
            confidence: 1.0,
            samples: 1,
            age_secs: Some(age_secs),
            basis,
        })
    }

    fn compared(&self) -> Option<Advised<&'static str>> {
        let one_way = self.path.one_way(self.direction);
        let tcp = one_way.comparable(self.now, "tcp")?.bytes_per_sec;
        let quic = one_way.comparable(self.now, "quic")?.bytes_per_sec;
        let said = |faster: &str, slower: &str, a: &Estimate, b: &Estimate| {
            let (a, b) = (text::rate(a.value), text::rate(b.value));
            format!("transfers by {faster} reached {a}, those by {slower} {b}")
        };
        Some(if quic.value > FASTER * tcp.value {
            Advised::by("quic", &[&tcp, &quic], said("QUIC", "TCP", &quic, &tcp))
        } else {
            let why = said("TCP", "QUIC", &tcp, &quic) + "; TCP costs a quarter of the processor time";
            Advised::by("tcp", &[&tcp, &quic], why)
        })
    }

    /// Advises TCP where it fills the path whatever its loss: the sender's kernel may not react to it.
    fn enough(&self) -> Option<Advised<&'static str>> {
        let one_way = self.path.one_way(self.direction);
        let tcp = one_way.comparable(self.now, "tcp")?.bytes_per_sec;
        // Not the rate that TCP itself has reached: another protocol might reach more.
        let trains = one_way.capacity(self.now).filter(|trains| tcp.value >= ENOUGH * trains.value)?;
        let (got, carried) = (text::rate(tcp.value), text::rate(trains.value));
        Some(Advised::by(
            "tcp",
            &[&tcp, &trains],
            format!("transfers by TCP reached {got}; packet trains measured a capacity of {carried}"),
        ))
    }

    /// Predicted rate of a CUBIC flow, with the interval that follows from the interval of the loss.
    fn tcp_bytes_per_sec(&self) -> Option<(f64, f64, f64)> {
        let (rtt, loss) = (self.rtt?.value, self.loss?);
        let law = |loss: f64| cubic_bytes_per_sec(self.segment_bytes, rtt, loss);
        Some((law(loss.value), law(loss.high), law(loss.low)))
    }

    /// Compares the predicted rate of one CUBIC flow with the capacity of the path. Where only TCP has
    /// measured the capacity, the prediction must exceed it clearly: otherwise loss may have limited TCP, and
    /// its low rate would count in its favor.
    fn by_law(&self) -> Option<Advised<&'static str>> {
        let (rtt, loss, (rate, _)) = (self.rtt?, self.loss?, self.rate.as_ref()?);
        let (tcp, worst, best) = self.tcp_bytes_per_sec()?;
        let one_way = self.path.one_way(self.direction);
        let best_got = one_way.best(self.now).filter(|got| !got.is_held());
        let is_measured = one_way.capacity(self.now).is_some();
        let is_tcps_own = !is_measured && best_got.is_none_or(|got| got.method.protocol == "tcp");
        let needed = rate.value * if is_tcps_own { SLOW_BY_LOSS } else { ENOUGH };
        let is_enough = |tcp: f64| tcp >= needed;
        let is_sure = is_enough(worst) == is_enough(best);
        // Where a single loss costs much, the absence of losses among few packets is not enough.
        let recovery_secs = cubic_recovery_secs(self.segment_bytes, rtt.value, rate.value);
        let lost_meanwhile = loss.high * recovery_secs * rate.value / self.segment_bytes;
        let is_costly = recovery_secs > LONG_RECOVERY_SECS && lost_meanwhile > MANY_LOST;
        let is_risky = !is_sure && is_enough(tcp) && is_costly;
        let doubt = match (is_sure, is_risky) {
            (true, _) => String::new(),
            (false, false) => "; too few packets were seen to be sure".into(),
            (false, true) => format!(
                "; too few packets were seen to be sure, and one loss would cost TCP {recovery_secs:.0} s until the path is full again"
            ),
        };
        let why = format!(
            "at {:.4} % loss and {} one CUBIC flow reaches {} (RFC 9438), the path carries {}{}{doubt}",
            loss.value * 100.0,
            text::time(rtt.value),
            text::rate(tcp),
            text::rate(rate.value),
            if is_tcps_own { " at least, as TCP has shown" } else { "" },
        );
        let protocol = if is_enough(tcp) && !is_risky { "tcp" } else { "quic" };
        let advised = Advised::by(protocol, &[&rtt, &loss, rate], why);
        let confidence = if is_sure { advised.confidence } else { advised.confidence / 2.0 };
        Some(Advised { confidence, ..advised })
    }

    fn controller(&self, protocol: Option<&str>) -> Advised<String> {
        match (protocol, self.loss) {
            (Some("quic"), Some(loss)) => {
                let why = "finds the rate itself, starts at the remembered rate of this path, and does not treat random loss \
                           as congestion";
                Advised::by("auto".into(), &[&loss], why.into())
            }
            (Some("tcp"), _) if self.direction == Direction::Down => {
                Advised::unknown("over TCP the other host's kernel decides")
            }
            (Some("tcp"), Some(loss)) => {
                let Some(kernel) = self.host.congestion_control.clone() else {
                    return Advised::unknown("the kernel does not report its congestion control");
                };
                Advised::by(kernel, &[&loss], "the controller of the kernel; it is enough here".into())
            }
            _ => Advised::unknown("it depends on the protocol, and loss must have been measured"),
        }
    }

    /// Fewest streams that were seen to fill the path by TCP.
    fn streams_seen(&self) -> Option<Advised<u32>> {
        let one_way = self.path.one_way(self.direction);
        let trains = one_way.capacity(self.now)?;
        let got = one_way.filling(self.now, "tcp", ENOUGH * trains.value)?;
        let (rate, carried) = (text::rate(got.bytes_per_sec.value), text::rate(trains.value));
        let why =
            format!("this number of streams reached {rate}; packet trains measured a capacity of {carried}");
        Some(Advised::by(got.method.streams, &[&got.bytes_per_sec, &trains], why))
    }

    /// Fewest streams that fill the path.
    fn streams(&self, protocol: Option<&str>) -> Advised<u32> {
        let (Some(rtt), Some(loss), Some((rate, _))) = (&self.rtt, &self.loss, &self.rate) else {
            return Advised::unknown("round trip, rate and loss must have been measured");
        };
        if protocol == Some("quic") {
            let why = "one flow of `auto` fills a path that loses packets; more would only take from others";
            return Advised::by(1, &[rtt, loss, rate], why.into()).between(1.0, 1.0);
        }
        if let Some(seen) = self.streams_seen() {
            return seen;
        }
        let Some((tcp, worst, best)) = self.tcp_bytes_per_sec() else {
            return Advised::unknown("round trip and loss must have been measured");
        };
        let needed = |tcp: f64| (ENOUGH * rate.value / tcp).ceil().clamp(1.0, f64::from(MAX_STREAMS));
        let count = needed(tcp);
        let why = format!(
            "each CUBIC flow reaches at most {} (RFC 9438), the path carries {}",
            text::rate(tcp.min(rate.value)),
            text::rate(rate.value)
        );
        Advised::by(u32::try_from(whole(count)).unwrap_or(MAX_STREAMS), &[rtt, loss, rate], why)
            .between(needed(best), needed(worst))
    }

    fn buffers(&self) -> Advised<u64> {
        let (Some(rtt), Some((rate, _))) = (&self.rtt, &self.rate) else {
            return Advised::unknown("round trip and rate must have been measured");
        };
        let fill = |rate: f64, rtt: f64| BUFFER_HEADROOM * bandwidth_delay_bytes(rate, rtt);
        let bytes = fill(rate.value, rtt.value);
        let product = format!(
            "twice rate times round trip ({} x {}, RFC 6349)",
            text::rate(rate.value),
            text::time(rtt.value)
        );
        let why = if bytes <= USUAL_BUFFER_BYTES {
            format!("{product} is below the default limits of systems; nothing to change")
        } else {
            format!(
                "{product}: allow tcp_rmem and tcp_wmem to grow to this, and leave the kernel's tuning on (a program that sets \
                 SO_RCVBUF turns it off)"
            )
        };
        let enough = |bytes: f64| bytes.max(USUAL_BUFFER_BYTES);
        let advised = Advised::by(whole(enough(bytes)), &[rtt, rate], why);
        advised.between(enough(fill(rate.low, rtt.low)), enough(fill(rate.high, rtt.high)))
    }

    fn mtu(&self) -> Advised<u32> {
        let one_way = self.path.one_way(self.direction);
        let Some((mtu, bytes)) =
            one_way.mtu_bytes(self.now).and_then(|mtu| Some((mtu, u32::try_from(whole(mtu.value)).ok()?)))
        else {
            return Advised::unknown("no connection has measured the largest packet of the path");
        };
        let why = "the largest packet that got through".to_owned();
        Advised::by(bytes, &[&mtu], why).between(mtu.low, mtu.high)
    }
}
