//! A packet train: how long it should be, and what its arrival says of the way that it came.
//!
//! The packets leave at once, so the bottleneck spaces them out. They are timed when the receiver's program reads them, and
//! those that it reads together have one time: so what counts is how much came after the first reading, and how long
//! after (Prasad, Murray, Dovrolis, Claffy: bandwidth estimation, 2003; Dovrolis et al. 2004 for packets that timers bunch).

use std::time::Duration;

use crate::path::{Direction, Measurement};

/// Trains of one probe in one direction that are told.
pub const TRAINS: u32 = 8;
/// Lengths that are tried, packets, until one takes long enough.
const LENGTHS: [u16; 4] = [17, 65, 257, 513];
/// A train that takes less says little: programs are late by some tenth of a millisecond.
const LONG_ENOUGH: Duration = Duration::from_micros(2500);
/// Packets at the beginning of a train that every queue has room for (RFC 6928's initial window): of these losses are
/// counted, for those behind them may be the train's own doing.
const HEAD: u16 = 10;
/// A train and the pause behind it take so much longer than the train: its share of what the path carries.
const PAUSE_FACTOR: u32 = 4;
/// Least pause between trains.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// One packet that arrived. Each time is by the clock of the host that took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainArrival {
    /// Its place in the train, from 0.
    pub number: u16,
    /// Payload of UDP.
    pub size_bytes: u16,
    /// When it left.
    pub sent: Duration,
    /// When it was read.
    pub received: Duration,
}

/// A train of which all that arrives has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketTrain {
    /// Packets that left.
    pub packets: u16,
    /// Those that arrived, in this order, each once.
    pub arrivals: Vec<TrainArrival>,
}

/// How many packets the next train has; the first one is short. One that was read late, as if it had come at once, is
/// followed by a longer one, and that by one as long as the rate needs.
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
    /// Bytes that arrived after those that were read first, and the time that they took; none where all came at once.
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

    /// Whether it is told: it took so long that lateness of the receiver's program matters little. Where not even the
    /// longest does, trains say nothing: the path is too fast for them (2.4 Gb/s), or packets are held up and come all at once.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.dispersion().is_some_and(|(_, spread)| spread >= LONG_ENOUGH)
    }

    /// Whether a longer one cannot be tried.
    #[must_use]
    pub fn is_longest(&self) -> bool {
        let [.., longest] = LENGTHS;
        self.packets >= longest
    }

    /// How long to wait before the next train.
    #[must_use]
    pub fn pause(&self) -> Duration {
        let spread = self.dispersion().map_or(Duration::ZERO, |(_, spread)| spread);
        spread.saturating_mul(PAUSE_FACTOR).clamp(LEAST_PAUSE, Duration::from_secs(1))
    }

    /// Measurements of the direction `direction` that the train gives.
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
        // Packets behind the first wait for it; the first alone shows what queue there was.
        let first = self.arrivals.iter().find(|arrival| arrival.number == 0);
        measured.extend(first.map(|first| Measurement::Transit(direction, first.sent, first.received)));
        measured
    }

    /// Packets that came after one that left later.
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

    /// A train of 1,250-byte packets through a bottleneck, read by a program that looks every `every` microseconds.
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
    fn trains_grow_until_they_take_long_enough_and_then_say_the_rate() {
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
        assert!(longest.is_longest() && !longest.counts(), "10 Gb/s are beyond what trains can say");
    }

    #[test]
    fn a_train_that_was_read_late_does_not_make_all_others_long() {
        let late = read(17, 1.25e6, 1_000_000, |_| false);
        assert!(late.dispersion().is_none(), "all at once");
        assert_eq!(next_length(Some(&late)), 65);
        let next = read(65, 1.25e6, 50, |_| false);
        assert_eq!(next_length(Some(&next)), 17);
    }

    #[test]
    fn losses_are_counted_at_the_head_and_leave_the_rate_as_it_is() {
        let mut path = Path::default();
        // The queue was full from the 30th packet on: every second one was dropped, and took no time at the bottleneck.
        let mut train = read(65, 12.5e6, 1, |number| number > 30 && number % 2 == 0);
        for (place, arrival) in train.arrivals.iter_mut().enumerate() {
            arrival.received = Duration::from_micros(100 * (place as u64 + 1));
        }
        for measured in train.measurements(Direction::Down) {
            path.record(Duration::ZERO, measured);
        }
        let one_way = path.one_way(Direction::Down);
        assert!(one_way.loss(Duration::ZERO).unwrap().value.abs() < 1e-12, "the train's own doing");
        let capacity = one_way.capacity(Duration::ZERO).unwrap().value;
        assert!((capacity / 12.5e6 - 1.0).abs() < 0.01, "{capacity}");
        let lossy = read(17, 12.5e6, 1, |number| number == 3).measurements(Direction::Down);
        assert!(lossy.contains(&Measurement::Packets { direction: Direction::Down, sent: 10, lost: 1 }));
    }

    #[test]
    fn late_packets_are_those_behind_one_that_left_later() {
        let mut train = read(17, 12.5e6, 1, |_| false);
        train.arrivals.swap(4, 5);
        assert_eq!(train.late(), 1);
        train.arrivals.rotate_left(1);
        assert_eq!(train.late(), 2, "the first one came last");
    }

    #[test]
    fn of_nothing_that_arrived_only_the_loss_is_told() {
        let train = PacketTrain { packets: 17, arrivals: Vec::new() };
        let told = train.measurements(Direction::Up);
        assert_eq!(told, [Measurement::Packets { direction: Direction::Up, sent: 10, lost: 10 }]);
    }
}
