//! The choice of compression in virtual time: a sender with endless data, a queue, a link.

use std::collections::VecDeque;
use std::time::Duration;

use super::*;

/// Rates of 50 Mb/s, 400 Mb/s, 1 Gb/s and of memory, bytes per second.
const SLOW: f64 = 6.25e6;
const BRISK: f64 = 50e6;
const FAST: f64 = 125e6;
const LOOPBACK: f64 = 1.5e9;

/// Samples of LZ4 and of Zstandard 1 and 9, for data that Zstandard 1 compresses to 1/`ratio` of its size.
fn ways(ratio: f64) -> Vec<Sampled> {
    let way = |saved: f64, compress, restore| Sampled {
        ratio: 1.0 + (ratio - 1.0) * saved,
        compress_bytes_per_sec: compress,
        restore_bytes_per_sec: restore,
    };
    vec![way(0.5, 600e6, 2e9), way(1.0, 300e6, 800e6), way(1.2, 60e6, 800e6)]
}

/// A sender before a link: every piece is compressed by the method that is current.
struct Sender {
    ways: Vec<Sampled>,
    /// Rate at which the source provides data, bytes per second.
    source_bytes_per_sec: f64,
    goodput: Goodput,
    current: Option<usize>,
    now_secs: f64,
    core_free_secs: f64,
    /// Time when the link has sent all queued data.
    link_free_secs: f64,
    /// Time when each queued piece leaves, and its size.
    queue: VecDeque<(f64, u64)>,
    samples: u32,
    sampling: SampleSchedule,
    round_trip: Duration,
    /// Time from sending to the acknowledgement, during which sent bytes are held.
    kept: Duration,
    most_queued_bytes: u64,
}

const PIECE_BYTES: u64 = 128 << 10;
/// Bytes that the sender may queue.
const QUEUE_BYTES: u64 = 8 << 20;

impl Sender {
    fn new(ratio: f64) -> Self {
        Self {
            ways: ways(ratio),
            source_bytes_per_sec: 3e9,
            goodput: Goodput::default(),
            current: None,
            now_secs: 0.0,
            core_free_secs: 0.0,
            link_free_secs: 0.0,
            queue: VecDeque::new(),
            samples: 0,
            sampling: SampleSchedule::default(),
            round_trip: Duration::ZERO,
            kept: Duration::ZERO,
            most_queued_bytes: QUEUE_BYTES,
        }
    }

    fn leave_until(&mut self, secs: f64) {
        while let Some(&(at, bytes)) = self.queue.front().filter(|(at, _)| *at <= secs) {
            self.queue.pop_front();
            self.goodput.leave(Duration::from_secs_f64(at), bytes);
        }
    }

    /// Sends this amount of data over a link of this rate; returns bytes of data per second.
    fn send(&mut self, link_bytes_per_sec: f64, data_bytes: u64) -> f64 {
        let start = self.now_secs;
        for _ in 0..data_bytes / PIECE_BYTES {
            self.leave_until(self.now_secs);
            let queued = |queue: &VecDeque<(f64, u64)>| queue.iter().map(|(_, bytes)| bytes).sum::<u64>();
            while (!self.goodput.has_room(queued(&self.queue), self.round_trip)
                || queued(&self.queue) >= self.most_queued_bytes)
                && let Some(&(at, _)) = self.queue.front()
            {
                self.now_secs = self.now_secs.max(at);
                self.leave_until(self.now_secs);
            }
            self.send_piece(link_bytes_per_sec);
        }
        self.leave_until(self.link_free_secs);
        self.now_secs = self.now_secs.max(self.link_free_secs);
        data_bytes as f64 / (self.now_secs - start)
    }

    #[expect(clippy::cast_possible_truncation, reason = "bytes of a piece")]
    fn send_piece(&mut self, link_bytes_per_sec: f64) {
        self.now_secs += PIECE_BYTES as f64 / self.source_bytes_per_sec;
        if let Some(known) = self.goodput.bytes_per_sec().filter(|known| *known < FASTEST_BYTES_PER_SEC) {
            self.samples += u32::from(self.sampling.pass(PIECE_BYTES));
            self.current = choose(known, &self.ways, self.current);
        } else {
            self.current = None;
        }
        let way = self.current.map(|place| self.ways[place]);
        // One core compresses, beside the reader, which is one piece ahead.
        let takes_secs = way.map_or(0.0, |w| PIECE_BYTES as f64 / w.compress_bytes_per_sec);
        self.core_free_secs = self.core_free_secs.max(self.now_secs) + takes_secs;
        self.now_secs = self.now_secs.max(self.core_free_secs - takes_secs);
        let bytes = (PIECE_BYTES as f64 / way.map_or(1.0, |w| w.ratio)) as u64;
        self.link_free_secs =
            self.link_free_secs.max(self.core_free_secs) + bytes as f64 / link_bytes_per_sec;
        self.queue.push_back((self.link_free_secs + self.kept.as_secs_f64(), bytes));
        self.goodput.queue(bytes);
    }
}

#[test]
fn a_slow_link_gets_what_saves_most_soon() {
    let mut sender = Sender::new(3.0);
    let rate = sender.send(SLOW, 20 << 20);
    assert_eq!(sender.current, Some(2), "there is time to try hard");
    assert!(rate > 2.6 * SLOW, "{rate}: less than a tenth of the data goes as it is");
}

#[test]
fn a_remembered_link_is_known_from_the_first_byte_and_a_wrong_memory_is_corrected() {
    let mut sender = Sender { goodput: Goodput::knowing(SLOW), ..Sender::new(3.0) };
    let known = sender.send(SLOW, 1 << 20);
    let unknown = Sender::new(3.0).send(SLOW, 1 << 20);
    assert!(known > 2.6 * SLOW && unknown < 1.5 * SLOW, "{known} instead of {unknown}");
    let mut sender = Sender { goodput: Goodput::knowing(LOOPBACK), ..Sender::new(3.0) };
    sender.send(SLOW, 32 << 20);
    assert_eq!(sender.current, Some(2), "{:?}", sender.goodput);
    let mut sender = Sender { goodput: Goodput::knowing(SLOW), ..Sender::new(3.0) };
    sender.send(LOOPBACK, 1 << 30);
    assert_eq!(sender.current, None, "{:?}", sender.goodput);
}

#[test]
fn a_brisk_link_gets_what_keeps_up_with_it_and_a_fast_one_nothing() {
    let mut sender = Sender::new(3.0);
    assert!(sender.send(BRISK, 1 << 30) > 1.5 * BRISK);
    assert_ne!(sender.current, Some(2), "too slow for this link");
    for link in [FAST, LOOPBACK] {
        let mut sender = Sender::new(3.0);
        let rate = sender.send(link, 1 << 30);
        assert_eq!((sender.current, sender.samples), (None, 0));
        assert!(rate > 0.97 * link, "{rate} of {link}");
    }
}

#[test]
fn incompressible_data_go_as_they_are_after_few_samples() {
    for link in [SLOW, FAST, LOOPBACK] {
        let mut sender = Sender::new(1.02);
        let rate = sender.send(link, 2 << 30);
        assert_eq!(sender.current, None);
        assert!(rate > 0.97 * link, "{rate} of {link}");
        assert!(sender.samples <= 12, "{} samples in 2 GiB", sender.samples);
    }
}

#[test]
fn a_link_that_changes_is_followed_both_ways() {
    let mut sender = Sender::new(3.0);
    sender.send(LOOPBACK, 256 << 20);
    assert_eq!(sender.current, None);
    sender.send(SLOW, 32 << 20);
    assert_eq!(sender.current, Some(2));
    // The sender no longer waits for the link, which shows that the link is faster.
    sender.send(LOOPBACK, 1 << 30);
    assert_eq!(sender.current, None, "{:?}", sender.goodput);
}

#[test]
fn data_that_come_slowly_are_compressed_for_a_slow_link_only_while_they_wait() {
    let mut sender = Sender::new(3.0);
    sender.source_bytes_per_sec = SLOW / 2.0;
    let rate = sender.send(SLOW, 64 << 20);
    assert!(rate > 0.97 * SLOW / 2.0, "{rate}: nothing is lost where the source is slower than the link");
}

#[test]
fn a_small_gain_causes_no_change() {
    let way = |ratio| Sampled { ratio, compress_bytes_per_sec: 1e9, restore_bytes_per_sec: 1e9 };
    assert_eq!(choose(SLOW, &[way(1.15)], None), None);
    assert_eq!(choose(SLOW, &[way(1.25)], None), Some(0));
    assert_eq!(choose(SLOW, &[way(1.15)], Some(0)), Some(0), "what is done goes on");
    assert_eq!(choose(SLOW, &[way(2.0), way(2.05)], Some(0)), Some(0));
    assert_eq!(choose(SLOW, &[way(2.0), way(2.1)], Some(0)), Some(1), "each piece says how it is compressed");
    assert_eq!(choose(SLOW, &[way(2.0), way(2.5)], Some(0)), Some(1));
    assert_eq!(choose(SLOW, &[way(0.9)], Some(0)), None);
    assert_eq!(choose(SLOW, &[], Some(3)), None);
}

#[test]
fn a_stretch_of_zeros_is_soon_forgotten() {
    let way = |ratio| Sampled { ratio, compress_bytes_per_sec: 1e9, restore_bytes_per_sec: 1e9 };
    let known = (0..4).fold(way(3000.0), |known, _| known.towards(way(2.0), 0.25));
    assert!(known.ratio < 3.0, "{}", known.ratio);
    assert!((known.compress_bytes_per_sec - 1e9).abs() < 1.0);
}

/// The writer accepts 256 KiB at a time, and all of it leaves at once.
#[test]
fn a_queue_that_leaves_in_batches_is_measured() {
    let mut goodput = Goodput::default();
    let (mut now_secs, mut queued, mut sent) = (0.0, 0, 0);
    while sent < 2 << 20 {
        while goodput.has_room(queued, Duration::ZERO) {
            goodput.queue(64 << 10);
            queued += 64 << 10;
        }
        let batch = queued.min(256 << 10);
        now_secs += batch as f64 / SLOW;
        (0..batch).step_by(64 << 10).for_each(|_| goodput.leave(Duration::from_secs_f64(now_secs), 64 << 10));
        queued -= batch;
        sent += batch;
    }
    let found = goodput.bytes_per_sec().unwrap();
    assert!((0.8..1.3).contains(&(found / SLOW)), "{found}");
}

/// The first bytes fill lower buffers, much faster than the link drains them.
#[test]
fn buffers_that_were_taken_for_the_link_are_soon_forgotten() {
    let mut goodput = Goodput::default();
    let mut now_secs = 0.0;
    let mut send = |goodput: &mut Goodput, bytes: u64, bytes_per_sec: f64| {
        for _ in 0..bytes / PIECE_BYTES {
            goodput.queue(2 * PIECE_BYTES);
            now_secs += PIECE_BYTES as f64 / bytes_per_sec;
            goodput.leave(Duration::from_secs_f64(now_secs), PIECE_BYTES);
        }
    };
    send(&mut goodput, 4 << 20, LOOPBACK);
    assert!(goodput.bytes_per_sec().unwrap() > 1e9);
    send(&mut goodput, 768 << 10, SLOW);
    let found = goodput.bytes_per_sec().unwrap();
    assert!((0.9..1.3).contains(&(found / SLOW)), "{found}");
}

/// Samples show ratios of 3.4 and 3.7; pieces of a mebibyte reach five and six.
#[test]
fn a_better_ratio_of_pieces_applies_to_every_method() {
    let way =
        |ratio, compress| Sampled { ratio, compress_bytes_per_sec: compress, restore_bytes_per_sec: 1e9 };
    let (weak, strong) = (way(3.4, 300e6), way(3.7, 150e6));
    let learnt = (0..20).fold(weak, |known, _| known.towards(way(5.0, 200e6), 0.25));
    assert_eq!(
        choose(SLOW, &[learnt, strong], Some(0)),
        Some(0),
        "known from samples only it would be left out"
    );
    let along = strong.along_with(weak, learnt);
    assert_eq!(choose(SLOW, &[learnt, along], Some(0)), Some(1), "{along:?}");
    assert!((along.compress_bytes_per_sec / 100e6 - 1.0).abs() < 0.02 && along.restore_bytes_per_sec == 1e9);
    let of_zeros = way(250.0, 2e9).along_with(way(3000.0, 800e6), way(4.5, 200e6));
    assert!(
        (4.0..4.6).contains(&of_zeros.ratio),
        "zeros at the beginning say little of the rest: {of_zeros:?}"
    );
    let noise = way(1.1, 1e9).along_with(way(3.0, 1e9), way(1.0, 1e9));
    assert!(noise.ratio == 1.0, "nothing grows: {noise:?}");
}

/// Several pieces leave with one write.
#[test]
fn pieces_that_leave_at_once_count_as_one_departure() {
    let mut goodput = Goodput::default();
    let mut now_secs = 0.0;
    for _ in 0..20 {
        goodput.queue(8 * PIECE_BYTES);
        now_secs += (3 * PIECE_BYTES) as f64 / SLOW;
        for moment in 0..3 {
            goodput.leave(Duration::from_secs_f64(now_secs + f64::from(moment) * 2e-5), PIECE_BYTES);
        }
    }
    let found = goodput.bytes_per_sec().unwrap();
    assert!((0.9..1.05).contains(&(found / SLOW)), "{found}");
}

/// A carrier that holds bytes until they are acknowledged holds them for a round trip, or for several where
/// packets are lost.
#[test]
fn a_long_path_is_not_held_up_by_the_measurement() {
    for round_trips in [1, 3] {
        let round_trip = Duration::from_millis(150);
        let mut sender = Sender { round_trip, most_queued_bytes: 64 << 20, ..Sender::new(1.0) };
        // The rate is known, although bytes are held for longer.
        sender.goodput = Goodput::knowing(BRISK);
        sender.kept = round_trip * round_trips;
        sender.send(BRISK, 64 << 20);
        let rate = sender.send(BRISK, 512 << 20);
        assert!(rate > 0.9 * BRISK, "{rate} of {BRISK} where bytes are kept for {round_trips} round trips");
    }
}

#[test]
fn data_that_no_method_reduces_is_incompressible_on_any_link() {
    let way = |ratio| Sampled { ratio, compress_bytes_per_sec: 1e9, restore_bytes_per_sec: 1e9 };
    assert!(!is_compressible(&[]));
    assert!(!is_compressible(&[way(1.0), way(1.1)]));
    assert!(is_compressible(&[way(1.0), way(1.3)]));
}
