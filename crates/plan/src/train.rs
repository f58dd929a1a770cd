//! Packet trains: their length, and the evaluation of their arrivals.
//!
//! The packets are sent at once, so the bottleneck spaces them out. Their times are taken when the receiver's
//! program reads them, and packets read together have the same time; so the evaluation uses the bytes after
//! the first read and their time (Prasad, Murray, Dovrolis, Claffy: bandwidth estimation, 2003; Dovrolis et
//! al. 2004 for packets that timers bunch).

use std::time::Duration;

use crate::path::{Direction, Measurement};

/// Most trains of one probe in one direction that are evaluated.
pub const TRAINS: u32 = 8;
/// Lengths of trains, packets, tried in order until one takes long enough.
const LENGTHS: [u16; 4] = [17, 65, 257, 513];
/// Shortest evaluated duration of a train: programs are late by some tenths of a millisecond.
const LONG_ENOUGH: Duration = Duration::from_micros(2500);
/// Packets at the beginning of a train that fit into every queue (RFC 6928's initial window): losses are
/// counted among these only, because later ones may be caused by the train itself.
const HEAD: u16 = 10;
/// Factor between the duration of a train with its pause and of the train alone; its inverse is the share of
/// the capacity that probing uses.
const PAUSE_FACTOR: u32 = 4;
/// Shortest pause between trains.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// Arrival of one packet. Each time is by the clock of the host that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainArrival {
    /// Position in the train, from 0.
    pub number: u16,
    /// Size of the packet, UDP payload in bytes.
    pub size_bytes: u16,
    /// Send time.
    pub sent: Duration,
    /// Read time.
    pub received: Duration,
}

/// Train whose packets have all arrived or were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrain {
    /// Number of packets sent.
    pub packets: u16,
    /// Arrived packets in order, each once.
    pub arrivals: Vec<TrainArrival>,
}

/// Returns the number of packets of the next train; the first one is short. A train that was read at once,
/// because the program was late, is followed by a longer one, and that by one as long as the rate requires.
#[must_use]
pub fn next_length(before: Option<&PacketTrain>) -> u16 {
    let [shortest, .., longest] = LENGTHS;
    let Some(train) = before else { return shortest };
    let suffices = |length: &u16| match train.packet_secs().filter(|_| train.counts()) {
        Some(packet_secs) => f64::from(length - 1) * packet_secs >= LONG_ENOUGH.as_secs_f64(),
        None => *length > train.packets,
    };
    LENGTHS.into_iter().find(suffices).unwrap_or(longest)
}

impl PacketTrain {
    /// Bytes that arrived after the first read, and the time that they took; `None` where all were read at
    /// once.
    #[must_use]
    pub fn dispersion(&self) -> Option<(u64, Duration)> {
        let (first, last) = (self.arrivals.first()?, self.arrivals.last()?);
        let spread = last.received.checked_sub(first.received).filter(|spread| !spread.is_zero())?;
        let after = self.arrivals.iter().filter(|arrival| arrival.received > first.received);
        Some((after.map(|arrival| u64::from(arrival.size_bytes)).sum(), spread))
    }

    /// Time that one packet takes at the bottleneck, seconds.
    fn packet_secs(&self) -> Option<f64> {
        let ((bytes, spread), first) = (self.dispersion()?, self.arrivals.first()?);
        Some(spread.as_secs_f64() * f64::from(first.size_bytes) / bytes as f64)
    }

    /// Returns whether the train is evaluated: it took long enough that lateness of the receiver's program
    /// matters little. Where even the longest train does not, trains give no result: the path is too fast
    /// (2.4 Gb/s), or packets are delayed and arrive at once.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.dispersion().is_some_and(|(_, spread)| spread >= LONG_ENOUGH)
    }

    /// Returns whether no longer train can be tried.
    #[must_use]
    pub fn is_longest(&self) -> bool {
        let [.., longest] = LENGTHS;
        self.packets >= longest
    }

    /// Pause before the next train.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let spread = self.dispersion().map_or(Duration::ZERO, |(_, spread)| spread);
        spread.saturating_mul(PAUSE_FACTOR).clamp(LEAST_PAUSE, Duration::from_secs(1))
    }

    /// Measurements of `direction` that the train gives.
    #[must_use]
    pub fn measurements(&self, direction: Direction) -> Vec<Measurement> {
        let mut measured = Vec::new();
        measured
            .extend(self.dispersion().map(|(bytes, spread)| Measurement::Train(direction, bytes, spread)));
        let sent = self.packets.min(HEAD);
        let arrived = self.arrivals.iter().filter(|arrival| arrival.number < sent).count() as u64;
        let sent = u64::from(sent);
        measured.push(Measurement::Packets { direction, sent, lost: sent.saturating_sub(arrived) });
        if !self.arrivals.is_empty() {
            let (sent, late) = (self.arrivals.len() as u64, self.late());
            measured.push(Measurement::Reordered { direction, sent, late });
        }
        // Packets behind the first wait for it; only the first shows the queue that existed before.
        let first = self.arrivals.iter().find(|arrival| arrival.number == 0);
        measured.extend(first.map(|first| Measurement::Transit(direction, first.sent, first.received)));
        measured
    }

    /// Number of packets that arrived after one that was sent later.
    fn late(&self) -> u64 {
        let mut newest = None;
        let mut late = 0;
        for arrival in &self.arrivals {
            late += u64::from(newest.is_some_and(|newest| arrival.number < newest));
            newest = newest.max(Some(arrival.number));
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::whole;
    use crate::path::Path;

    /// Simulates a train of 1,250-byte packets through a bottleneck, read by a program that reads every
    /// `every` microseconds.
    fn read(packets: u16, bytes_per_sec: f64, every: u64, is_lost: impl Fn(u16) -> bool) -> PacketTrain {
        let micros = |number: u16| 20_000.0 + f64::from(number + 1) * 1250.0 / bytes_per_sec * 1e6;
        let arrivals = (0..packets).filter(|number| !is_lost(*number)).map(|number| TrainArrival {
            number,
            size_bytes: 1250,
            sent: Duration::ZERO,
            received: Duration::from_micros(whole(micros(number) / every as f64) * every),
        });
        PacketTrain { packets, arrivals: arrivals.collect() }
    }

    #[test]
    fn trains_grow_until_they_are_long_enough_to_measure_the_rate() {
        for (rate, expected) in [(1.25e6, 17), (12.5e6, 65), (125e6, 257)] {
            let mut train = read(next_length(None), rate, 50, |_| false);
            while !train.counts() {
                train = read(next_length(Some(&train)), rate, 50, |_| false);
            }
            assert_eq!(train.packets, expected, "{rate}");
            let (bytes, spread) = train.dispersion().unwrap();
            let error = bytes as f64 / spread.as_secs_f64() / rate - 1.0;
            assert!(error.abs() < 0.03, "{rate}: {error}");
        }
        let longest = read(513, 1.25e9, 50, |_| false);
        assert!(longest.is_longest() && !longest.counts(), "trains cannot measure 10 Gb/s");
    }

    #[test]
    fn a_train_that_was_read_late_does_not_lengthen_later_ones() {
        let late = read(17, 1.25e6, 1_000_000, |_| false);
        assert!(late.dispersion().is_none(), "all packets were read at once");
        assert_eq!(next_length(Some(&late)), 65);
        let next = read(65, 1.25e6, 50, |_| false);
        assert_eq!(next_length(Some(&next)), 17);
    }

    #[test]
    fn losses_are_counted_at_the_head_and_do_not_change_the_rate() {
        let mut path = Path::default();
        // The queue was full from the 30th packet on: every second one was dropped, and took no time at the
        // bottleneck.
        let mut train = read(65, 12.5e6, 1, |number| number > 30 && number % 2 == 0);
        for (place, arrival) in train.arrivals.iter_mut().enumerate() {
            arrival.received = Duration::from_micros(100 * (place as u64 + 1));
        }
        for measured in train.measurements(Direction::Down) {
            path.record(Duration::ZERO, measured);
        }
        let one_way = path.one_way(Direction::Down);
        assert!(
            one_way.loss(Duration::ZERO).unwrap().value.abs() < 1e-12,
            "the train caused these losses itself"
        );
        let capacity = one_way.capacity(Duration::ZERO).unwrap().value;
        assert!((capacity / 12.5e6 - 1.0).abs() < 0.01, "{capacity}");
        let lossy = read(17, 12.5e6, 1, |number| number == 3).measurements(Direction::Down);
        assert!(lossy.contains(&Measurement::Packets { direction: Direction::Down, sent: 10, lost: 1 }));
    }

    #[test]
    fn packets_overtaken_by_later_ones_are_late() {
        let mut train = read(17, 12.5e6, 1, |_| false);
        train.arrivals.swap(4, 5);
        assert_eq!(train.late(), 1);
        train.arrivals.rotate_left(1);
        assert_eq!(train.late(), 2, "the first one arrives last");
    }

    #[test]
    fn a_train_that_never_arrived_reports_only_loss() {
        let train = PacketTrain { packets: 17, arrivals: Vec::new() };
        let told = train.measurements(Direction::Up);
        assert_eq!(told, [Measurement::Packets { direction: Direction::Up, sent: 10, lost: 10 }]);
    }
}
