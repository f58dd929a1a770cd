//! Outcome of a simulation.

use std::time::Duration;

use super::sender::SimulatedSender;

/// Outcome of all flows.
#[derive(Clone, Debug)]
pub struct SimulationOutcome {
    /// Outcomes in the order of the flows.
    pub flows: Vec<FlowOutcome>,
    /// Time and delay in the queue, both in seconds, of each segment, in order.
    pub queue: Vec<(f32, f32)>,
    /// End of the simulated time.
    pub until: Duration,
}

/// Outcome for one flow.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Times, seconds, and bytes of arrivals.
    pub arrived: Vec<(f32, f64)>,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes declared lost.
    pub lost_bytes: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Time at which all its bytes had arrived, if its size is limited.
    pub finished_at: Option<Duration>,
}

pub(super) fn of(
    senders: Vec<SimulatedSender>,
    queue: Vec<(f32, f32)>,
    until: Duration,
) -> SimulationOutcome {
    let flows = senders
        .into_iter()
        .map(|s| FlowOutcome {
            arrived: s.arrived,
            sent_bytes: s.sent_bytes,
            lost_bytes: s.lost_bytes,
            timeouts: s.timeouts,
            finished_at: s.finished_at,
        })
        .collect();
    SimulationOutcome { flows, queue, until }
}

impl FlowOutcome {
    /// Returns the rate of arrival between two times, bytes per second.
    #[must_use]
    pub fn rate_bytes_per_sec(&self, from: Duration, to: Duration) -> f64 {
        let (a, b) = (from.as_secs_f32(), to.as_secs_f32());
        let first = self.arrived.partition_point(|(at, _)| *at < a);
        let last = self.arrived.partition_point(|(at, _)| *at < b);
        let bytes: f64 = self.arrived.get(first..last).unwrap_or_default().iter().map(|(_, n)| n).sum();
        bytes / to.saturating_sub(from).as_secs_f64().max(1e-9)
    }

    /// Returns the first time at which the mean rate of the last `window` was at least `rate_bytes_per_sec`.
    #[must_use]
    pub fn reaches(&self, rate_bytes_per_sec: f64, window: Duration) -> Option<Duration> {
        let wanted = rate_bytes_per_sec * window.as_secs_f64();
        let (mut sum, mut first) = (0.0, 0);
        for &(at, bytes) in &self.arrived {
            sum += bytes;
            while self.arrived[first].0 < at - window.as_secs_f32() {
                sum -= self.arrived[first].1;
                first += 1;
            }
            if sum >= wanted {
                return Some(Duration::from_secs_f32(at));
            }
        }
        None
    }
}

impl SimulationOutcome {
    /// Returns the rate of all flows together, bytes per second.
    #[must_use]
    pub fn total_bytes_per_sec(&self, from: Duration, to: Duration) -> f64 {
        self.flows.iter().map(|f| f.rate_bytes_per_sec(from, to)).sum()
    }

    /// Returns the quantile `share` (0 to 1) of the delays in the queue between two times, seconds.
    #[must_use]
    pub fn queue_secs(&self, share: f64, from: Duration, to: Duration) -> f64 {
        let (a, b) = (from.as_secs_f32(), to.as_secs_f32());
        let mut delays: Vec<f32> =
            self.queue.iter().filter(|(at, _)| *at >= a && *at < b).map(|(_, delay)| *delay).collect();
        if delays.is_empty() {
            return 0.0;
        }
        delays.sort_by(f32::total_cmp);
        let place = super::link::whole(share.clamp(0.0, 1.0) * (delays.len() - 1) as f64);
        usize::try_from(place).ok().and_then(|i| delays.get(i)).map_or(0.0, |d| f64::from(*d))
    }

    /// Returns Jain's fairness index of the flows' rates: 1 if all are equal, 1/n if one flow has the whole rate.
    #[must_use]
    pub fn fairness(&self, from: Duration, to: Duration) -> f64 {
        let rates: Vec<f64> = self.flows.iter().map(|f| f.rate_bytes_per_sec(from, to)).collect();
        let squares: f64 = rates.iter().map(|r| r * r).sum();
        let sum: f64 = rates.iter().sum();
        if squares == 0.0 { 1.0 } else { sum * sum / (rates.len() as f64 * squares) }
    }
}
