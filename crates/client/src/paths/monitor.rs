//! Monitors a connection: statistics of its protocol are recorded in the database of paths, periodically and at its
//! end.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use link::{Flow, Statistics};
use parking_lot::Mutex;
use plan::{Direction, Measurement, SendMethod};
use tokio::time::Instant;

use super::Paths;

/// Sampling interval. The rate of receiving is the maximum over the intervals, because only the other side knows
/// whether it had enough to send. The rate of sending is the median, because a kernel may begin faster than the path
/// can sustain.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Number of samples between two records.
const SAMPLES_PER_RECORD: u32 = 10;
/// Minimum number of bytes for measuring a rate.
const MIN_RATE_BYTES: u64 = 512 << 10;
/// Minimum time for measuring a rate.
const MIN_RATE_TIME: Duration = Duration::from_millis(200);

/// Excess over the minimum round trip, as a fraction and as a time, that shows a queue.
const QUEUE_SHARE: f64 = 0.25;
const QUEUE_TIME: Duration = Duration::from_millis(2);

/// Name recorded for the controller of another host that sends to this one over TCP.
pub(super) const OF_OTHER_HOST: &str = "the other host's";

/// Monitors one connection until it is dropped.
pub struct ConnectionMonitor {
    paths: Paths,
    flow: Arc<dyn Flow>,
    host: IpAddr,
    seen: Mutex<MonitorState>,
}

/// State between two samples.
struct MonitorState {
    /// Statistics at the last record.
    recorded: Statistics,
    /// Statistics at the last sample, and its time.
    sampled: Statistics,
    sampled_at: Instant,
    /// Number of samples since the last record.
    samples: u32,
    /// Packets sent and lost that show the losses of the path, summed over the samples since the last record.
    packets: (u64, u64),
    /// Rates of sending while there was enough to send, in bytes per second.
    sent_rates: Vec<f64>,
    /// Highest rate of receiving, in bytes per second; 0 if too little was received.
    fastest_received: f64,
}

impl ConnectionMonitor {
    /// Begins monitoring; `None` if the protocol has no statistics.
    #[must_use]
    pub fn begin(paths: &Paths, flow: Option<Arc<dyn Flow>>) -> Option<Self> {
        let flow = flow?;
        let host = flow.peer()?.ip();
        let recorded = flow.statistics();
        let seen = MonitorState {
            recorded,
            sampled: recorded,
            sampled_at: Instant::now(),
            samples: 0,
            packets: (0, 0),
            sent_rates: Vec::new(),
            fastest_received: 0.0,
        };
        Some(Self { paths: paths.clone(), flow, host, seen: Mutex::new(seen) })
    }

    /// Monitors without end.
    ///
    /// # Cancel safety
    /// Dropping the future records the last samples.
    pub async fn run(self) {
        loop {
            tokio::time::sleep(SAMPLE_INTERVAL).await;
            self.sample(false);
        }
    }

    fn sample(&self, is_last: bool) {
        let (found, now) = (self.flow.statistics(), Instant::now());
        let mut seen = self.seen.lock();
        let elapsed = now.saturating_duration_since(seen.sampled_at);
        if elapsed >= MIN_RATE_TIME || is_last {
            let (sent, lost) = path_losses(&seen.sampled, &found);
            seen.packets = (seen.packets.0 + sent, seen.packets.1 + lost);
        }
        if elapsed >= MIN_RATE_TIME {
            let (sent, received) = rates(&seen.sampled, &found, elapsed);
            seen.sent_rates.extend(sent);
            seen.fastest_received = seen.fastest_received.max(received);
            (seen.sampled, seen.sampled_at) = (found, now);
        }
        seen.samples += 1;
        if is_last || seen.samples >= SAMPLES_PER_RECORD {
            let rates = (upper_median(std::mem::take(&mut seen.sent_rates)), seen.fastest_received);
            let packets = std::mem::take(&mut seen.packets);
            self.paths.record(self.host, measured(&seen.recorded, &found, packets, rates));
            (seen.recorded, seen.samples, seen.fastest_received) = (found, 0, 0.0);
        }
    }
}

impl Drop for ConnectionMonitor {
    fn drop(&mut self) {
        self.sample(true);
    }
}

/// Returns the middle rate; the faster of two, which for a short transfer is its second half.
fn upper_median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Returns the rate of sending while there was enough to send, and the rate of receiving, in bytes per second; `None`
/// or 0 if too little was transferred.
fn rates(before: &Statistics, now: &Statistics, elapsed: Duration) -> (Option<f64>, f64) {
    let is_enough = |before: u64, now: u64| now.saturating_sub(before) >= MIN_RATE_BYTES;
    let sent = now.delivery_bytes_per_sec.filter(|_| is_enough(before.sent_bytes, now.sent_bytes));
    let received_bytes = now.received_bytes.saturating_sub(before.received_bytes);
    let is_received = is_enough(before.received_bytes, now.received_bytes);
    let received = if is_received { received_bytes as f64 / elapsed.as_secs_f64() } else { 0.0 };
    (sent, received)
}

/// Returns the packets sent and lost between two samples that show the losses of the path. A flow whose controller
/// fills queues until they overflow, as that of a kernel, causes losses itself: it counts only while its queue is short
/// or it sends little, and not at its start.
fn path_losses(before: &Statistics, now: &Statistics) -> (u64, u64) {
    let keeps_queues_short =
        now.controller.is_some_and(|choice| ["auto", "polite", "rate"].contains(&choice.name()))
            && now.protocol != "tcp";
    let is_short = |is: &Statistics| {
        is.sent_packets > 0
            && is
                .rtt
                .zip(is.least_rtt)
                .is_some_and(|(rtt, least)| rtt <= least.mul_f64(1.0 + QUEUE_SHARE) + QUEUE_TIME)
    };
    let fills_nothing = now.sent_bytes.saturating_sub(before.sent_bytes) < MIN_RATE_BYTES;
    let has_begun = before.sent_bytes >= MIN_RATE_BYTES;
    if keeps_queues_short || fills_nothing || has_begun && is_short(before) && is_short(now) {
        let sent = now.sent_packets.saturating_sub(before.sent_packets);
        (sent, now.lost_packets.saturating_sub(before.lost_packets))
    } else {
        (0, 0)
    }
}

/// Converts the changes between two samples to measurements.
fn measured(
    before: &Statistics,
    now: &Statistics,
    (packets, lost): (u64, u64),
    (sent_rate, received_rate): (f64, f64),
) -> Vec<Measurement> {
    let direction = Direction::Up;
    let mut measured = Vec::new();
    if (now.sent_bytes, now.received_bytes) == (before.sent_bytes, before.received_bytes) {
        return measured;
    }
    measured.extend(now.rtt.map(|rtt| Measurement::RoundTrip(rtt.as_secs_f64())));
    measured.extend(now.least_rtt.map(|rtt| Measurement::LeastRoundTrip(rtt.as_secs_f64())));
    measured.extend(now.mtu_bytes.map(|bytes| Measurement::Mtu(direction, bytes)));
    let sent = now.sent_packets.saturating_sub(before.sent_packets);
    if packets > 0 {
        measured.push(Measurement::Packets { direction, sent: packets, lost });
    }
    measured.extend(matches!(now.protocol, "quic" | "lossy").then_some(Measurement::Udp(true)));
    let late = now.reordered.zip(before.reordered).map(|(now, before)| now.saturating_sub(before));
    measured.extend(late.map(|late| Measurement::Reordered { direction, sent, late }));
    // Both sides use the controller that the client chose; over TCP without a choice the other kernel's controller is
    // unknown.
    let theirs = now.controller.map(|choice| choice.name());
    let ours = theirs.or(now.kernel_controller);
    let way = |controller: Option<&str>| SendMethod {
        protocol: now.protocol.into(),
        controller: controller.unwrap_or(OF_OTHER_HOST).into(),
        streams: now.streams,
    };
    if sent_rate > 0.0 {
        measured.push(Measurement::Achieved(Direction::Up, way(ours), sent_rate));
    }
    if received_rate > 0.0 {
        measured.push(Measurement::Achieved(Direction::Down, way(theirs), received_rate));
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Path;

    fn statistics(sent_bytes: u64, received_bytes: u64) -> Statistics {
        Statistics {
            protocol: "tcp",
            streams: 1,
            controller: None,
            kernel_controller: Some("cubic"),
            rtt: Some(Duration::from_millis(21)),
            least_rtt: Some(Duration::from_millis(20)),
            sent_bytes,
            received_bytes,
            lost_bytes: 0,
            sent_packets: sent_bytes / 1448,
            lost_packets: sent_bytes / 144_800,
            reordered: Some(0),
            out_of_order: None,
            in_flight_bytes: 0,
            window_bytes: 1 << 20,
            rate_bytes_per_sec: None,
            delivery_bytes_per_sec: Some(6.25e6),
            packet_bytes: 1448,
            mtu_bytes: Some(1500),
            batches: 0,
            datagrams: None,
        }
    }

    #[test]
    fn measurements_are_recorded_by_direction() {
        let (before, now) = (statistics(1 << 20, 0), statistics((1 << 20) + 14_480_000, 20_000_000));
        let (sent, received) = rates(&before, &now, Duration::from_secs(2));
        let (mut path, at) = (Path::default(), Duration::from_secs(1));
        for one in measured(&before, &now, path_losses(&before, &now), (sent.unwrap(), received)) {
            path.record(at, one);
        }
        let rate = |direction| path.one_way(direction).rate(at).unwrap().0.value;
        assert!((rate(Direction::Up) - 6.25e6).abs() < 1.0 && (rate(Direction::Down) - 10e6).abs() < 1.0);
        assert!((path.one_way(Direction::Up).loss(at).unwrap().value - 0.01).abs() < 1e-6);
        assert!(path.one_way(Direction::Down).loss(at).is_none(), "only the sender measures losses");
        assert!((path.rtt.least(at).unwrap().value - 0.020).abs() < 1e-9);
        assert!((path.one_way(Direction::Up).mtu_bytes(at).unwrap().value - 1500.0).abs() < 1e-9);
    }

    /// A kernel that fills the queue until it overflows causes losses itself.
    #[test]
    fn losses_of_a_full_queue_are_not_counted_as_losses_of_the_path() {
        let (begin, before, now) = (statistics(0, 0), statistics(10 << 20, 0), statistics(20 << 20, 0));
        let queued = |is: Statistics| Statistics { rtt: Some(Duration::from_millis(40)), ..is };
        let by = |controller: &str, is: Statistics| Statistics {
            protocol: "quic",
            controller: Some(controller.parse().unwrap()),
            ..is
        };
        assert_eq!(path_losses(&begin, &before), (0, 0), "the start of a flow fills the queue");
        assert_eq!(path_losses(&queued(before), &now), (0, 0));
        assert_eq!(path_losses(&before, &queued(now)), (0, 0));
        assert_eq!(path_losses(&by("cubic", before), &by("cubic", queued(now))), (0, 0));
        assert!(path_losses(&before, &now).0 > 0, "a short queue loses nothing");
        assert!(
            path_losses(&by("auto", begin), &by("auto", queued(before))).1 > 0,
            "this controller keeps queues short"
        );
    }

    #[test]
    fn a_fast_start_does_not_determine_the_rate() {
        assert!((upper_median(vec![50e6, 9e6, 8e6, 7e6, 8e6]) - 8e6).abs() < 1.0, "losses after the start");
        assert!((upper_median(vec![20e6, 50e6]) - 50e6).abs() < 1.0, "the rate was still growing");
        assert!(upper_median(Vec::new()).abs() < 1e-12);
    }

    #[test]
    fn short_transfers_give_no_rate_and_idle_connections_no_measurement() {
        let (before, now) = (statistics(0, 0), statistics(1000, 1000));
        assert_eq!(rates(&before, &now, Duration::from_secs(1)), (None, 0.0));
        assert!(measured(&before, &before, (0, 0), (0.0, 0.0)).is_empty());
    }
}
