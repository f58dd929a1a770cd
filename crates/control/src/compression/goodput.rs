//! Goodput of a link, measured from the times at which bytes are queued and leave the queue.
//!
//! Only bytes that leave while more is waiting measure the link, except for the first of them, which buffers
//! below absorb at once. Where the queue runs empty repeatedly, the link is not the bottleneck: after some
//! time it counts as twice as fast, so that a link that became faster is noticed while little is sent.

use std::time::Duration;

/// Bytes that empty buffers below absorb at once.
const ABSORBED_BYTES: u64 = 320 << 10;
/// Shortest measurement, together with [`LEAST_BYTES`]; `WINDOW_BYTES` end it earlier.
const WINDOW: Duration = Duration::from_millis(20);
/// Fewest bytes of a measurement.
const LEAST_BYTES: u64 = 64 << 10;
/// Bytes that end a measurement.
const WINDOW_BYTES: u64 = 1 << 20;
/// Time within which bytes count as leaving together.
const SAME_MOMENT: Duration = Duration::from_micros(200);
/// Bytes that leave without having waited, after which the link counts as twice as fast.
const UNHURRIED_BYTES: u64 = 8 << 20;
/// Bytes that may be queued in any case: three times what leaves at once, so that the queue of a busy link is
/// never empty. Beyond that no more is queued than keeps the link busy, because queued bytes are not
/// compressed any more; and no more than has left so far, because the first measurements are of buffers
/// rather than of the link.
const LEAST_QUEUE_BYTES: u64 = 768 << 10;
/// Time to send the queued bytes, seconds, besides round trips: some carriers hold bytes until they are
/// acknowledged, which takes a round trip, and one more for each retransmission.
const QUEUE_SECS: f64 = 0.25;
const ROUND_TRIPS_IN_FLIGHT: f64 = 4.0;
/// Weight of the newest measurement.
const GAIN: f64 = 0.5;

/// Measurement in progress: its beginning, the last time at which bytes left that did not leave together with
/// earlier ones, and the bytes in between.
#[derive(Clone, Copy, Debug)]
struct GoodputWindow {
    start: Duration,
    last: Duration,
    bytes: u64,
}

impl GoodputWindow {
    fn begin(now: Duration) -> Self {
        Self { start: now, last: now, bytes: 0 }
    }

    /// Returns whether bytes that leave now do not leave together with the last ones.
    fn is_past(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) >= SAME_MOMENT
    }

    /// Counts bytes that leave. Bytes of one write were sent in the time before it, so those that leave as
    /// the window begins do not count.
    fn leave(&mut self, now: Duration, bytes: u64) {
        if self.is_past(now) {
            self.last = now;
        }
        if self.last > self.start {
            self.bytes += bytes;
        }
    }
}

/// Goodput of a link, as seen by the queue in front of it.
#[derive(Clone, Debug, Default)]
pub struct Goodput {
    queued_bytes: u64,
    all_left_bytes: u64,
    /// Bytes that left since the queue was empty.
    left_bytes: u64,
    window: Option<GoodputWindow>,
    unhurried_bytes: u64,
    bytes_per_sec: Option<f64>,
}

impl Goodput {
    /// Creates the goodput of a link with a remembered rate, which counts like one measurement.
    #[must_use]
    pub fn knowing(bytes_per_sec: f64) -> Self {
        Self { bytes_per_sec: Some(bytes_per_sec), ..Self::default() }
    }

    /// Records bytes that were queued.
    pub fn queue(&mut self, bytes: u64) {
        self.queued_bytes += bytes;
    }

    /// Records queued bytes that left, or were cancelled.
    pub fn leave(&mut self, now: Duration, bytes: u64) {
        self.queued_bytes = self.queued_bytes.saturating_sub(bytes);
        self.left_bytes += bytes;
        self.all_left_bytes += bytes;
        if self.window.is_some_and(|window| window.is_past(now)) {
            self.close_window();
        }
        match &mut self.window {
            Some(window) => window.leave(now, bytes),
            None if self.left_bytes >= ABSORBED_BYTES => self.window = Some(GoodputWindow::begin(now)),
            None => {}
        }
        if self.queued_bytes == 0 {
            self.close_window();
            self.rest();
        }
    }

    /// Goodput, bytes per second; `None` while nothing is known.
    #[must_use]
    pub fn bytes_per_sec(&self) -> Option<f64> {
        self.bytes_per_sec
    }

    /// False while no more compressible data should be queued, because a better method will be known soon.
    /// `queued_bytes` counts the compressible data that have not left yet.
    #[must_use]
    pub fn has_room(&self, queued_bytes: u64, round_trip: Duration) -> bool {
        let queue_secs = QUEUE_SECS + ROUND_TRIPS_IN_FLIGHT * round_trip.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let queued_secs = self.bytes_per_sec.map_or(f64::MAX, |known| queued_bytes as f64 / known);
        let is_little = queued_secs < queue_secs && queued_bytes < self.all_left_bytes;
        is_little || queued_bytes < LEAST_QUEUE_BYTES
    }

    /// Ends a measurement that is long enough; the next one begins where it ends.
    fn close_window(&mut self) {
        let Some(GoodputWindow { start, last, bytes }) = self.window else { return };
        let elapsed = last.saturating_sub(start);
        let enough = bytes >= WINDOW_BYTES || (bytes >= LEAST_BYTES && elapsed >= WINDOW);
        if !enough || elapsed.is_zero() {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let found = bytes as f64 / elapsed.as_secs_f64();
        // Times are averaged, not rates, so that bytes absorbed by a buffer are soon forgotten.
        let mean = |known: f64| 1.0 / ((1.0 - GAIN) / known + GAIN / found);
        self.bytes_per_sec = Some(self.bytes_per_sec.map_or(found, mean));
        self.window = Some(GoodputWindow::begin(last));
        self.unhurried_bytes = 0;
    }

    /// Handles an empty queue.
    fn rest(&mut self) {
        self.unhurried_bytes += std::mem::take(&mut self.left_bytes);
        self.window = None;
        if self.unhurried_bytes >= UNHURRIED_BYTES {
            self.unhurried_bytes = 0;
            self.bytes_per_sec = self.bytes_per_sec.map(|known| known * 2.0);
        }
    }
}
