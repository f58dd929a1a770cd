//! When a connection that carries data should give way to one by the other protocol, from what its own receiving end sees:
//! bytes, and whether packets came out of order. Not here: opening connections, moving what is under way.
//!
//! TCP is fine where its packets come in order. Where gaps keep standing for several round trips, something is lost on the
//! way that is no full queue, for that is over after one or two: then QUIC is tried, whose controller does not take such
//! losses for congestion. What comes faster stays. A connection on which nothing comes any more, though something was asked
//! for, gives way whatever it is made by.

use std::time::Duration;

/// What carries data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying {
    /// The kernel's.
    Tcp,
    /// Ours, by datagrams.
    Quic,
}

impl Carrying {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Tcp => Self::Quic,
            Self::Quic => Self::Tcp,
        }
    }
}

/// How a connection stood at a moment. Counts are since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Standing {
    /// Bytes that came.
    pub received_bytes: u64,
    /// Packets that came after a gap.
    pub out_of_order: u64,
    /// Round trip without a queue; none where it is not known yet.
    pub least_rtt: Option<Duration>,
    /// Whether anything that was asked for has not come yet, though all that comes is taken.
    pub is_waiting: bool,
}

/// Below this round trip TCP recovers from losses so soon that it stays, whatever is lost.
pub const LEAST_RTT: Duration = Duration::from_millis(5);
/// A look spans so many round trips, and this time at least: a burst of losses is over within one. With 100 ms a queue that ran
/// over at the start of a kernel's BBR (1 Gb/s, 20 ms) was taken for more.
const ROUND_TRIPS: u32 = 2;
const LEAST_SPAN: Duration = Duration::from_millis(300);
/// Looks one after another that must have found gaps.
const LOOKS_WITH_GAPS: u32 = 3;
/// TCP that brings so much in spite of gaps stays, bytes per second: its sender does not take them for congestion, and QUIC would
/// need most of a processor at either end.
const ENOUGH: f64 = 60e6;
/// A look at which fewer bytes came says nothing.
const LEAST_BYTES: u64 = 32 << 10;
/// Nothing came for so long, or so many round trips beside it, though something was asked for: the answer to the question whether the
/// other side lives, which is asked after ten seconds, has not come either. Whoever only needs long to answer is heard.
const SILENT: Duration = Duration::from_secs(13);
const SILENT_ROUND_TRIPS: u32 = 10;
/// A change is judged after so long, or so many round trips: both controllers have found their rates then.
const TRIAL: Duration = Duration::from_secs(3);
const TRIAL_ROUND_TRIPS: u32 = 20;
/// A change after which less than this share comes is taken back.
const WORTH: f64 = 0.7;
/// After a change that was taken back, or could not be made, none is tried for so long.
const REST: Duration = Duration::from_secs(60);

/// Watches what carries the data of one server.
#[derive(Debug)]
pub struct LinkWatch {
    carrying: Carrying,
    /// When the look under way began, and how things stood.
    since: Option<(Duration, Standing)>,
    looks_with_gaps: u32,
    /// When something last came, or nothing was waited for.
    heard: Duration,
    /// The fastest look at what carries now, bytes per second.
    best: f64,
    trial: Option<Trial>,
    not_before: Duration,
}

/// A change that is not judged yet.
#[derive(Clone, Copy, Debug)]
struct Trial {
    until: Duration,
    /// What came before, bytes per second.
    before: f64,
}

impl LinkWatch {
    /// Of a connection that has just been made.
    #[must_use]
    pub fn new(carrying: Carrying, now: Duration) -> Self {
        Self {
            carrying,
            since: None,
            looks_with_gaps: 0,
            heard: now,
            best: 0.0,
            trial: None,
            not_before: Duration::ZERO,
        }
    }

    /// What carries now.
    #[must_use]
    pub fn carrying(&self) -> Carrying {
        self.carrying
    }

    /// True once gaps were seen lately.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.looks_with_gaps > 0
    }

    /// Looks at how things stand; true when the other protocol should carry.
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
        let has_gaps = is.out_of_order > was.out_of_order && rate < ENOUGH;
        self.looks_with_gaps = if has_gaps { self.looks_with_gaps + 1 } else { 0 };
        if let Some(trial) = self.trial {
            return now >= trial.until && self.is_worse(trial);
        }
        self.carrying == Carrying::Tcp
            && self.looks_with_gaps >= LOOKS_WITH_GAPS
            && rtt >= LEAST_RTT
            && now >= self.not_before
    }

    /// Judges a change; one that was worth it stays without further doubt.
    fn is_worse(&mut self, trial: Trial) -> bool {
        let is_worse = self.best < WORTH * trial.before;
        if !is_worse {
            self.trial = None;
        }
        is_worse
    }

    /// The other protocol carries from now on.
    pub fn changed(&mut self, now: Duration, least_rtt: Option<Duration>) {
        let is_taken_back = self.trial.is_some();
        let until = now + TRIAL.max(least_rtt.unwrap_or_default() * TRIAL_ROUND_TRIPS);
        let trial = (!is_taken_back).then_some(Trial { until, before: self.best });
        let not_before = if is_taken_back { now + REST } else { self.not_before };
        *self = Self { trial, not_before, ..Self::new(self.carrying.other(), now) };
    }

    /// The other protocol does not get through.
    pub fn refused(&mut self, now: Duration) {
        (self.not_before, self.heard, self.looks_with_gaps) = (now + REST, now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(150);
    const STEP: Duration = Duration::from_millis(50);

    /// A connection in virtual time.
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

        /// Bytes come at this rate, with a gap in every step for which `has_gap` says so; when a change is asked for.
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
    fn a_path_that_is_fine_with_tcp_stays_there() {
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 25e6, |_| false), None);
        // A queue that ran over when TCP began: gaps for two round trips.
        let mut run = Run::of(Carrying::Tcp, RTT);
        let overshoot = |now: Duration| (1000..1300).contains(&now.as_millis());
        assert_eq!(run.run(60, 25e6, overshoot), None);
        // What comes fast whatever is lost.
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 110e6, |_| true), None);
        // One loss every few seconds is no reason.
        let mut run = Run::of(Carrying::Tcp, RTT);
        assert_eq!(run.run(60, 25e6, |now| now.as_millis() % 2000 < 150), None);
    }

    #[test]
    fn gaps_that_stay_are_answered_within_a_second_or_two_on_a_long_path_only() {
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
    fn quic_that_brings_more_stays_and_quic_that_brings_less_gives_way_for_good() {
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
                assert_eq!(run.run(50, 10e6, |_| true), None, "it rests");
            }
        }
    }

    #[test]
    fn what_falls_silent_gives_way_and_what_was_not_asked_for_is_no_silence() {
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
    fn a_protocol_that_does_not_get_through_is_not_tried_all_the_time() {
        let mut run = Run::of(Carrying::Tcp, RTT);
        run.run(60, 1e6, |_| true).unwrap();
        run.watch.refused(run.now);
        assert_eq!(run.run(59, 1e6, |_| true), None);
        assert!(run.run(10, 1e6, |_| true).is_some());
    }
}
