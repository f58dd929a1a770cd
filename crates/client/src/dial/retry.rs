//! Retries of requests that a server was too busy for: after a growing pause, a limited number of times.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use array::{Error, ErrorKind, Result};
use tokio::time::{Duration, sleep};

/// Pause after the first *busy* response; doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// Maximum pause between retries, before jitter.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// Maximum number of attempts; they take about ten seconds.
const MAX_ATTEMPTS: u32 = 10;
/// Golden ratio times 2^32: its multiples modulo 2^32 are spread evenly.
const SPREAD: u32 = 0x9E37_79B9;

/// Number of failed attempts of one request.
#[derive(Debug, Default)]
pub(crate) struct BusyRetry(u32);

impl BusyRetry {
    /// Waits before the request is sent again.
    ///
    /// # Errors
    /// `error` itself if it is not `Busy`, after too many attempts, or if the pause would exceed `deadline`.
    ///
    /// # Cancel safety
    /// Safe.
    pub(crate) async fn after(&mut self, error: Error, deadline: Option<Instant>) -> Result<()> {
        if error.kind() != ErrorKind::Busy || self.0 >= MAX_ATTEMPTS {
            return Err(error);
        }
        let pause = spread(FIRST_PAUSE.saturating_mul(1 << self.0).min(MAX_PAUSE));
        let end = tokio::time::Instant::now() + pause;
        if deadline.is_some_and(|at| at <= end.into_std()) {
            return Err(error);
        }
        self.0 += 1;
        sleep(pause).await;
        Ok(())
    }
}

/// Applies jitter: from three quarters of a pause to five quarters, so that clients that were refused together do not
/// retry together.
fn spread(pause: Duration) -> Duration {
    static TURN: AtomicU32 = AtomicU32::new(0);
    let turn = TURN.fetch_add(1, Ordering::Relaxed).wrapping_mul(SPREAD);
    pause.mul_f64(0.75 + f64::from(turn) / f64::from(u32::MAX) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> Error {
        Error::new(ErrorKind::Busy, "too many")
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_and_end() {
        let begun = tokio::time::Instant::now();
        let (mut retry, mut pauses, mut last) = (BusyRetry::default(), Vec::new(), begun);
        while retry.after(busy(), None).await.is_ok() {
            pauses.push(last.elapsed());
            last = tokio::time::Instant::now();
        }
        assert_eq!(pauses.len(), MAX_ATTEMPTS as usize);
        assert!(pauses[0] >= FIRST_PAUSE.mul_f64(0.74) && pauses[0] < FIRST_PAUSE.mul_f64(1.3), "{pauses:?}");
        assert!(
            pauses[3] > pauses[0] * 4 && pauses.iter().all(|p| *p < MAX_PAUSE.mul_f64(1.3)),
            "{pauses:?}"
        );
        assert!((6..15).contains(&begun.elapsed().as_secs()), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_refused_together_are_not_retried_together() {
        let waits = (0..100).map(|_| async {
            BusyRetry::default().after(busy(), None).await.unwrap();
            tokio::time::Instant::now()
        });
        let mut times = futures::future::join_all(waits).await;
        times.sort();
        times.dedup();
        assert!(times.len() > 5, "{} different times", times.len());
    }

    #[tokio::test(start_paused = true)]
    async fn other_errors_and_deadlines_are_not_waited_for() {
        let begun = tokio::time::Instant::now();
        let mut retry = BusyRetry::default();
        assert_eq!(retry.after(Error::invalid("no"), None).await.unwrap_err().kind(), ErrorKind::Invalid);
        let soon = begun.into_std() + FIRST_PAUSE / 4;
        assert_eq!(retry.after(busy(), Some(soon)).await.unwrap_err(), busy());
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }
}
