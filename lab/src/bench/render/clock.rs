//! Costs of work: wall time, and processor time of all threads of this process.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// A running measurement.
pub(super) struct CostClock {
    wall: Instant,
    cpu: Duration,
}

/// Time of some work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkCosts {
    pub(super) wall_secs: f64,
    /// User and system time of all threads.
    pub(super) cpu_secs: f64,
}

impl CostClock {
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    pub(super) fn start() -> Self {
        Self { wall: Instant::now(), cpu: process_cpu() }
    }

    pub(super) fn read(&self) -> WorkCosts {
        let cpu = process_cpu().saturating_sub(self.cpu);
        WorkCosts { wall_secs: self.wall.elapsed().as_secs_f64(), cpu_secs: cpu.as_secs_f64() }
    }
}

/// Processor time of this process so far.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
