//! Pacing of one participant's frames: when to draw, at which resolution, and in which encoding.
//!
//! A state machine without a clock: `now` is an argument. Its rules, in order of importance: nothing is drawn
//! that changes nothing; at most [`MAX_FRAMES_IN_FLIGHT`] frames are unseen; while the view moves, a frame
//! keeps to [`MOVING_BUDGET`] by losing resolution, down to a ninth of the pixels, and to ten frames per
//! second by losing more; while it moves and many blocks arrive, frames take at most half of the time by
//! losing more pixels, which leaves the other half to the blocks; when it rests, arriving blocks refresh the
//! picture at intervals, and the last picture is exact.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use session::{PictureCodec, PictureSize};
use tokio::time::Instant;

/// Most frames sent and not yet shown: one in transit while one is decoded.
pub const MAX_FRAMES_IN_FLIGHT: usize = 2;
/// Time that a frame may take to draw and encode while the view moves: thirty frames per second.
pub const MOVING_BUDGET: Duration = Duration::from_millis(33);
/// Time that a frame may take before it gets fewer pixels than [`MOVING_FLOOR`]: ten frames per second.
const COARSE_BUDGET: Duration = Duration::from_millis(100);
/// Shortest period of frames while the view moves and blocks arrive, or twice the time of the last frame if
/// that is shorter: half of the time is left to the blocks, and frames of 18 ms still reach 27 per second.
const ARRIVING_PERIOD: Duration = Duration::from_millis(36);
/// Time that a frame may take while the view moves and blocks arrive: half of the period.
const ARRIVING_BUDGET: Duration = Duration::from_millis(18);
/// Share of the time that placing blocks must take for blocks to count as arriving: below it drawing hardly
/// slows down.
const ARRIVING_SHARE: f64 = 0.1;
/// Time that a frame of a view at rest may take while blocks arrive that will soon replace it; it grows with
/// the time of rest.
pub const LOADING_BUDGET: Duration = Duration::from_millis(200);
/// Divisor of the time that the view has rested, which gives the time that a frame may take while blocks
/// arrive: also on slow machines and paths the picture becomes as sharp as its blocks long before the last
/// one arrives.
const RESTED_SHARE: u32 = 4;
/// Shortest time between two pictures of the same view while blocks arrive.
pub const REFRESH: Duration = Duration::from_millis(150);
/// Time without changes after which a view counts as resting, even if it was announced as moving.
pub const MOVING_HOLD: Duration = Duration::from_millis(400);
/// Time that a view rests before it is sent exactly, since the exact picture is large.
pub const SETTLE: Duration = Duration::from_millis(200);
/// Number of steps of the resolution of a side.
const SCALE_STEPS: u32 = 24;
/// Resolution before the first measurement, in steps of the sides.
const FIRST_SCALE: u32 = 12;
/// Lowest resolution, in steps of the sides.
const LEAST_SCALE: u32 = 3;
/// Resolution below which frames become rarer rather than coarser, in steps of the sides: a ninth of the
/// pixels.
const MOVING_FLOOR: u32 = 8;
/// Resolution below which frames become rarer while blocks arrive, in steps of the sides: a sixteenth of the
/// pixels.
const ARRIVING_FLOOR: u32 = 6;
/// Weight of the newest measurement in averages.
const NEWEST_WEIGHT: f64 = 0.4;

/// State of the view and its blocks; input of the pacer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PaceInput {
    /// Number of the view.
    pub(crate) seq: u64,
    /// Time of the last change.
    pub(crate) changed_at: Instant,
    /// The participant announced that more changes follow.
    pub(crate) says_moving: bool,
    pub(crate) size: PictureSize,
    /// True if there is something to draw: a block, or the certainty that none is visible.
    pub(crate) is_drawable: bool,
    /// Number of loaded blocks; it changes whenever a new picture of the same view would differ.
    pub(crate) blocks_present: u64,
    /// Number of layers of geometry that have arrived.
    pub(crate) geometry_present: usize,
    /// Total time spent placing blocks so far, for all participants.
    pub(crate) placing: Duration,
    /// True if no further block will arrive: all are loaded, or the missing ones were given up.
    pub(crate) is_settled: bool,
    /// The participant requested an exact picture of what is shown.
    pub(crate) wants_still: bool,
}

impl PaceInput {
    /// Returns the time up to which the view counts as moving.
    fn moves_until(&self) -> Option<Instant> {
        self.says_moving.then(|| self.changed_at + MOVING_HOLD)
    }

    /// Returns what a picture of a view is drawn from.
    fn present(&self) -> (u64, usize) {
        (self.blocks_present, self.geometry_present)
    }

    pub(crate) fn is_moving(&self, now: Instant) -> bool {
        self.moves_until().is_some_and(|end| now < end)
    }
}

/// Size, codec and effort of a frame to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FramePlan {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) codec: PictureCodec,
    /// The view moves: speed matters more than sharpness.
    pub(crate) is_moving: bool,
    /// Full resolution and quality.
    pub(crate) is_full: bool,
}

/// Decision about the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaceDecision {
    /// Draw this frame.
    Draw(FramePlan),
    /// Wait until this time.
    WaitUntil(Instant),
    /// Wait for an event.
    Idle,
}

struct DrawnFrame {
    input: PaceInput,
    plan: FramePlan,
    began: Instant,
    at: Instant,
    took: Duration,
    /// True if blocks arrived while the view moved.
    is_arriving: bool,
}

/// Pacer of one participant's frames; see the module.
#[derive(Default)]
pub(crate) struct FramePacer {
    in_flight: VecDeque<u64>,
    drawn: Option<DrawnFrame>,
    secs_per_pixel: Option<f64>,
    /// Recent share of the time spent placing blocks.
    placing_share: f64,
}

impl FramePacer {
    /// Returns the time before which nothing is drawn: it is left to arriving blocks.
    pub(crate) fn resumes_at(&self) -> Option<Instant> {
        let drawn = self.drawn.as_ref().filter(|drawn| drawn.is_arriving)?;
        Some(drawn.began + (drawn.took * 2).min(ARRIVING_PERIOD))
    }

    /// Decides whether to draw the next frame now, to wait, or to idle.
    pub(crate) fn decide(&self, s: &PaceInput, now: Instant) -> PaceDecision {
        if !s.is_drawable || self.in_flight.len() >= MAX_FRAMES_IN_FLIGHT {
            return PaceDecision::Idle;
        }
        let moving = s.is_moving(now);
        let Some(drawn) = self.drawn.as_ref().filter(|d| d.input.seq == s.seq && d.input.size == s.size)
        else {
            return PaceDecision::Draw(self.plan(s, moving, now));
        };
        let refresh_at = drawn.at + REFRESH.max(drawn.took * 2);
        let is_new = drawn.input.present() != s.present();
        if let (true, Some(rest_at)) = (moving, s.moves_until()) {
            return match is_new {
                true if refresh_at <= now => PaceDecision::Draw(self.plan(s, moving, now)),
                true => PaceDecision::WaitUntil(refresh_at.min(rest_at)),
                false => PaceDecision::WaitUntil(rest_at),
            };
        }
        if s.wants_still {
            return PaceDecision::Draw(exact(s));
        }
        if s.is_settled {
            return self.finish(s, drawn, is_new, now);
        }
        match is_new || drawn.plan.is_moving {
            true if refresh_at <= now || drawn.plan.is_moving => {
                PaceDecision::Draw(self.plan(s, moving, now))
            }
            true => PaceDecision::WaitUntil(refresh_at),
            false => PaceDecision::Idle,
        }
    }

    /// Decides when no further block will arrive: a sharp picture at once, the exact one when the view has
    /// rested.
    fn finish(&self, s: &PaceInput, drawn: &DrawnFrame, is_new: bool, now: Instant) -> PaceDecision {
        if drawn.plan.codec == PictureCodec::Png && !is_new {
            return PaceDecision::Idle;
        }
        let exact_at = s.changed_at + SETTLE;
        if exact_at <= now {
            return PaceDecision::Draw(exact(s));
        }
        if is_new || !drawn.plan.is_full {
            return PaceDecision::Draw(self.plan(s, false, now));
        }
        PaceDecision::WaitUntil(exact_at)
    }

    fn plan(&self, s: &PaceInput, is_moving: bool, now: Instant) -> FramePlan {
        let within = |budget| self.scale(s.size, budget);
        let scale = match (is_moving, s.is_settled) {
            (true, _) if self.is_arriving(s, now) => {
                within(ARRIVING_BUDGET).max(within(ARRIVING_PERIOD).min(ARRIVING_FLOOR))
            }
            (true, _) => within(MOVING_BUDGET).max(within(COARSE_BUDGET).min(MOVING_FLOOR)),
            (false, false) => within(LOADING_BUDGET.max((now - s.changed_at) / RESTED_SHARE)),
            (false, true) => SCALE_STEPS,
        };
        let side = |n: u32| (n * scale).div_ceil(SCALE_STEPS);
        let (width, height) = (side(s.size.width()), side(s.size.height()));
        FramePlan {
            width,
            height,
            codec: PictureCodec::Jpeg,
            is_moving,
            is_full: !is_moving && scale == SCALE_STEPS,
        }
    }

    /// Returns true if placing blocks takes a relevant share of the time: since the last frame, or recently.
    fn is_arriving(&self, s: &PaceInput, now: Instant) -> bool {
        !s.is_settled && self.placing_share.max(self.share_placing(s, now)) >= ARRIVING_SHARE
    }

    /// Returns the share of the time since the start of the last frame that was spent placing blocks.
    fn share_placing(&self, s: &PaceInput, now: Instant) -> f64 {
        let Some(drawn) = &self.drawn else { return 0.0 };
        let (passed, placing) = (now - drawn.began, s.placing.saturating_sub(drawn.input.placing));
        if passed.is_zero() { 0.0 } else { placing.as_secs_f64() / passed.as_secs_f64() }
    }

    /// Returns the resolution, in steps of the sides, that can be drawn within `budget`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    fn scale(&self, size: PictureSize, budget: Duration) -> u32 {
        let Some(secs_per_pixel) = self.secs_per_pixel else { return FIRST_SCALE };
        let full_secs = secs_per_pixel * f64::from(size.width()) * f64::from(size.height());
        let share = (budget.as_secs_f64() / full_secs).sqrt() * f64::from(SCALE_STEPS);
        share.clamp(f64::from(LEAST_SCALE), f64::from(SCALE_STEPS)) as u32
    }

    /// Records that a picture was drawn for `input` between `began` and `now`, and sent as `frame`.
    pub(crate) fn sent(
        &mut self,
        frame: u64,
        plan: FramePlan,
        input: PaceInput,
        began: Instant,
        now: Instant,
    ) {
        let took = now - began;
        let measured = took.as_secs_f64() / (f64::from(plan.width) * f64::from(plan.height));
        // The encoding of exact pictures differs: their time does not predict that of moving ones.
        if plan.codec == PictureCodec::Jpeg {
            let old = self.secs_per_pixel.unwrap_or(measured);
            self.secs_per_pixel = Some(old + NEWEST_WEIGHT * (measured - old));
        }
        let is_arriving = plan.is_moving && self.is_arriving(&input, began);
        let share = self.share_placing(&input, began);
        self.placing_share += NEWEST_WEIGHT * (share - self.placing_share);
        self.in_flight.push_back(frame);
        self.drawn = Some(DrawnFrame { input, plan, began, at: now, took, is_arriving });
    }

    /// Records that the participant has shown `frame` and all before it.
    pub(crate) fn shown(&mut self, frame: u64) {
        self.in_flight.retain(|&f| f > frame);
    }

    /// Returns true if the last picture was lossless and showed the state in `input`.
    pub(crate) fn is_exact(&self, input: &PaceInput) -> bool {
        self.drawn.as_ref().is_some_and(|d| {
            d.plan.codec == PictureCodec::Png
                && (d.input.seq, d.input.size, d.input.present()) == (input.seq, input.size, input.present())
        })
    }
}

fn exact(s: &PaceInput) -> FramePlan {
    FramePlan {
        width: s.size.width(),
        height: s.size.height(),
        codec: PictureCodec::Png,
        is_moving: false,
        is_full: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Desk {
        pacer: FramePacer,
        now: Instant,
        s: PaceInput,
        frames: u64,
    }

    impl Desk {
        fn new() -> Self {
            let now = Instant::now();
            let s = PaceInput {
                seq: 1,
                changed_at: now,
                says_moving: false,
                size: PictureSize::new(800, 400),
                is_drawable: true,
                blocks_present: 1,
                geometry_present: 0,
                placing: Duration::ZERO,
                is_settled: false,
                wants_still: false,
            };
            Self { pacer: FramePacer::default(), now, s, frames: 0 }
        }

        fn decide(&self) -> PaceDecision {
            self.pacer.decide(&self.s, self.now)
        }

        /// Draws the frame that is due, which takes `millis`; `None` if none is due.
        fn draw(&mut self, millis: u64) -> Option<FramePlan> {
            let PaceDecision::Draw(plan) = self.decide() else { return None };
            let began = self.now;
            self.now += Duration::from_millis(millis);
            self.frames += 1;
            self.pacer.sent(self.frames, plan, self.s, began, self.now);
            Some(plan)
        }

        fn shown(&mut self) {
            self.pacer.shown(self.frames);
        }

        fn change(&mut self, says_moving: bool) {
            self.s = PaceInput { seq: self.s.seq + 1, changed_at: self.now, says_moving, ..self.s };
        }
    }

    #[test]
    fn nothing_is_drawn_before_the_first_block_nor_when_nothing_changed() {
        let mut desk = Desk::new();
        desk.s.is_drawable = false;
        assert_eq!(desk.decide(), PaceDecision::Idle);
        desk.s.is_drawable = true;
        assert!(desk.draw(10).is_some());
        assert_eq!(desk.decide(), PaceDecision::Idle);
        desk.now += Duration::from_secs(60);
        assert_eq!(desk.decide(), PaceDecision::Idle);
    }

    #[test]
    fn two_frames_in_flight_and_no_more() {
        let mut desk = Desk::new();
        for _ in 0..MAX_FRAMES_IN_FLIGHT {
            assert!(desk.draw(10).is_some());
            desk.change(true);
        }
        assert_eq!(desk.decide(), PaceDecision::Idle);
        desk.pacer.shown(1);
        assert!(desk.draw(10).is_some());
    }

    #[test]
    fn moving_frames_lose_resolution_and_only_then_become_rarer() {
        // Nanoseconds for each of 800 x 400 pixels, and how wide a frame becomes.
        for (nanos, width) in [(50, 800), (150, 633), (500, 333), (2000, 266), (4000, 200), (100_000, 100)] {
            let mut desk = Desk::new();
            let mut sides = Vec::new();
            for _ in 0..20 {
                desk.change(true);
                let PaceDecision::Draw(plan) = desk.decide() else { panic!("{:?}", desk.decide()) };
                desk.draw(u64::from(plan.width * plan.height) * nanos / 1_000_000);
                desk.shown();
                sides.push(plan.width);
                assert!(!plan.is_full && plan.codec == PictureCodec::Jpeg);
            }
            let last = sides.last().copied().unwrap_or(0);
            // A step of the scale more or less: whole milliseconds were measured.
            assert!(u32::abs_diff(last, width) <= 34, "{nanos} ns a pixel: {sides:?}");
        }
    }

    #[test]
    fn moving_frames_leave_half_of_the_time_to_blocks_that_arrive() {
        let mut desk = Desk::new();
        // 300 ns for each of 800 x 400 pixels; blocks are placed all the time, then never.
        let mut frame = |is_placing: bool, pauses: &mut Vec<Duration>| {
            desk.change(true);
            let before = desk.now;
            desk.now = desk.pacer.resumes_at().map_or(desk.now, |at| at.max(desk.now));
            pauses.push(desk.now - before);
            desk.s.placing += if is_placing { Duration::from_millis(36) } else { Duration::ZERO };
            let PaceDecision::Draw(plan) = desk.decide() else { panic!("{:?}", desk.decide()) };
            let millis = u64::from(plan.width * plan.height) * 300 / 1_000_000;
            desk.draw(millis);
            desk.shown();
            (plan.width, millis)
        };
        let mut pauses = Vec::new();
        let arriving: Vec<(u32, u64)> = (0..20).map(|_| frame(true, &mut pauses)).collect();
        for ((width, millis), pause) in arriving[2..].iter().zip(&pauses[3..]) {
            assert!((333..=400).contains(width) && *millis <= 24, "{arriving:?}");
            assert!(pause.abs_diff(Duration::from_millis(*millis)) <= Duration::from_millis(3), "{pauses:?}");
        }
        pauses.clear();
        let after: Vec<(u32, u64)> = (0..20).map(|_| frame(false, &mut pauses)).collect();
        assert!(after[10..].iter().all(|(width, _)| *width > 433), "sharper again: {after:?}");
        assert_eq!(pauses.last(), Some(&Duration::ZERO));
    }

    #[test]
    fn arriving_blocks_refresh_now_and_then() {
        let mut desk = Desk::new();
        desk.draw(10);
        desk.shown();
        desk.s.blocks_present += 1;
        assert_eq!(desk.decide(), PaceDecision::WaitUntil(desk.now + REFRESH));
        desk.now += REFRESH;
        // Slow pictures come more rarely: drawing must leave time for loading.
        assert!(desk.draw(1000).is_some());
        desk.shown();
        desk.s.blocks_present += 1;
        assert_eq!(desk.decide(), PaceDecision::WaitUntil(desk.now + Duration::from_secs(2)));
    }

    #[test]
    fn a_view_that_rests_becomes_sharp_long_before_its_last_block() {
        let mut desk = Desk::new();
        let mut widths = Vec::new();
        for _ in 0..40 {
            desk.s.blocks_present += 1;
            let PaceDecision::Draw(plan) = desk.decide() else { panic!("{:?}", desk.decide()) };
            // A slow machine: a full picture takes more than three seconds.
            desk.draw(u64::from(plan.width * plan.height) / 100);
            desk.shown();
            widths.push(plan.width);
            desk.s.blocks_present += 1;
            if let PaceDecision::WaitUntil(at) = desk.decide() {
                desk.now = at;
            }
        }
        assert!(widths[1] <= 340, "the first pictures are coarse: {widths:?}");
        assert!(
            widths.contains(&800) && desk.now - desk.s.changed_at < Duration::from_secs(400),
            "{widths:?}"
        );
        let first_sharp = widths.iter().position(|&w| w == 800).unwrap();
        assert!(widths[first_sharp..].iter().all(|&w| w == 800), "it stays sharp: {widths:?}");
    }

    #[test]
    fn the_last_picture_is_exact_and_drawn_once() {
        let mut desk = Desk::new();
        desk.draw(10);
        desk.shown();
        desk.s.blocks_present = 9;
        desk.s.is_settled = true;
        let sharp = desk.draw(10).expect("a sharp picture at once");
        assert_eq!((sharp.width, sharp.codec, sharp.is_full), (800, PictureCodec::Jpeg, true));
        desk.shown();
        assert_eq!(desk.decide(), PaceDecision::WaitUntil(desk.s.changed_at + SETTLE));
        desk.now = desk.s.changed_at + SETTLE;
        let exact = desk.draw(10).expect("then an exact picture");
        assert_eq!((exact.width, exact.codec), (800, PictureCodec::Png));
        desk.shown();
        assert_eq!(desk.decide(), PaceDecision::Idle);
        assert!(desk.pacer.is_exact(&desk.s));
        desk.s.geometry_present += 1;
        assert!(!desk.pacer.is_exact(&desk.s), "a surface has arrived");
        assert_eq!(desk.draw(10).map(|plan| plan.codec), Some(PictureCodec::Png));
    }

    #[test]
    fn a_view_that_stops_moving_without_a_note_becomes_sharp() {
        let mut desk = Desk::new();
        desk.s.is_settled = true;
        desk.change(true);
        assert!(desk.draw(10).expect("moving").is_moving);
        desk.shown();
        assert_eq!(desk.decide(), PaceDecision::WaitUntil(desk.s.changed_at + MOVING_HOLD));
        desk.now = desk.s.changed_at + MOVING_HOLD;
        assert_eq!(desk.draw(10).map(|p| p.codec), Some(PictureCodec::Png));
    }

    #[test]
    fn an_exact_picture_can_be_requested_before_all_blocks_are_loaded() {
        let mut desk = Desk::new();
        desk.draw(10);
        desk.shown();
        desk.s.wants_still = true;
        assert_eq!(desk.draw(10).map(|p| p.codec), Some(PictureCodec::Png));
        desk.shown();
        desk.s.wants_still = false;
        assert_eq!(desk.decide(), PaceDecision::Idle);
    }
}
