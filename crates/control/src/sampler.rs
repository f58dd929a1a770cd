//! Delivery rate of a connection: a helper of the engine that fills [`Ack::delivery`](crate::Ack::delivery).
//!
//! Estimator of draft-cheng-iccrg-delivery-rate-estimation-02: bytes delivered between the sending of a
//! packet and its acknowledgement, over the longer of the times that they took to be sent and to be
//! acknowledged.

use std::time::Duration;

use crate::DeliverySample;

/// Shortest interval of a sample: below it, timers and coalesced acknowledgements dominate.
const SHORTEST: Duration = Duration::from_micros(20);

/// Sampler of the delivery rate of one connection.
#[derive(Clone, Debug, Default)]
pub struct DeliverySampler {
    delivered_bytes: u64,
    delivered_at: Duration,
    first_sent_at: Duration,
    app_limited_until_bytes: u64,
}

/// State at the sending of a packet, which the engine passes back with the packet's acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SendStamp {
    /// Send time of the packet.
    pub sent_at: Duration,
    delivered_bytes: u64,
    delivered_at: Duration,
    first_sent_at: Duration,
    is_app_limited: bool,
}

impl DeliverySampler {
    /// Records a sent packet; `in_flight_bytes` is the amount before it.
    pub fn on_sent(&mut self, now: Duration, in_flight_bytes: u64) -> SendStamp {
        if in_flight_bytes == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendStamp {
            sent_at: now,
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_app_limited: self.app_limited_until_bytes > self.delivered_bytes,
        }
    }

    /// Records that there was nothing to send: samples are limited by the application until `in_flight_bytes`
    /// were delivered.
    pub fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.app_limited_until_bytes = self.delivered_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// Records delivered bytes, the newest of them with `stamp`; returns a sample, or `None` where the
    /// interval is too short.
    pub fn on_ack(&mut self, now: Duration, stamp: &SendStamp, bytes: u64) -> Option<DeliverySample> {
        self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
        self.delivered_at = now;
        self.first_sent_at = self.first_sent_at.max(stamp.sent_at);
        let leaving = stamp.sent_at.saturating_sub(stamp.first_sent_at);
        let arriving = now.saturating_sub(stamp.delivered_at);
        let interval = leaving.max(arriving);
        if interval < SHORTEST {
            return None;
        }
        let arrived = self.delivered_bytes.saturating_sub(stamp.delivered_bytes);
        Some(DeliverySample {
            rate_bytes_per_sec: arrived as f64 / interval.as_secs_f64(),
            delivered_bytes: self.delivered_bytes,
            delivered_at_send_bytes: stamp.delivered_bytes,
            is_app_limited: stamp.is_app_limited,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Simulates a packet of 1500 bytes every millisecond, each acknowledged 10 ms later.
    fn steady(sampler: &mut DeliverySampler, packets: u64) -> Vec<Option<DeliverySample>> {
        let mut stamps = Vec::new();
        let mut out = Vec::new();
        for i in 0..packets + 10 {
            if i >= 10 {
                out.push(sampler.on_ack(ms(i), &stamps[usize::try_from(i).unwrap() - 10], 1500));
            }
            let in_flight = i.min(10).saturating_sub(u64::from(i >= 10)) * 1500;
            stamps.push(sampler.on_sent(ms(i), in_flight));
        }
        out
    }

    #[test]
    fn a_steady_flow_is_sampled_at_its_rate() {
        let last = steady(&mut DeliverySampler::default(), 100).pop().unwrap().unwrap();
        assert!((last.rate_bytes_per_sec - 1.5e6).abs() < 0.12e6, "{last:?}");
        assert!(!last.is_app_limited);
    }

    #[test]
    fn compressed_acknowledgements_do_not_raise_the_rate() {
        let mut sampler = DeliverySampler::default();
        let stamps: Vec<SendStamp> = (0..10u64).map(|i| sampler.on_sent(ms(i), i * 1500)).collect();
        // All ten are acknowledged within one millisecond: the time that they took to be sent bounds the
        // rate.
        let rates: Vec<f64> = (0..10)
            .filter_map(|i| sampler.on_ack(ms(20) + Duration::from_micros(100 * i as u64), &stamps[i], 1500))
            .map(|d| d.rate_bytes_per_sec)
            .collect();
        assert!(rates.iter().all(|r| *r < 1.8e6), "{rates:?}");
    }

    #[test]
    fn samples_know_that_there_was_nothing_to_send() {
        let mut sampler = DeliverySampler::default();
        let first = sampler.on_sent(ms(0), 0);
        sampler.on_app_limited(1500);
        let second = sampler.on_sent(ms(5), 1500);
        assert!(!sampler.on_ack(ms(10), &first, 1500).unwrap().is_app_limited);
        assert!(sampler.on_ack(ms(15), &second, 1500).unwrap().is_app_limited);
    }
}
