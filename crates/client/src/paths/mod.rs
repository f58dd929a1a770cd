//! Memory of the network paths to other hosts: every connection updates it, and new connections begin from its values.
//!
//! ```text
//!   ConnectionMonitor (a connection's statistics)  -record->  one thread --> PathDatabase (SQLite, per user)
//!   dial, connection, `corridor path`, GET /path  --recall-->     |
//! ```
//!
//! [`plan`] interprets the measurements; this module adds clock, file and threads. Recording never blocks: measurements that
//! arrive too fast are dropped. The database is shared by all processes of this user. Most measurements are statistics of
//! ordinary connections; packet trains ([`probe`]) are sent for `corridor path`, and their budget is kept in the same file.

mod database;
mod host;
mod inspect;
mod learn;
mod monitor;
pub mod probe;
mod probe_lease;
mod report;

use std::fmt;
use std::net::IpAddr;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

use array::Result;
use link::{Flow, RememberedPath};
use parking_lot::Mutex;
use plan::{Direction, LEAST_CONFIDENCE, Measurement, NetworkPrefix, Path};
use tokio::sync::oneshot;

use database::{BudgetChange, PathDatabase};
pub use inspect::{InspectSettings, PathTarget, ProbeMode, inspect, of_client};
pub(crate) use learn::learn;
pub use learn::read as read_told;
pub use monitor::ConnectionMonitor;
pub use probe_lease::TrainLease;
pub use report::PathSummary;

/// Maximum number of jobs queued for the database thread; further jobs are dropped.
const MAX_WAITING_JOBS: usize = 256;
/// Timeout of a new connection for remembered values, which it can do without.
const RECALL_TIMEOUT: Duration = Duration::from_millis(50);
/// Timeout for writing pending measurements when the last user is dropped.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

enum DatabaseJob {
    Spend { host: IpAddr, at: Duration, what: BudgetChange, answer: oneshot::Sender<Result<()>> },
    Record { host: IpAddr, at: Duration, measured: Vec<Measurement> },
    Recall { host: IpAddr, rtt_secs: Option<f64>, answer: oneshot::Sender<Option<RecalledPath>> },
}

/// A path that is remembered.
#[derive(Clone, Debug)]
pub struct RecalledPath {
    /// Remembered values of the path.
    pub path: Path,
    /// Host of this path, if it is not the requested one: another host of its network with the same bottleneck.
    pub of_neighbour: Option<IpAddr>,
}

/// The database of paths. Clones share it. Dropping the last clone blocks the thread until all measurements are
/// written, for 2 s at most; on a runtime thread this delays other tasks.
#[derive(Clone)]
pub struct Paths(Arc<PathsState>);

struct PathsState {
    jobs: Mutex<Option<SyncSender<DatabaseJob>>>,
    /// Channel of the thread, closed when the thread has ended.
    ended: Mutex<Receiver<()>>,
    /// Networks that take part in a probe with this process.
    turns: Mutex<Vec<NetworkPrefix>>,
    /// Locked while a report is made; one report at a time.
    reporting: tokio::sync::Mutex<Option<ReportingHost>>,
}

/// Facts of this host on its path to another host, and the time at which they were read.
struct ReportingHost {
    host: IpAddr,
    at: tokio::time::Instant,
    facts: plan::HostFacts,
}

impl fmt::Debug for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paths")
    }
}

impl Drop for PathsState {
    fn drop(&mut self) {
        self.jobs.lock().take();
        if self.ended.lock().recv_timeout(WRITE_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("measurements of paths are not saved: another process locks their file");
        }
    }
}

impl Paths {
    /// Opens the database in `folder` on first use, and creates the folder. If it cannot be opened, measurements are
    /// kept until the process ends.
    #[must_use]
    pub fn in_folder(folder: &FilePath) -> Self {
        let (sender, receiver) = sync_channel(MAX_WAITING_JOBS);
        let folder = folder.to_path_buf();
        let (ending, ended) = sync_channel(0);
        let thread = move || {
            let _until_here = ending;
            work(&folder, &receiver);
        };
        if let Err(error) = std::thread::Builder::new().name("paths".into()).spawn(thread) {
            tracing::warn!(%error, "paths are not remembered");
        }
        let (jobs, ended) = (Mutex::new(Some(sender)), Mutex::new(ended));
        Self(Arc::new(PathsState {
            jobs,
            ended,
            turns: Mutex::default(),
            reporting: tokio::sync::Mutex::default(),
        }))
    }

    fn send(&self, job: DatabaseJob) -> bool {
        self.0.jobs.lock().as_ref().is_some_and(|jobs| jobs.try_send(job).is_ok())
    }

    /// Records measurements of the path to `host`, made now.
    pub fn record(&self, host: IpAddr, measured: Vec<Measurement>) {
        if !measured.is_empty()
            && !self.send(DatabaseJob::Record { host: host.to_canonical(), at: now(), measured })
        {
            tracing::debug!(%host, "a measurement was dropped: the queue is full");
        }
    }

    /// Returns the remembered path to `host`: its own, or, if its round trip is known, that of a host behind the same
    /// bottleneck.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn recall(&self, host: IpAddr, rtt_secs: Option<f64>) -> Option<RecalledPath> {
        let (answer, answered) = oneshot::channel();
        self.send(DatabaseJob::Recall { host: host.to_canonical(), rtt_secs, answer }).then_some(())?;
        answered.await.ok().flatten()
    }

    /// Returns the same as [`recall`](Self::recall), but `None` if there is no response within [`RECALL_TIMEOUT`]: for
    /// callers that prefer to begin without remembered values instead of waiting for a disk, or for another process
    /// that locks the file.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub(crate) async fn recall_soon(&self, host: IpAddr, rtt_secs: Option<f64>) -> Option<RecalledPath> {
        tokio::time::timeout(RECALL_TIMEOUT, self.recall(host, rtt_secs)).await.ok().flatten()
    }

    /// Returns whether the rates of both directions to `host` are known with enough confidence.
    pub(crate) async fn knows_rates(&self, host: IpAddr) -> bool {
        let Some(known) = self.recall(host, None).await else { return false };
        let is_known = |direction| {
            let rate = known.path.one_way(direction).rate(now());
            rate.is_some_and(|(rate, _)| rate.confidence >= LEAST_CONFIDENCE)
        };
        is_known(Direction::Up) && is_known(Direction::Down)
    }

    /// Returns the values from which a connection over `flow` can begin; nothing for a connection to this machine
    /// itself, which has no path.
    ///
    /// # Cancel safety
    /// Safe: nothing is changed.
    pub async fn known(&self, flow: &dyn Flow) -> RememberedRates {
        let Some(host) = far_host(flow) else { return RememberedRates::default() };
        let measured = flow.statistics().least_rtt.or(flow.statistics().rtt);
        let recalled = self.recall_soon(host, measured.map(|rtt| rtt.as_secs_f64())).await;
        let of = |direction| recalled.as_ref().and_then(|known| remembered(&known.path, direction, now()));
        RememberedRates { up: of(Direction::Up), down: of(Direction::Down) }
    }
}

/// Returns the host at the other end; `None` if it is this machine, to which there is no path.
fn far_host(flow: &dyn Flow) -> Option<IpAddr> {
    flow.peer().map(|peer| peer.ip().to_canonical()).filter(|host| !host.is_loopback())
}

/// Remembered rates and round-trip times of both directions of a path, each if enough is known to begin from.
#[derive(Clone, Copy, Debug, Default)]
pub struct RememberedRates {
    /// Direction from this host to the other.
    pub up: Option<RememberedPath>,
    /// Direction from the other host to this one.
    pub down: Option<RememberedPath>,
}

/// Converts one direction of a path to the values from which a controller, or a receive window, begins; `None` if no
/// rate is known with enough confidence, or no round-trip time.
fn remembered(path: &Path, direction: Direction, now: Duration) -> Option<RememberedPath> {
    let one_way = path.one_way(direction);
    let (capacity, _) = one_way.rate(now).filter(|(rate, _)| rate.confidence >= LEAST_CONFIDENCE)?;
    let got = one_way.best(now).map_or(capacity.value, |best| best.bytes_per_sec.value);
    let rtt = path.rtt.least(now)?.value;
    Some(RememberedPath {
        rate_bytes_per_sec: got.min(capacity.value),
        capacity_bytes_per_sec: capacity.value,
        rtt: Duration::try_from_secs_f64(rtt).ok()?,
    })
}

/// Returns the time since 1970, the common reference of all processes.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Runs the database thread: opens the database on first use, and ends with the last [`Paths`].
fn work(folder: &FilePath, jobs: &Receiver<DatabaseJob>) {
    let mut database: Option<PathDatabase> = None;
    for job in jobs {
        let database = database.get_or_insert_with(|| PathDatabase::open(folder));
        match job {
            DatabaseJob::Record { host, at, measured } => {
                if let Err(error) = database.record(host, at, measured) {
                    tracing::debug!(%host, %error, "a path was not remembered");
                }
            }
            DatabaseJob::Spend { host, at, what, answer } => {
                // The caller may have been dropped.
                drop(answer.send(database.spend(host, at, what)));
            }
            DatabaseJob::Recall { host, rtt_secs, answer } => {
                // The caller may have been dropped.
                drop(answer.send(database.recall(host, rtt_secs, now())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::SendMethod;

    const HOST: &str = "192.0.2.7";

    fn method() -> SendMethod {
        SendMethod { protocol: "quic".into(), controller: "auto".into(), streams: 1 }
    }

    #[tokio::test]
    async fn paths_are_remembered_and_used_for_neighbors() {
        let folder = tempfile::tempdir().unwrap();
        let host: IpAddr = HOST.parse().unwrap();
        let paths = Paths::in_folder(folder.path());
        for _ in 0..3 {
            let rate = Measurement::Achieved(Direction::Up, method(), 50e6);
            paths.record(host, vec![Measurement::RoundTrip(0.150), rate]);
        }
        drop(paths);
        let paths = Paths::in_folder(folder.path());
        let own = paths.recall(host, None).await.unwrap();
        assert!(own.of_neighbour.is_none());
        let known = remembered(&own.path, Direction::Up, now()).unwrap();
        assert!((known.rate_bytes_per_sec / 50e6 - 1.0).abs() < 1e-6);
        assert!((known.rtt.as_secs_f64() - 0.150).abs() < 1e-9);
        let neighbor = paths.recall("192.0.2.99".parse().unwrap(), Some(0.151)).await.unwrap();
        assert_eq!(neighbor.of_neighbour, Some(host));
        for (other, rtt) in [("192.0.2.99", Some(0.020)), ("192.0.2.99", None), ("198.51.100.7", Some(0.150))]
        {
            assert!(paths.recall(other.parse().unwrap(), rtt).await.is_none(), "{other} {rtt:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_does_not_wait_for_a_file_that_another_process_locks() {
        let folder = tempfile::tempdir().unwrap();
        let host: IpAddr = HOST.parse().unwrap();
        let paths = Paths::in_folder(folder.path());
        paths.record(host, vec![Measurement::RoundTrip(0.150)]);
        assert!(paths.recall(host, None).await.is_some());
        let other = rusqlite::Connection::open(folder.path().join("paths.sqlite")).unwrap();
        other.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
        paths.record(host, vec![Measurement::RoundTrip(0.151)]);
        let began = tokio::time::Instant::now();
        assert!(paths.recall_soon(host, None).await.is_none());
        assert_eq!(began.elapsed(), RECALL_TIMEOUT);
        drop(other);
        assert!(paths.recall(host, None).await.is_some());
    }
}
