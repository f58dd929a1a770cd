//! Adaptive window of a client: the bulk bytes that the server may send ahead. They fill the path, within the memory that
//! the application has reserved, and not more, because urgent data waits behind them. The method is that of dynamic
//! right-sizing of TCP's receive buffers (Fisk and Feng, 2001), with the minimum round trip as the measure of the path,
//! as in BBR (Cardwell et al., 2016).
//!
//! The client sends a ping; the bulk that arrives until its pong arrived in one round trip, which is longer than the
//! minimum by the waiting time in queues, those of this host included. While hardly anything waits, the window grows.
//! When more waits than is allowed, it falls to what fills the path, unless only one round was affected: then a host was
//! busy for a moment, and the little that arrived says nothing about the path. A minimum that is not seen any more, because
//! it was an outlier or the path has changed, is discarded: the window is reduced for a moment so that the queues empty,
//! and the minimum is measured again.
//!
//! When packets are lost, data behind a gap waits for the retransmission, which lengthens the round trip. A smaller window
//! would not bring the missing data sooner, and a window that just fills the path would stall meanwhile. So while there are
//! gaps, the window never falls and is several times what fills the path; the sender's congestion control then bounds what
//! is in the network.
//!
//! With a sender that keeps the queues short itself ([`SentAhead::All`]), the window is the reserved memory, and rounds
//! only measure.

use std::time::{Duration, Instant};

use crate::SentAhead;
use crate::limits::{
    FIRST_WINDOW_BYTES, PING_FRACTION, QUEUE_WITHIN, RTT_PROBE_AFTER, RTT_PROBE_AFTER_ROUNDS,
};

/// Bit that distinguishes these pings from those of the liveness check.
const NONCE_BIT: u64 = 1 << 63;
/// Rounds of a round trip probe: in the first one, bulk that was allowed before is still in flight.
const RTT_PROBE_ROUNDS: u32 = 2;
/// Rounds without queueing after which the window doubles, as it does before the path was filled for the
/// first time. Before, it grows in small steps, because everything beyond what fills the path waits.
const NEVER_FULL: u32 = 8;
/// Window while packets arrive after gaps, as a multiple of what fills the path: a retransmission takes a
/// round trip, and another one if it is lost too.
const GAP_PRODUCTS: u64 = 4;
/// Consecutive rounds with more queueing than allowed that are not an outlier.
const CROWDED_ROUNDS: u32 = 2;

#[derive(Debug)]
pub(crate) struct AdaptiveWindow {
    size_bytes: u64,
    most_bytes: u64,
    /// Limit set by the division of a receive rate among connections, bytes.
    limit_bytes: Option<u64>,
    /// Bytes since the last round began, or ended if none is in progress.
    arrived_bytes: u64,
    rounds: u64,
    round: WindowRound,
    path: Option<PathModel>,
    rtt_probe: Option<RttProbe>,
    ahead: SentAhead,
    /// Largest arrival in a minimum round trip while packets arrive after gaps, bytes.
    gaps: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum WindowRound {
    Idle,
    PingDue,
    UnderWay { since: Instant },
}

/// Measurements of the path, of both directions together.
#[derive(Clone, Copy, Debug)]
struct PathModel {
    shortest: Duration,
    /// Time at which a round trip was last close to the minimum.
    seen: Instant,
    /// Consecutive rounds with more queueing than allowed.
    crowded_rounds: u32,
    /// Consecutive rounds with hardly any queueing.
    quiet_rounds: u32,
}

/// Measurement of the minimum round trip with empty queues.
#[derive(Clone, Copy, Debug)]
struct RttProbe {
    rounds_left: u32,
    shortest: Duration,
    /// Window after the measurement, bytes.
    size_bytes: u64,
}

impl PathModel {
    fn new(shortest: Duration, seen: Instant) -> Self {
        Self { shortest, seen, crowded_rounds: 0, quiet_rounds: NEVER_FULL }
    }

    /// Allowed waiting time of bulk in the path.
    fn allowed(&self) -> Duration {
        self.shortest / 8 + QUEUE_WITHIN
    }

    /// Share of `arrived_bytes` that would have arrived in `time` instead of `round_trip`.
    fn share(arrived_bytes: u64, time: Duration, round_trip: Duration) -> u64 {
        let share = u128::from(arrived_bytes) * time.as_nanos() / round_trip.as_nanos().max(1);
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// Window after a round in which `arrived_bytes` arrived.
    fn after(&mut self, now: Instant, size_bytes: u64, arrived_bytes: u64, round_trip: Duration) -> u64 {
        self.shortest = self.shortest.min(round_trip);
        let (allowed, waited) = (self.allowed(), round_trip - self.shortest);
        self.crowded_rounds = if waited > allowed { self.crowded_rounds + 1 } else { 0 };
        if self.crowded_rounds >= CROWDED_ROUNDS {
            self.quiet_rounds = 0;
            return size_bytes.min(Self::share(arrived_bytes, self.shortest + allowed / 2, round_trip));
        }
        if waited > allowed / 3 {
            self.quiet_rounds = if self.crowded_rounds > 0 { self.quiet_rounds } else { 0 };
            return size_bytes;
        }
        self.seen = now;
        self.quiet_rounds = (self.quiet_rounds + 1).min(NEVER_FULL);
        // In sixteenths; two rounds for each step, because it takes effect in the next round.
        let growth = if self.quiet_rounds == NEVER_FULL { 16 } else { 1 << (self.quiet_rounds / 2) >> 1 };
        let grown = arrived_bytes.saturating_add(arrived_bytes / 16 * growth);
        size_bytes.max(grown)
    }

    fn is_in_doubt(&self, now: Instant) -> bool {
        let is_old = now.saturating_duration_since(self.seen) >= RTT_PROBE_AFTER;
        let may_be_chance = (1..CROWDED_ROUNDS).contains(&self.crowded_rounds);
        self.crowded_rounds >= RTT_PROBE_AFTER_ROUNDS || is_old && !may_be_chance
    }
}

impl AdaptiveWindow {
    pub(crate) fn new(most_bytes: u64, ahead: SentAhead) -> Self {
        let first_bytes = match ahead {
            SentAhead::Found => FIRST_WINDOW_BYTES,
            SentAhead::Known(path_bytes) => FIRST_WINDOW_BYTES.max(path_bytes),
            SentAhead::All => most_bytes,
        };
        let size_bytes = most_bytes.min(first_bytes);
        Self {
            size_bytes,
            most_bytes,
            limit_bytes: None,
            arrived_bytes: 0,
            rounds: 0,
            round: WindowRound::Idle,
            path: None,
            rtt_probe: None,
            ahead,
            gaps: None,
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.limit_bytes.map_or(self.size_bytes, |limit| limit.min(self.size_bytes))
    }

    /// Limits the window, whatever the path holds; `None` removes the limit.
    pub(crate) fn limit(&mut self, limit_bytes: Option<u64>) {
        self.limit_bytes = limit_bytes;
    }

    /// Number of rounds so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Sets whether the carrier receives packets after gaps.
    pub(crate) fn note_gaps(&mut self, has_gaps: bool) {
        self.gaps = has_gaps.then(|| self.gaps.unwrap_or_default());
    }

    /// Minimum round trip, once one was measured.
    pub(crate) fn shortest(&self) -> Option<Duration> {
        self.path.map(|path| path.shortest)
    }

    pub(crate) fn handle_arrived(&mut self, bulk_bytes: u64) {
        self.arrived_bytes += bulk_bytes;
        let busy = self.arrived_bytes >= self.size_bytes() / PING_FRACTION;
        let may_learn = self.most_bytes > FIRST_WINDOW_BYTES || self.limit_bytes.is_some();
        if self.round == WindowRound::Idle && busy && may_learn {
            self.round = WindowRound::PingDue;
        }
    }

    /// Nonce of a ping that begins a round.
    pub(crate) fn poll_ping(&mut self, now: Instant) -> Option<u64> {
        if self.round != WindowRound::PingDue {
            return None;
        }
        self.round = WindowRound::UnderWay { since: now };
        self.arrived_bytes = 0;
        self.rounds += 1;
        Some(self.rounds | NONCE_BIT)
    }

    /// Ends a round if the pong belongs to its ping.
    pub(crate) fn handle_pong(&mut self, now: Instant, nonce: u64) {
        let WindowRound::UnderWay { since } = self.round else { return };
        if nonce & NONCE_BIT == 0 {
            // Only the newest ping is answered: a later one of the liveness check replaced this one.
            (self.round, self.arrived_bytes) = (WindowRound::Idle, 0);
        }
        if nonce != self.rounds | NONCE_BIT {
            return;
        }
        self.round = WindowRound::Idle;
        let arrived_bytes = std::mem::take(&mut self.arrived_bytes);
        let round_trip = now.saturating_duration_since(since);
        let size_bytes = match self.rtt_probe.take() {
            _ if self.gaps.is_some() => self.stay_open(now, arrived_bytes, round_trip),
            Some(rtt_probe) => self.continue_rtt_probe(now, rtt_probe, round_trip),
            None => self.adapt(now, arrived_bytes, round_trip),
        };
        if self.ahead != SentAhead::All {
            self.size_bytes = size_bytes.max(FIRST_WINDOW_BYTES).min(self.most_bytes);
        }
    }

    /// Window while data waits for retransmissions.
    fn stay_open(&mut self, now: Instant, arrived_bytes: u64, round_trip: Duration) -> u64 {
        let path = self.path.get_or_insert_with(|| PathModel::new(round_trip, now));
        path.shortest = path.shortest.min(round_trip);
        (path.seen, path.crowded_rounds) = (now, 0);
        let filling = PathModel::share(arrived_bytes, path.shortest, round_trip);
        // The largest measurement counts, since delayed rounds measure too little; it fades, since the path may have changed.
        let most = self.gaps.map_or(0, |most| most - most / 16).max(filling);
        self.gaps = Some(most);
        self.size_bytes.max(most.saturating_mul(GAP_PRODUCTS))
    }

    fn adapt(&mut self, now: Instant, arrived_bytes: u64, round_trip: Duration) -> u64 {
        // A window that fills the path already must not double.
        let quiet_rounds = if self.ahead == SentAhead::Found { NEVER_FULL } else { 0 };
        let path =
            self.path.get_or_insert_with(|| PathModel { quiet_rounds, ..PathModel::new(round_trip, now) });
        let size_bytes = path.after(now, self.size_bytes, arrived_bytes, round_trip);
        if !path.is_in_doubt(now) {
            return size_bytes;
        }
        let after =
            size_bytes.min(PathModel::share(arrived_bytes, path.shortest + path.allowed() / 2, round_trip));
        self.rtt_probe =
            Some(RttProbe { rounds_left: RTT_PROBE_ROUNDS, shortest: round_trip, size_bytes: after });
        // The queue empties while an eighth less is in flight than fills the path.
        let filling = size_bytes.min(PathModel::share(arrived_bytes, path.shortest, round_trip));
        filling - filling / 8
    }

    fn continue_rtt_probe(&mut self, now: Instant, rtt_probe: RttProbe, round_trip: Duration) -> u64 {
        let shortest = rtt_probe.shortest.min(round_trip);
        let rounds_left = rtt_probe.rounds_left - 1;
        if rounds_left > 0 {
            self.rtt_probe = Some(RttProbe { rounds_left, shortest, ..rtt_probe });
            return self.size_bytes;
        }
        let is_the_same = self.path.is_some_and(|path| shortest <= path.shortest + path.allowed());
        let quiet_rounds = if is_the_same { 0 } else { NEVER_FULL };
        self.path = Some(PathModel { quiet_rounds, ..PathModel::new(shortest, now) });
        rtt_probe.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const ROUND_TRIP: Duration = Duration::from_millis(150);

    /// Path with this capacity in its round trip, and a server that always has more to send.
    #[derive(Clone, Copy)]
    struct Way {
        holds_bytes: u64,
        round_trip: Duration,
        /// Queueing delay caused by other flows.
        others: Duration,
    }

    impl Way {
        fn holding(holds_bytes: u64) -> Self {
            Self { holds_bytes, round_trip: ROUND_TRIP, others: Duration::ZERO }
        }
    }

    /// Window with a simulated clock.
    struct Run {
        window: AdaptiveWindow,
        now: Instant,
        /// Bytes in flight when the last round began: a smaller window takes effect one round later.
        under_way_bytes: u64,
    }

    #[expect(clippy::disallowed_methods, reason = "where virtual time begins does not matter")]
    fn start(most_bytes: u64) -> Run {
        let window = AdaptiveWindow::new(most_bytes, SentAhead::Found);
        Run { under_way_bytes: window.size_bytes(), window, now: Instant::now() }
    }

    impl Run {
        /// Simulates rounds; returns the window after each, in MiB, and the queueing delay, in milliseconds.
        fn rounds(&mut self, way: Way, rounds: usize) -> Vec<(u64, u128)> {
            (0..rounds).map(|_| self.round(way)).collect()
        }

        fn round(&mut self, way: Way) -> (u64, u128) {
            let Way { holds_bytes, round_trip, others } = way;
            let waiting_bytes = self.under_way_bytes.saturating_sub(holds_bytes);
            let waiting = others + round_trip.mul_f64(waiting_bytes as f64 / holds_bytes as f64);
            self.window.handle_arrived(self.window.size_bytes() / PING_FRACTION);
            let nonce = self.window.poll_ping(self.now).expect("a ping");
            // Bulk that was in flight when the ping was sent has arrived before the pong.
            self.window.handle_arrived(self.under_way_bytes);
            self.under_way_bytes = self.window.size_bytes();
            self.now += round_trip + waiting;
            self.window.handle_pong(self.now, nonce);
            (self.window.size_bytes() / MIB, waiting.as_millis())
        }

        fn sizes(&mut self, way: Way, rounds: usize) -> Vec<u64> {
            self.rounds(way, rounds).into_iter().map(|(size, _)| size).collect()
        }
    }

    #[test]
    fn doubles_while_it_is_the_bottleneck_up_to_what_is_reserved() {
        let mut run = start(30 * MIB);
        assert_eq!(run.sizes(Way::holding(1 << 30), 8), [8, 8, 16, 16, 30, 30, 30, 30]);
    }

    #[test]
    fn falls_to_what_fills_the_path_and_lets_little_wait() {
        let mut run = start(1 << 30);
        run.rounds(Way::holding(20 * MIB), 12);
        for (size, waited) in run.rounds(Way::holding(20 * MIB), 1_000) {
            // 150 / 8 + 15 ms are allowed.
            assert!((15..=25).contains(&size) && waited <= 33, "{size} MiB, {waited} ms");
        }
    }

    #[test]
    fn follows_a_path_that_becomes_faster_or_slower() {
        let mut run = start(1 << 30);
        run.rounds(Way::holding(20 * MIB), 30);
        let sizes = run.sizes(Way::holding(200 * MIB), 30);
        assert!((200..=245).contains(&sizes[29]), "{sizes:?}");
        let sizes = run.sizes(Way::holding(10 * MIB), 10);
        assert!((10..=13).contains(&sizes[9]), "{sizes:?}");
    }

    /// Checks the windows of a known path, from round `after` on.
    fn settles(run: &mut Run, way: Way, after: usize) {
        let least = way.holds_bytes / MIB;
        let sizes = run.sizes(way, 300);
        let narrow = sizes[after..].iter().filter(|&&size| size < least).count();
        assert!(narrow <= 12, "{narrow} rounds with less than {least} MiB: {sizes:?}");
        assert!(sizes.iter().all(|&size| size <= least * 4), "{sizes:?}");
    }

    #[test]
    fn a_path_that_became_longer_is_not_taken_for_a_full_one_for_long() {
        let mut run = start(1 << 30);
        let short = Way { round_trip: Duration::from_millis(20), ..Way::holding(10 * MIB) };
        settles(&mut run, short, 10);
        settles(&mut run, Way::holding(75 * MIB), 20);
    }

    #[test]
    fn a_round_trip_that_was_short_by_luck_is_forgotten() {
        let mut run = start(1 << 30);
        run.round(Way { round_trip: Duration::from_millis(110), ..Way::holding(15 * MIB) });
        settles(&mut run, Way::holding(20 * MIB), 20);
        assert_eq!(run.window.path.map(|path| path.shortest), Some(ROUND_TRIP));
    }

    #[test]
    fn a_first_round_trip_that_was_long_is_no_excuse_for_a_queue() {
        let mut run = start(1 << 30);
        run.rounds(Way { others: Duration::from_millis(100), ..Way::holding(20 * MIB) }, 5);
        run.rounds(Way::holding(20 * MIB), 100);
        for (_, waited) in run.rounds(Way::holding(20 * MIB), 100) {
            assert!(waited <= 33, "{waited} ms");
        }
    }

    #[test]
    fn busy_moments_do_not_narrow_it() {
        let mut run = start(1 << 30);
        let way = Way::holding(20 * MIB);
        run.rounds(way, 12);
        let busy = Way { others: Duration::from_millis(100), ..way };
        let sizes: Vec<u64> = (0..100).map(|n| run.round(if n % 4 == 0 { busy } else { way }).0).collect();
        // The window is narrow during the measurement.
        assert!(sizes.iter().filter(|&&size| size < 20).count() <= 4, "{sizes:?}");
    }

    #[test]
    fn a_queue_of_others_does_not_starve_it() {
        let mut run = start(1 << 30);
        run.rounds(Way::holding(20 * MIB), 12);
        let crowded = Way { others: Duration::from_millis(200), ..Way::holding(20 * MIB) };
        let sizes = run.sizes(crowded, 300);
        // They delay the bulk like a longer path.
        let narrow = sizes[30..].iter().filter(|&&size| size < 20).count();
        assert!(narrow <= 20, "{sizes:?}");
    }

    #[test]
    fn a_quiet_connection_is_not_measured() {
        let mut run = start(1 << 30);
        run.window.handle_arrived(1_000);
        assert_eq!(run.window.poll_ping(run.now), None);
        run.window.handle_pong(run.now, 7);
        assert_eq!(run.window.size_bytes(), FIRST_WINDOW_BYTES, "a pong of another ping");
    }

    #[test]
    fn a_path_that_is_known_is_filled_from_the_start() {
        let window = AdaptiveWindow::new(1 << 30, SentAhead::Known(20 * MIB));
        let mut run = Run { under_way_bytes: window.size_bytes(), ..start(1 << 30) };
        run.window = window;
        let found = run.rounds(Way::holding(20 * MIB), 30);
        assert!(found.iter().all(|&(size, waited)| (20..=24).contains(&size) && waited <= 33), "{found:?}");
        assert_eq!(
            AdaptiveWindow::new(1 << 30, SentAhead::Known(7)).size_bytes(),
            FIRST_WINDOW_BYTES,
            "it knew little"
        );
        assert_eq!(
            AdaptiveWindow::new(MIB, SentAhead::Known(1 << 40)).size_bytes(),
            MIB,
            "no more than is reserved"
        );
    }

    /// With gaps, the queueing delay is ignored: data after a gap waits in any case, and a smaller window
    /// would stall.
    #[test]
    fn the_whole_window_is_used_if_the_sender_keeps_queues_short() {
        let window = AdaptiveWindow::new(80 * MIB, SentAhead::All);
        let mut run = Run { under_way_bytes: window.size_bytes(), ..start(80 * MIB) };
        run.window = window;
        let crowded = Way { others: Duration::from_millis(100), ..Way::holding(20 * MIB) };
        for way in [Way::holding(20 * MIB), crowded] {
            assert!(run.sizes(way, 100).iter().all(|&size| size == 80));
        }
        assert!(run.window.shortest() >= Some(ROUND_TRIP), "round trips are measured");
    }

    /// Half of the rounds are delayed by losses.
    #[test]
    fn the_window_fills_the_path_several_times_if_packets_are_lost() {
        let lossy = |run: &mut Run, rounds: u32| {
            let held_up = |n: u32| if n.is_multiple_of(2) { ROUND_TRIP } else { Duration::ZERO };
            (0..rounds)
                .map(|n| run.round(Way { others: held_up(n), ..Way::holding(20 * MIB) }).0)
                .collect::<Vec<_>>()
        };
        let mut run = start(1 << 30);
        run.window.note_gaps(true);
        let sizes = lossy(&mut run, 100);
        assert!(sizes[10..].iter().all(|&size| (60..=400).contains(&size)), "{sizes:?}");
        // Without losses the window falls to what fills the path.
        run.window.note_gaps(false);
        let sizes = run.sizes(Way::holding(20 * MIB), 30);
        assert!((20..=25).contains(&sizes[29]), "{sizes:?}");
    }

    #[test]
    fn a_small_reservation_is_the_window() {
        let mut window = AdaptiveWindow::new(1000, SentAhead::Found);
        assert_eq!(window.size_bytes(), 1000);
        window.handle_arrived(1 << 40);
        assert_eq!(window.round, WindowRound::Idle, "nothing is to be learnt");
    }

    #[test]
    fn a_round_whose_ping_was_overtaken_by_another_does_not_last_for_ever() {
        let mut run = start(64 * MIB);
        run.rounds(Way::holding(20 * MIB), 2);
        let before = run.window.size_bytes();
        run.window.handle_arrived(before);
        assert!(run.window.poll_ping(run.now).is_some());
        // After an outage the peer answers the newest ping only, which was not the window's.
        run.now += Duration::from_secs(2);
        run.window.handle_pong(run.now, 7);
        assert_eq!(run.window.size_bytes(), before, "it says nothing of the path");
        run.rounds(Way::holding(20 * MIB), 6);
        assert!(run.window.size_bytes() > before, "the window grows again");
    }
}
