//! The clock of the benchmarks.

use std::time::Instant;

use array::Result;

/// Present time.
#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Seconds that work takes.
pub(super) async fn seconds(work: impl Future<Output = Result<()>>) -> Result<f64> {
    let start = now();
    work.await?;
    Ok(start.elapsed().as_secs_f64())
}
