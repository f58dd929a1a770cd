//! Decision to move data from TCP to QUIC or back, from observations of the receiver: bytes, and packets that
//! arrive out of order. Outside this module: opening connections, moving transfers that are in flight.
//!
//! TCP stays where its packets arrive in order. A queue that overflows causes gaps for one or two round
//! trips. Gaps over several round trips are losses of the path itself: then QUIC is tried, whose controller
//! does not treat such losses as congestion. The faster protocol is kept. A connection that is silent while a
//! request is open is replaced by the other protocol.

use std::time::Duration;

/// Protocol that carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying {
    /// TCP, by the kernel.
    Tcp,
    /// QUIC, by this program.
    Quic,
}

impl Carrying {
    /// Returns the other protocol.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Tcp => Self::Quic,
            Self::Quic => Self::Tcp,
        }
    }
}

/// State of a connection. Counts are since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// Bytes received.
    pub received_bytes: u64,
    /// Packets received after a gap.
    pub out_of_order: u64,
    /// Round trip without a queue; `None` where it is not known yet.
    pub least_rtt: Option<Duration>,
    /// True when a requested answer is incomplete although the application has taken everything that was
    /// received.
    pub is_waiting: bool,
}

/// Shortest round trip at which losses matter: below it TCP recovers from them soon enough.
pub const LEAST_RTT: Duration = Duration::from_millis(5);
/// Length of an observation, in round trips; at least `LEAST_SPAN`. Longer than a burst of losses: with 100
/// ms, a queue that overflowed at the start of the kernel's BBR (1 Gb/s, 20 ms) was mistaken for losses of
/// the path.
const ROUND_TRIPS: u32 = 2;
/// Shortest length of an observation.
const LEAST_SPAN: Duration = Duration::from_millis(300);
/// Consecutive observations with gaps after which QUIC is tried.
const INTERVALS_WITH_GAPS: u32 = 3;
/// Rate from which TCP is kept in spite of gaps, bytes per second: its sender does not treat them as
/// congestion, and QUIC would need most of a processor at either end.
const ENOUGH_BYTES_PER_SEC: f64 = 60e6;
/// Fewest bytes of an observation that is judged.
const LEAST_BYTES: u64 = 32 << 10;
/// Silence after which a connection with an open request is replaced, besides `SILENT_ROUND_TRIPS` round
/// trips. Longer than the ten seconds after which the other side is sent a ping, so a server that is only
/// slow to answer has been heard by then.
const SILENT: Duration = Duration::from_secs(13);
const SILENT_ROUND_TRIPS: u32 = 10;
/// Time after which a change is judged, or `TRIAL_ROUND_TRIPS` round trips if longer: the new controller has
/// found its rate by then.
const TRIAL: Duration = Duration::from_secs(3);
const TRIAL_ROUND_TRIPS: u32 = 20;
/// Share of the rate before a change below which the change is undone.
const WORTH: f64 = 0.7;
/// Pause after a change that was undone or failed.
const REST: Duration = Duration::from_secs(60);

/// Observer of the connection that carries the data of one server.
#[derive(Debug)]
pub struct LinkWatch {
    carrying: Carrying,
    /// Beginning of the current observation, with the state then.
    since: Option<(Duration, Standing)>,
    intervals_with_gaps: u32,
    /// Last time that bytes arrived or no request was open.
    heard: Duration,
    /// Highest rate of an observation of the current connection, bytes per second.
    best: f64,
    trial: Option<ChangeTrial>,
    not_before: Duration,
}

/// Change that was not judged yet.
#[derive(Clone, Copy, Debug)]
struct ChangeTrial {
    until: Duration,
    /// Rate before the change, bytes per second.
    before: f64,
}

impl LinkWatch {
    /// Begins to observe a new connection.
    #[must_use]
    pub fn new(carrying: Carrying, now: Duration) -> Self {
        Self {
            carrying,
            since: None,
            intervals_with_gaps: 0,
            heard: now,
            best: 0.0,
            trial: None,
            not_before: Duration::ZERO,
        }
    }

    /// Protocol that carries the data now.
    #[must_use]
    pub fn carrying(&self) -> Carrying {
        self.carrying
    }

    /// True when the last observation had gaps.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.intervals_with_gaps > 0
    }

    /// Judges the connection's state; true when the other protocol should carry the data.
    pub fn look(&mut self, now: Duration, is: &Standing) -> bool {
        let Some((began, was)) = self.since else {
            (self.since, self.heard) = (Some((now, *is)), now);
            return false;
        };
        let rtt = is.least_rtt.unwrap_or_default();
        let came = is.received_bytes.saturating_sub(was.received_bytes);
        if came > 0 || !is.is_waiting {
            self.heard = now;
        }
        if now.saturating_sub(self.heard) >= SILENT + rtt * SILENT_ROUND_TRIPS {
            return now >= self.not_before || self.trial.is_some();
        }
        let span = now.saturating_sub(began);
        if span < LEAST_SPAN.max(rtt * ROUND_TRIPS) {
            return false;
        }
        self.since = Some((now, *is));
        if came < LEAST_BYTES {
            return false;
        }
        let rate = came as f64 / span.as_secs_f64();
        self.best = self.best.max(rate);
        let has_gaps = is.out_of_order > was.out_of_order && rate < ENOUGH_BYTES_PER_SEC;
        self.intervals_with_gaps = if has_gaps { self.intervals_with_gaps + 1 } else { 0 };
        if let Some(trial) = self.trial {
            return now >= trial.until && self.is_worse(trial);
        }
        self.carrying == Carrying::Tcp
            && self.intervals_with_gaps >= INTERVALS_WITH_GAPS
            && rtt >= LEAST_RTT
            && now >= self.not_before
    }

    /// Judges a change; a successful one becomes final.
    fn is_worse(&mut self, trial: ChangeTrial) -> bool {
        let is_worse = self.best < WORTH * trial.before;
        if !is_worse {
            self.trial = None;
        }
        is_worse
    }

    /// Records that the other protocol carries the data from now on.
    pub fn changed(&mut self, now: Duration, least_rtt: Option<Duration>) {
        let is_taken_back = self.trial.is_some();
        let until = now + TRIAL.max(least_rtt.unwrap_or_default() * TRIAL_ROUND_TRIPS);
        let trial = (!is_taken_back).then_some(ChangeTrial { until, before: self.best });
        let not_before = if is_taken_back { now + REST } else { self.not_before };
        *self = Self { trial, not_before, ..Self::new(self.carrying.other(), now) };
    }

    /// Records that the other protocol could not connect.
    pub fn refused(&mut self, now: Duration) {
        (self.not_before, self.heard, self.intervals_with_gaps) = (now + REST, now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(150);
    const STEP: Duration = Duration::from_millis(50);

    /// Connection in virtual time.
    struct Run {
        watch: LinkWatch,
        now: Duration,
        is: Standing,
    }

    impl Run {
        fn of(carrying: Carrying, least_rtt: Duration) -> Self {
            let is = Standing { least_rtt: Some(least_rtt), is_waiting: true, ..Standing::default() };
            Self { watch: LinkWatch::new(carrying, Duration::ZERO), now: Duration::ZERO, is }
        }

        /// Receives bytes at this rate, with a gap in the steps that `has_gap` selects; returns the time at
        /// which a change is requested.
        fn run(
            &mut self,
            secs: u64,
            bytes_per_sec: f64,
            has_gap: impl Fn(Duration) -> bool,
        ) -> Option<Duration> {
            let until = self.now + Duration::from_secs(secs);
            while self.now < until {
                self.now += STEP;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
                let bytes = (bytes_per_sec * STEP.as_secs_f64()) as u64;
                self.is.received_bytes += bytes;
                self.is.out_of_order += u64::from(has_gap(self.now));
                if self.watch.look(self.now, &self.is) {
                    return Some(self.now);
                }
            }
            None
        }

        fn change(&mut self) {
            self.watch.changed(self.now, self.is.least_rtt);
            self.is = Standing { received_bytes: 0, out_of_order: 0, ..self.is };
        }
    }

    #[test]
    fn tcp_is_kept_where_it_has_no_lasting_gaps() {
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 25e6, |_| false), None);
        // Queue that overflowed when TCP began: gaps for two round trips.
        let mut run = Run::of(Carrying::Tcp, RTT);
        let overshoot = |now: Duration| (1000..1300).contains(&now.as_millis());
        assert_eq!(run.run(60, 25e6, overshoot), None);
        // Fast connection in spite of losses.
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 110e6, |_| true), None);
        // One loss every few seconds is no reason.
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 25e6, |now| now.as_millis() % 2000 < 150), None);
    }

    #[test]
    fn lasting_gaps_cause_a_change_within_two_seconds_on_long_paths_only() {
        let mut run = Run::of(Carrying::Tcp, RTT);
        let at = run.run(60, 1e6, |_| true).unwrap();
        assert!(at < Duration::from_millis(1200), "{at:?}");
        let mut run = Run::of(Carrying::Tcp, Duration::from_millis(20));
        let at = run.run(60, 1e6, |_| true).unwrap();
        assert!(at < Duration::from_millis(1300), "{at:?}");
        let mut run = Run::of(Carrying::Tcp, Duration::from_millis(1));
        assert_eq!(run.run(60, 1e6, |_| true), None);
    }

    #[test]
    fn quic_is_kept_if_it_is_fast_and_replaced_for_a_while_if_it_is_slow() {
        for (after, stays) in [(20e6, true), (9e6, true), (2e6, false)] {
            let mut run = Run::of(Carrying::Tcp, RTT);
            run.run(60, 10e6, |_| true).unwrap();
            run.change();
            assert_eq!(run.watch.carrying(), Carrying::Quic);
            let back = run.run(30, after, |_| true);
            assert_eq!(back.is_none(), stays, "{after}: {back:?}");
            if back.is_some() {
                run.change();
                assert_eq!(run.watch.carrying(), Carrying::Tcp);
                assert_eq!(run.run(50, 10e6, |_| true), None, "a pause follows");
            }
        }
    }

    #[test]
    fn a_silent_protocol_is_replaced_and_an_idle_one_is_not_silent() {
        for carrying in [Carrying::Tcp, Carrying::Quic] {
            let mut run = Run::of(carrying, RTT);
            assert_eq!(run.run(5, 10e6, |_| false), None);
            run.is.is_waiting = false;
            assert_eq!(run.run(60, 0.0, |_| false), None);
            run.is.is_waiting = true;
            let asked = run.now;
            let at = run.run(60, 0.0, |_| false).unwrap();
            assert!((13..16).contains(&(at - asked).as_secs()), "{:?}", at - asked);
        }
    }

    #[test]
    fn a_protocol_that_cannot_connect_is_tried_again_after_a_pause() {
        let mut run = Run::of(Carrying::Tcp, RTT);
        run.run(60, 1e6, |_| true).unwrap();
        run.watch.refused(run.now);
        assert_eq!(run.run(59, 1e6, |_| true), None);
        assert!(run.run(10, 1e6, |_| true).is_some());
    }
}
