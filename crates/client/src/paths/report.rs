//! Report of the known values of a path, as JSON and as text.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;

use link::quic::Rejected;
use plan::text::{rate, time};
use plan::{
    AchievedRate, Advice, Advised, Direction, Estimate, HostFacts, PathReport, TransferLimit, Trend, advise,
    link_protocol, preflight,
};
use serde::Serialize;

use super::RecalledPath;
use super::monitor::OF_OTHER_HOST;
use crate::text::size;

/// Report of the known values of the path between this host and another. Rates are in bytes per second, times in
/// seconds.
#[derive(Debug, Serialize)]
pub struct PathSummary {
    /// The other host.
    pub host: IpAddr,
    /// Host that was measured, if it is not `host` itself: another host behind the same bottleneck.
    pub of_neighbour: Option<IpAddr>,
    /// Sentence about the measurements made for this report.
    pub measured_now: String,
    rtt: RoundTripReport,
    /// Protocol that `--link auto` uses for incoming data; null if the round-trip time decides.
    link: Advised<&'static str>,
    /// Direction from this host to the other.
    to: DirectionReport,
    /// Direction from the other host to this one.
    from: DirectionReport,
    /// Facts of the host that makes the report.
    this_host: HostFacts,
    /// Counts of packets that the UDP port of the reporting server has rejected since its start; null if there is no
    /// such port.
    rejected: Option<RejectedPackets>,
}

/// Counts of rejected packets by reason, as in [`link::quic::Rejected`].
#[derive(Debug, Serialize)]
struct RejectedPackets {
    unknown: u64,
    oversized: u64,
    unauthenticated: u64,
    replayed: u64,
    stray: u64,
}

#[derive(Debug, Serialize)]
struct RoundTripReport {
    least_secs: Option<Estimate>,
    trimmed_mean_secs: Option<Estimate>,
    smoothed_secs: Option<f64>,
    variation_secs: Option<f64>,
    /// Number of times that the path was seen to change.
    changes: u32,
}

/// Values of one direction.
#[derive(Debug, Serialize)]
struct DirectionReport {
    rate_bytes_per_sec: Option<Estimate>,
    #[serde(flatten)]
    seen: PathReport,
    delay_trend: Trend,
    /// Age of the values that the other host reported of this direction; none if it reported nothing.
    told_age_secs: Option<f64>,
    advice: Advice,
    limits: Vec<TransferLimit>,
}

impl PathSummary {
    /// Creates a report from the remembered path to `host`, if any, and the facts of this host.
    pub(super) fn new(
        host: IpAddr,
        recalled: Option<RecalledPath>,
        facts: HostFacts,
        measured_now: String,
        now: Duration,
    ) -> Self {
        let of_neighbour = recalled.as_ref().and_then(|recalled| recalled.of_neighbour);
        let path = recalled.map(|recalled| recalled.path).unwrap_or_default();
        let smoothed = path.rtt.smoothed();
        Self {
            host,
            of_neighbour,
            measured_now,
            rtt: RoundTripReport {
                least_secs: path.rtt.least(now),
                trimmed_mean_secs: path.rtt.trimmed_mean(now),
                smoothed_secs: smoothed.map(|(smoothed, _)| smoothed),
                variation_secs: smoothed.map(|(_, variation)| variation),
                changes: path.rtt.shifts(),
            },
            link: link_protocol(&path, now),
            to: DirectionReport::new(&path, Direction::Up, &facts, now),
            from: DirectionReport::new(&path, Direction::Down, &facts, now),
            this_host: facts,
            rejected: None,
        }
    }

    /// Returns this report with the counts of packets that a server's UDP port rejected.
    #[must_use]
    pub fn rejecting(self, rejected: Option<Rejected>) -> Self {
        let counts = |Rejected { unknown, oversized, unauthenticated, replayed, stray }| RejectedPackets {
            unknown,
            oversized,
            unauthenticated,
            replayed,
            stray,
        };
        Self { rejected: rejected.map(counts), ..self }
    }

    /// Formats the report as text for display.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("path to {}\n  {}\n", self.host, self.measured_now);
        if let Some(of) = self.of_neighbour {
            line(&mut text, "known from", format!("{of}, which is behind the same bottleneck"));
        }
        match (self.rtt.least_secs, self.rtt.trimmed_mean_secs) {
            (Some(least), mean) => {
                let mean = mean.map_or_else(String::new, |mean| format!(", mean {}", time(mean.value)));
                let changes = counted(u64::from(self.rtt.changes), "change");
                let what = format!("{} at least{mean}; {changes}{}", time(least.value), sure(&least));
                line(&mut text, "round trip", what);
            }
            (None, _) => line(&mut text, "round trip", "unknown".into()),
        }
        match self.link.value {
            Some(protocol) => line(&mut text, "link auto", format!("{protocol}: {}", self.link.basis)),
            None => line(&mut text, "link auto", format!("by the round trip; else {}", self.link.basis)),
        }
        self.from.write(&mut text, &format!("receiving from {}", self.host));
        self.to.write(&mut text, &format!("sending to {}", self.host));
        text
    }
}

impl DirectionReport {
    fn new(path: &plan::Path, direction: Direction, facts: &HostFacts, now: Duration) -> Self {
        let one_way = path.one_way(direction);
        Self {
            rate_bytes_per_sec: one_way.rate(now).map(|(rate, _)| rate),
            seen: one_way.to_report(now),
            delay_trend: one_way.delay_trend(),
            told_age_secs: one_way.reported_for(now).map(|age| age.as_secs_f64()),
            advice: advise(path, direction, facts, now),
            limits: preflight(facts, path, direction, now),
        }
    }

    fn write(&self, text: &mut String, title: &str) {
        writeln!(text, "{title}").unwrap_or_default();
        if let Some(age) = self.told_age_secs {
            line(text, "reported", format!("by the other host, {:.0} min ago", age / 60.0));
        }
        if let Some(loss) = self.seen.loss {
            line(text, "loss", format!("{:.4} % (at most {:.4} %)", loss.value * 100.0, loss.high * 100.0));
        }
        for AchievedRate { method, bytes_per_sec } in &self.seen.achieved {
            let several =
                if method.streams > 1 { format!(", {} streams", method.streams) } else { String::new() };
            let by = format!("{} with {}{several}", method.protocol, controller(&method.controller));
            line(text, "achieved", format!("{} by {by}{}", rate(bytes_per_sec.value), sure(bytes_per_sec)));
        }
        let advice = &self.advice;
        advised(text, "protocol", &advice.protocol, |protocol| (*protocol).into());
        advised(text, "controller", &advice.controller, Clone::clone);
        advised(text, "rate", &advice.rate_bytes_per_sec, |bytes| rate(*bytes));
        advised(text, "streams", &advice.streams, ToString::to_string);
        advised(text, "buffers", &advice.buffer_bytes, |bytes| size(*bytes));
        advised(text, "packets", &advice.mtu_bytes, |bytes| format!("{bytes} bytes"));
        for limit in &self.limits {
            let mark = if limit.is_binding { "  <- binds" } else { "" };
            let what = format!("{}: {}{mark}; {}", limit.name, rate(limit.bits_per_sec / 8.0), limit.why);
            line(text, "limit", what);
            if let Some(change) = limit.change.as_ref().filter(|_| limit.is_binding) {
                line(text, "", format!("change: {change}"));
            }
        }
    }
}

fn advised<T>(text: &mut String, name: &str, advised: &Advised<T>, say: impl Fn(&T) -> String) {
    let what = match &advised.value {
        Some(value) => {
            format!("{} ({:.0} % sure): {}", say(value), advised.confidence * 100.0, advised.basis)
        }
        None => advised.basis.clone(),
    };
    line(text, name, what);
}

fn line(text: &mut String, name: &str, what: String) {
    writeln!(text, "  {name:<11} {what}").unwrap_or_default();
}

fn sure(estimate: &Estimate) -> String {
    let hours = estimate.age_secs / 3600.0;
    let age = if hours < 1.0 { "less than an hour".into() } else { format!("{hours:.0} h") };
    match estimate.samples {
        1 => format!(" (1 measurement, {age} old)"),
        samples => format!(" ({samples} measurements, the newest {age} old)"),
    }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Names the controller that decides the rate of the data, as the end of a sentence.
fn controller(name: &str) -> String {
    if name == OF_OTHER_HOST { format!("{name} controller") } else { name.to_owned() }
}
